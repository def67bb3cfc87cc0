/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Virtual time: bytes of service for each unit of weight, << 32. It wraps round; only differences count, and a class that
 * rejoins after a long absence is told from one that still owes by the bound on what anybody may owe.
 */
#pragma once
#include "tournament.h"

/* The furthest that a class gets ahead of its share, more than any packet. What is beyond it (a guarantee can do that) is forgiven. */
#define SL_MOST_DEBT_BYTES (1u << 20)

/* Where a class begins that has been away: where it stopped if that is still ahead, else now. */
SL_FN u64 virtual_resume(u64 virtual_time, u64 stopped, u64 cost)
{
	return stopped - virtual_time <= SL_MOST_DEBT_BYTES * cost ? stopped : virtual_time;
}

/* Charges bytes to a class. */
SL_FN void virtual_charge(const struct sl_sched *s, struct sl_class *k, u32 bytes)
{
	u64 most = s->virtual_time + SL_MOST_DEBT_BYTES * k->virtual_cost;

	k->virtual_start += bytes * k->virtual_cost;
	if (sl_unlikely(virtual_before(most, k->virtual_start)))
		k->virtual_start = most;
}

/* The one class of set, if it is but one. */
SL_FN int is_alone(u64 set)
{
	return !(set & (set - 1));
}
