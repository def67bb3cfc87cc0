/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Limits of the classes of a pipe: each may send so many bytes in a period. A class sends while it has credit, and its last packet may take
 * it into debt, which the next period pays. What is left at the end of a period is lost.
 *
 * A profile has one period for all classes of a pipe, so short that 15 bits hold what the fastest of them may send in it. The credit of a slow class
 * may then be a fraction of a frame, or of a byte. The bytes of period n are those that are whole by its end and were not by the end of
 * period n - 1, so fractions add up. Pipes begin their periods at different times: else all classes that wait would be back at once.
 *
 * Bounds: in any window of t seconds, a class sends no more than rate * t + two periods + one packet. A class that always has packets, and
 * that neither its pipe nor a class before it holds up, reaches its rate. Only a pipe whose period has changed pays for that in its turn.
 */
#pragma once
#include "pipe_search.h"

#define SL_CREDIT_FRACTION ((1u << SL_PIPE_CREDIT_BITS) - 1)

/* The queues of a class. */
SL_FN u32 class_queues(u32 class)
{
	return class < SL_PIPE_BEST_EFFORT ? 1u << class : 0xfu << SL_PIPE_BEST_EFFORT;
}

/* The queues of these classes. */
SL_FN u32 classes_queues(u32 classes)
{
	return (classes & ((1u << SL_PIPE_BEST_EFFORT) - 1)) |
	       (classes >> SL_PIPE_BEST_EFFORT & 1) * class_queues(SL_PIPE_BEST_EFFORT);
}

SL_FN u32 class_of_queue(u32 queue)
{
	return sl_min(queue, SL_PIPE_BEST_EFFORT);
}

/* The time by which periods of pipe p begin later than those of pipe 0. */
SL_FN u64 period_offset_ns(u32 p, u32 period_bits)
{
	return ((u64)p << period_bits) / SL_PIPES;
}

SL_FN u64 period_now(u32 p, u32 period_bits, u64 now_ns)
{
	return (now_ns - period_offset_ns(p, period_bits)) >> period_bits;
}

/* Period number period of a pipe begins; it may not have gone on since the one before. Without branches, so that compilers take all classes at once. */
SL_FN void credits_renew(struct sl_pipe *k, const struct sl_pipe_profile *profile, u32 period)
{
	u32 passed = sl_min(period - k->period, 0x7fffu), before = k->period & SL_CREDIT_FRACTION, c, closed = 0;
	/* Of whole vectors: the last three are not used. */
	s16 credit[SL_PIPE_PLACES] = { 0 };

	sl_for (c, SL_PIPE_CLASSES)
		credit[c] = k->credit[c];
	sl_for (c, SL_PIPE_PLACES) {
		u32 whole = profile->credit[c] >> SL_PIPE_CREDIT_BITS, fraction = profile->credit[c] & SL_CREDIT_FRACTION;
		/* The fraction of a byte that the periods before have left. */
		u32 carried = before * fraction & SL_CREDIT_FRACTION;
		u32 bytes = whole * passed + ((carried + fraction * passed) >> SL_PIPE_CREDIT_BITS);
		s32 now = sl_min(credit[c], 0) + (s32)bytes;

		now = sl_min(now, (s32)whole + 1);
		credit[c] = (s16)now;
		closed |= (u32)(now <= 0) << c;
	}
	sl_for (c, SL_PIPE_CLASSES)
		k->credit[c] = credit[c];
	k->period = period;
	k->closed = (u16)classes_queues(closed & profile->limited);
}

/* Pipe p, which has queues that are shut, waits for the period in which the first of them opens. */
SL_FN void credits_wait(struct sl_pipes *t, u32 p, const struct sl_pipe *k, const struct sl_pipe_profile *profile, u64 now_ns)
{
	struct sl_pipe_wheel *w = sl_at(t->wheel, SL_PIPE_CREDITS);
	u64 period = period_now(p, profile->period_bits, now_ns), need, first = 1ULL << 32;
	u32 c;

	sl_for (c, SL_PIPE_CLASSES) {
		if (!(k->shut & class_queues(c)))
			continue;
		need = ((u64)(1 - k->credit[c]) << SL_PIPE_CREDIT_BITS) / sl_max(profile->credit[c], 1u);
		first = sl_min(first, need);
	}
	pipe_wheel_remove(w, p);
	/* One period earlier if the fraction that is carried helps. */
	pipe_wheel_add(w, p, ((period + sl_max(first, 1)) << profile->period_bits) + period_offset_ns(p, profile->period_bits),
		       now_ns);
}

/* Queues of pipe p that were shut and are not closed any more are ready again. */
SL_FN void credits_reopen(struct sl_pipes *t, u32 p, struct sl_pipe *k)
{
	u32 open = k->shut & ~k->closed & SL_PIPE_ALL_QUEUES;

	if (!open)
		return;
	k->shut &= (u16)~open;
	pipe_ready(t, p, open);
}

/* Credits of pipe p are those of the present period. */
SL_FN void credits_settle(struct sl_pipes *t, u32 p, struct sl_pipe *k, const struct sl_pipe_profile *profile, u64 now_ns)
{
	u32 period = (u32)period_now(p, profile->period_bits, now_ns);

	if (sl_likely(period == k->period))
		return;
	credits_renew(k, profile, period);
	credits_reopen(t, p, k);
}
