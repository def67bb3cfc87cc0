/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Strict priority: the lowest level that has a ready class sends, always. Classes of one level share it by deficit
 * round robin. (Non-preemptive priority queueing: Kleinrock, Queueing Systems 2, 1976, chapter 3.)
 *
 * Invariant: a level's bit is set if and only if it has a ready class. A class waits for one packet of a lower level at
 * most (nothing is preempted), and for what lower levels are guaranteed. A lower level can starve; only a guarantee of its own, or
 * ceilings of those above it, prevent that. Cost: O(1), by a bitmap of levels.
 */
#pragma once
#include "deficit_round_robin.h"

struct sl_sp_sched {
	struct sl_drr_sched turns;
	u64 levels; /* with a ready class */
};

SL_SCHED_STATE(sp)

SL_FN void sp_join(struct sl_sched *s, struct sl_class *k, u32 c, u64 now_ns)
{
	(void)c;
	(void)now_ns;
	sp_sched(s)->levels |= SL_BIT(k->level);
}

SL_FN void sp_leave(struct sl_sched *s, struct sl_class *k, u32 c)
{
	u32 level = k->level;

	drr_leave(s, k, c);
	if (!(s->ready & *sl_at(s->level_classes, level)))
		sp_sched(s)->levels &= ~SL_BIT(level);
}

SL_FN u32 sp_pick(struct sl_sched *s)
{
	u32 level = sl_lowest(sp_sched(s)->levels);

	return drr_turn(s, s->ready & *sl_at(s->level_classes, level), level);
}

SL_FN void sp_pass(struct sl_sched *s, struct sl_class *k, u32 c, u32 bytes, u64 arrived_ns)
{
	(void)arrived_ns;
	drr_pass_at(s, k, c, k->level, bytes);
}

static const struct sl_discipline strict_priority = {
	.join = sp_join,
	.leave = sp_leave,
	.pick = sp_pick,
	.charge = drr_charge,
	.pass = sp_pass,
};
