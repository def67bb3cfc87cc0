/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * CoDel (codel.h) for a queue of a pipe, whose state is 8 bytes: times in units of 65 us, counts up to 1023, and the inverse root computed when it
 * is needed. A packet that has waited for less than the target, of a queue that CoDel does not watch, needs none of it.
 */
#pragma once
#include "codel.h"
#include "../abi/pipes.h"

#define SL_PIPE_CODEL_BITS 22
#define SL_PIPE_CODEL_TIME ((1u << SL_PIPE_CODEL_BITS) - 1)

/* A time of which the lower 22 bits are known, within 137 s of now. */
SL_FN u64 codel_time_near(u32 bits, u32 now)
{
	u32 ahead = (bits - now) & SL_PIPE_CODEL_TIME;

	return now + (u64)ahead - (ahead >> 21 ? SL_PIPE_CODEL_TIME + 1ULL : 0);
}

/* 1 / sqrt(count), << 16, by Newton's method from a power of two that is no larger. */
SL_FN void codel_find_root(struct sl_codel *c)
{
	u32 i;

	c->inverse_root = (u16)(0xffffu >> ((sl_log2(c->count | 1) + 2) / 2));
	sl_for (i, 5)
		codel_newton_step(c);
	if (c->count < 2)
		c->inverse_root = 0xffff;
}

/*
 * Whether the packet that leaves the queue of *state is to be dropped: it has waited for so long, in units, and leaves so many bytes behind. *watched:
 * whether *state is in use, before and after. now is in units too, and not 0.
 */
SL_FN int pipe_codel_drops(struct sl_pipe_codel *state, u32 target, u32 interval, u32 waited, u32 left_bytes, u32 now,
			   int *watched)
{
	struct sl_codel c = { 0 };
	u64 base = 1ULL << 32, at = base + now;
	u32 above;
	int drop;

	/* Times are above 2^32 here, so that none is 0 and none before 0. */
	if (*watched) {
		c.above_ns =
			state->above & SL_PIPE_CODEL_TIME ? base + codel_time_near(state->above & SL_PIPE_CODEL_TIME, now) : 0;
		/* Later than that, it is from long ago. */
		c.next_ns = sl_min(base + codel_time_near(state->next & SL_PIPE_CODEL_TIME, now), at + interval);
		c.count = state->next >> SL_PIPE_CODEL_BITS;
		c.count_before = state->above >> SL_PIPE_CODEL_BITS & 511;
		c.dropping = state->above >> 31;
	}
	drop = codel_should_drop(&c, target, interval, at - waited, left_bytes, at);
	if (!drop) {
		c.dropping = 0;
	} else if (!c.dropping) {
		codel_find_root(&c);
		codel_begin(&c, interval, at);
	} else if (at < c.next_ns) {
		drop = 0;
	} else {
		c.count = sl_min(c.count + 1, 1023u);
		codel_find_root(&c);
		c.next_ns = codel_next(&c, interval, c.next_ns);
	}
	/* An interval that is over stays over, however long ago. */
	if (c.above_ns && c.above_ns < at)
		c.above_ns = at - 1;
	above = c.above_ns ? sl_max((u32)c.above_ns & SL_PIPE_CODEL_TIME, 1u) : 0;
	state->above = above | sl_min(c.count_before, 511u) << SL_PIPE_CODEL_BITS | (u32)(c.dropping != 0) << 31;
	state->next = ((u32)c.next_ns & SL_PIPE_CODEL_TIME) | sl_min(c.count, 1023u) << SL_PIPE_CODEL_BITS;
	/* Forgotten when neither the wait nor the drops of before matter. */
	*watched = c.above_ns || sl_since(at, c.next_ns) < 16ULL * interval;
	return drop;
}
