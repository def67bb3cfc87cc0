/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Round robin: classes take turns, one packet each (Nagle, RFC 970, 1985). Who sends long packets gets more: where that
 * matters, deficit round robin counts bytes.
 *
 * Between two turns of a class that stays ready, every other class that stays ready has exactly one; so a class waits for at
 * most 63 packets. Cost: O(1), by the bitmap of ready classes. State: the cursor.
 */
#pragma once
#include "discipline.h"

struct sl_rr_sched {
	u8 cursor; /* the class that sent last */
};

SL_SCHED_STATE(rr)

SL_FN u32 rr_turn(struct sl_sched *s, u32 c)
{
	rr_sched(s)->cursor = (u8)c;
	return c;
}

SL_FN u32 rr_pick(struct sl_sched *s)
{
	return rr_turn(s, sl_lowest_from(s->ready, rr_sched(s)->cursor + 1u));
}

SL_FN void rr_pass(struct sl_sched *s, struct sl_class *k, u32 c, u32 bytes, u64 arrived_ns)
{
	(void)k;
	(void)bytes;
	(void)arrived_ns;
	rr_turn(s, c);
}

static const struct sl_discipline round_robin = {
	.pick = rr_pick,
	.pass = rr_pass,
};
