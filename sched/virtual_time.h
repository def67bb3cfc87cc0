/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Virtual time: bytes of service for each unit of weight, << 32. It wraps round, and only differences count. A class that is away
 * while half of the range passes would look as if it were ahead: so at every quarter, classes that are behind are moved up.
 */
#pragma once
#include "discipline.h"
#include "tournament.h"

struct sl_virtual_class {
	u64 start; /* of its next packet: served bytes << 32 / weight */
};

struct sl_virtual_sched {
	u64 time; /* in the unit of start */
	u64 end; /* start-time fair: the greatest at which a packet has ended */
};

SL_CLASS_STATE(virtual)
SL_SCHED_STATE(virtual)

/* The furthest that a class gets ahead of its share, more than any packet. What is beyond it (a guarantee can do that) is forgiven. */
#define SL_MOST_DEBT_BYTES (1u << 20)

/* Where a class begins that has been away: where it stopped if that is still ahead, else now. */
SL_FN u64 virtual_resume(u64 virtual_time, u64 stopped)
{
	return virtual_before(stopped, virtual_time) ? virtual_time : stopped;
}

/* Moves classes that are behind to the present virtual time, where they would begin anyway. */
SL_GLOBAL int virtual_catch_up(struct sl_sched *s SL_NONNULL)
{
	u32 c;

	sl_for (c, SL_CLASSES) {
		struct sl_class *k = sl_at(s->classes, c);

		virtual_class(k)->start = virtual_resume(virtual_sched(s)->time, virtual_class(k)->start);
	}
	return 0;
}

/* Virtual time goes on, by less than a quarter of its range. */
SL_FN void virtual_advance(struct sl_sched *s, u64 virtual_time)
{
	u64 before = virtual_sched(s)->time;

	virtual_sched(s)->time = virtual_time;
	if (sl_unlikely((before ^ virtual_time) >> 62))
		virtual_catch_up(s);
}

/*
 * For start-time fair disciplines, when no class was ready. If the link has sent everything too, a busy period has ended, and the next begins where
 * the last packet of it ended in virtual time. A link without a rate is taken to have sent what it was given.
 */
SL_FN void virtual_begin(struct sl_sched *s, u64 now_ns)
{
	if (s->link.tat_ns <= now_ns)
		virtual_advance(s, virtual_sched(s)->end);
}

/* A packet ends there. */
SL_FN void virtual_reach(struct sl_sched *s, u64 end)
{
	if (virtual_before(virtual_sched(s)->end, end))
		virtual_sched(s)->end = end;
}

/* Charges bytes to a class. */
SL_FN void virtual_charge(struct sl_sched *s, struct sl_class *k, u32 bytes)
{
	u64 most = virtual_sched(s)->time + SL_MOST_DEBT_BYTES * k->virtual_cost;

	virtual_class(k)->start += bytes * k->virtual_cost;
	if (sl_unlikely(virtual_before(most, virtual_class(k)->start)))
		virtual_class(k)->start = most;
}

/* Whether a set has at most one class. */
SL_FN int is_alone(u64 set)
{
	return !(set & (set - 1));
}
