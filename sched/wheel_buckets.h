/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Buckets of a timing wheel (Varghese and Lauck, SOSP 1987): a bucket for each 16 us, and a bit for each bucket that is not empty. Its scheduler
 * chains what waits in a bucket: nodes of a tree (wheel.h), or pipes (pipe_wheel.h).
 */
#pragma once
#include "world.h"
#include "../abi/wheel.h"

/* The bucket for what waits until opens_ns; what waits longer than the wheel is long is in the last one. */
SL_FN u32 wheel_bucket(struct sl_wheel *w, u64 opens_ns, u64 now_ns)
{
	u64 tick = (opens_ns + (1U << SL_WHEEL_TICK_BITS) - 1) >> SL_WHEEL_TICK_BITS;

	if (!w->words)
		w->tick = sl_max(w->tick, now_ns >> SL_WHEEL_TICK_BITS);
	tick = sl_min(sl_max(tick, w->tick), w->tick + SL_WHEEL_BUCKETS - 1);
	return (u32)tick & (SL_WHEEL_BUCKETS - 1);
}

/* Bucket b has this first one, which is not 0. */
SL_FN void wheel_begin(struct sl_wheel *w, u32 b, u32 first)
{
	*sl_at(w->first, b) = (u16)first;
	*sl_at(w->used, b >> 6) |= SL_BIT(b);
	w->words |= SL_BIT(b >> 6);
}

/* The first one of bucket b has gone; next: the one behind it, or 0. */
SL_FN void wheel_first_gone(struct sl_wheel *w, u32 b, u32 next)
{
	*sl_at(w->first, b) = (u16)next;
	if (next)
		return;
	*sl_at(w->used, b >> 6) &= ~SL_BIT(b);
	if (!*sl_at(w->used, b >> 6))
		w->words &= ~SL_BIT(b >> 6);
}

/* Whether the time of something that waits may have come: no, if nothing waits, and in most calls of one tick. */
SL_FN int wheel_due(const struct sl_wheel *w, u64 now_ns)
{
	u32 b = (u32)w->tick & (SL_WHEEL_BUCKETS - 1);

	return w->words && (w->tick < now_ns >> SL_WHEEL_TICK_BITS || *sl_at(w->used, b >> 6) & SL_BIT(b));
}

/* The first bucket that is not empty, as a distance from the one of tick; SL_WHEEL_BUCKETS: there is none. */
SL_FN u32 wheel_ahead(struct sl_wheel *w)
{
	u32 from = (u32)w->tick & (SL_WHEEL_BUCKETS - 1), word = from >> 6;
	u64 bits = *sl_at(w->used, word) & (~0ULL << (from & 63)), later;

	if (!w->words)
		return SL_WHEEL_BUCKETS;
	if (!bits) {
		/* Once round: buckets of the same word below tick come last. */
		later = word == 63 ? 0 : w->words & (~0ULL << (word + 1));
		word = sl_lowest(later ? later : w->words);
		bits = *sl_at(w->used, word);
		if (!bits)
			return SL_WHEEL_BUCKETS;
	}
	return ((word << 6) + sl_lowest(bits) - from) & (SL_WHEEL_BUCKETS - 1);
}
