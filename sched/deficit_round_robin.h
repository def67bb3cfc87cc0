/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Deficit round robin (Shreedhar and Varghese, SIGCOMM 1995; IEEE/ACM ToN 1996), in debt form.
 *
 * Classes take turns. At its turn a class gains its quantum of bytes, and sends while its deficit is positive; its last
 * packet may take it below zero, and the debt is carried into its next turns. So nothing looks at the length of a
 * packet that has not left. A class that runs empty keeps its debt and loses its credit.
 *
 * Fairness: over any time in which classes i and j stay backlogged, | W_i / Q_i - W_j / Q_j | <= 1 + l_i / Q_i + l_j / Q_j: W what they
 * have sent, Q their quanta, l their largest packets. Cost: O(1) while no packet is longer than the
 * quantum; else one pass over the classes gives all the rounds that the smallest debt needs at once, at most 4 * 64
 * steps in all. A class that is alone owes no other: its debt is forgiven.
 */
#pragma once
#include "discipline.h"

struct sl_drr_class {
	s32 deficit_bytes; /* it may still send in this round; negative: debt */
};

struct sl_drr_sched {
	u8 cursor[SL_CLASSES]; /* the class whose turn it is, by level */
};

SL_CLASS_STATE(drr)
SL_SCHED_STATE(drr)

/* A guarantee can take a class ever deeper into debt; what is beyond this, more than any packet, is forgiven. */
#define SL_DRR_MOST_DEBT_BYTES (1 << 20)

/* The turn, where no class of the set has credit left for one. set is not empty. Returns a class of it with a positive deficit. */
SL_GLOBAL u32 drr_rounds(struct sl_sched *s SL_NONNULL, u64 set, u32 level)
{
	u8 *cursor = sl_at(drr_sched(s)->cursor, level);
	u32 pass, n, c, rounds = ~0u;

	sl_for (pass, 2) {
		u64 left = set;

		sl_for (n, SL_CLASSES) {
			struct sl_class *k;

			if (!left)
				break;
			c = sl_lowest_from(left, *cursor + 1u);
			left &= ~SL_BIT(c);
			*cursor = (u8)c;
			k = sl_at(s->classes, c);
			drr_class(k)->deficit_bytes += (s32)k->quantum_bytes;
			if (drr_class(k)->deficit_bytes > 0)
				return c;
		}
		/* A whole round, and every class is in debt still: skip the rounds in which that would not change. */
		left = set;
		sl_for_bits (n, c, left) {
			struct sl_class *k = sl_at(s->classes, c);

			rounds = sl_min(rounds, (u32)-drr_class(k)->deficit_bytes / sl_max(k->quantum_bytes, 1u));
		}
		left = set;
		sl_for_bits (n, c, left) {
			struct sl_class *k = sl_at(s->classes, c);

			drr_class(k)->deficit_bytes += (s32)(rounds * k->quantum_bytes);
		}
	}
	return *cursor;
}

/* Whose turn it is among the classes of set, which share the cursor of level. set is not empty. */
SL_FN u32 drr_turn(struct sl_sched *s, u64 set, u32 level)
{
	struct sl_class *k;
	u32 c;

	if (!(set & (set - 1))) {
		c = sl_lowest(set);
		k = sl_at(s->classes, c);
		drr_class(k)->deficit_bytes = (s32)k->quantum_bytes;
		*sl_at(drr_sched(s)->cursor, level) = (u8)c;
		return c;
	}
	c = *sl_at(drr_sched(s)->cursor, level);
	if (set >> (c & 63) & 1 && drr_class(sl_at(s->classes, c))->deficit_bytes > 0)
		return c;
	return drr_rounds(s, set, level);
}

SL_FN void drr_leave(struct sl_sched *s, struct sl_class *k, u32 c)
{
	(void)s;
	(void)c;
	if (drr_class(k)->deficit_bytes > 0)
		drr_class(k)->deficit_bytes = 0;
}

SL_FN u32 drr_pick(struct sl_sched *s)
{
	return drr_turn(s, s->ready, 0);
}

SL_FN void drr_charge(struct sl_sched *s, struct sl_class *k, u32 bytes)
{
	(void)s;
	drr_class(k)->deficit_bytes = sl_max(drr_class(k)->deficit_bytes - (s32)bytes, -SL_DRR_MOST_DEBT_BYTES);
}

/* A lone packet: the class got its quantum, and has lost what the packet left of it. */
SL_FN void drr_pass_at(struct sl_sched *s, struct sl_class *k, u32 c, u32 level, u32 bytes)
{
	s32 left = sl_max((s32)k->quantum_bytes - (s32)bytes, -SL_DRR_MOST_DEBT_BYTES);

	drr_class(k)->deficit_bytes = sl_min(left, 0);
	*sl_at(drr_sched(s)->cursor, level) = (u8)c;
}

SL_FN void drr_pass(struct sl_sched *s, struct sl_class *k, u32 c, u32 bytes, u64 arrived_ns)
{
	(void)arrived_ns;
	drr_pass_at(s, k, c, 0, bytes);
}

static const struct sl_discipline deficit_round_robin = {
	.leave = drr_leave,
	.pick = drr_pick,
	.charge = drr_charge,
	.pass = drr_pass,
};
