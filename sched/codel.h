/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * CoDel (Nichols and Jacobson, RFC 8289, 2018): a queue is bad if every packet of the last interval has waited longer than the target.
 * Then packets are dropped or marked as they leave, the next one interval / sqrt(count) after the last, until the wait is
 * short again. Nothing is dropped while no more than a frame would be left: what waits then is the link's own.
 *
 * The square root is one step of Newton's method on 1 / sqrt(count) for each drop, in 16 bits, as in the kernel's codel_impl.h.
 */
#pragma once
#include "world.h"
#include "../abi/sched.h"

/* A backlog of one frame is no standing queue. */
#define SL_CODEL_FRAME_BYTES 1514u

/* When the next packet is to be dropped, if one was at this time. */
SL_FN u64 codel_next(const struct sl_codel *c, u64 interval_ns, u64 at_ns)
{
	return at_ns + (interval_ns * c->inverse_root >> 16);
}

/* One step nearer to 1 / sqrt(count): x (3 - count x^2) / 2. */
SL_FN void codel_newton_step(struct sl_codel *c)
{
	u64 x = (u64)c->inverse_root << 16, square = x * x >> 32, rest = (3ULL << 32) - c->count * square;

	c->inverse_root = (u16)((rest >> 2) * x >> 47);
}

/* Whether the queue is bad, if its head, which has come then, leaves so much behind. */
SL_FN int codel_should_drop(struct sl_codel *c, u64 target_ns, u64 interval_ns, u64 arrived_ns, u32 left_bytes, u64 now_ns)
{
	if (sl_since(now_ns, arrived_ns) < target_ns || left_bytes <= SL_CODEL_FRAME_BYTES) {
		c->above_ns = 0;
		return 0;
	}
	if (!c->above_ns) {
		c->above_ns = now_ns + interval_ns;
		return 0;
	}
	return now_ns > c->above_ns;
}

/* The queue has run empty, so it is not above the target, and dropping ends (RFC 8289, section 5.5). */
SL_FN void codel_rest(struct sl_codel *c)
{
	c->above_ns = 0;
	c->dropping = 0;
}

/* Dropping begins. */
SL_FN void codel_begin(struct sl_codel *c, u64 interval_ns, u64 now_ns)
{
	u32 before = c->count - c->count_before;

	c->dropping = 1;
	/* Not long after it ended: go on from where it was. */
	if (before > 1 && sl_since(now_ns, c->next_ns) < 16 * interval_ns) {
		c->count = before;
		codel_newton_step(c);
	} else {
		c->count = 1;
		c->inverse_root = 0xffff;
	}
	c->count_before = c->count;
	c->next_ns = codel_next(c, interval_ns, now_ns);
}
