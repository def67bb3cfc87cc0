/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Token bucket in one word, for any number of CPUs: the algorithm of bucket.h, changed by compare-and-swap. The word is the time at
 * which the bucket is full again, in 1/16 ns. In any window of t seconds no more than rate * t + burst + one packet passes, whoever
 * takes: who loses the race looks again, and who loses it SL_POLICE_TRIES times gets nothing.
 */
#pragma once
#include "world.h"

#define SL_POLICE_TRIES 32

/* Time in the unit of a bucket. */
SL_FN u64 police_time(u64 ns)
{
	return ns << 4;
}

/* What a packet costs, of a cost per byte << 16; rounded up, so that many small ones do not exceed the rate. */
SL_FN u64 police_cost(u64 per_byte, u32 bytes)
{
	return (bytes * per_byte + 0xffff) >> 16;
}

SL_FN int police_is_open(u64 tat, u64 now, u64 burst)
{
	return tat <= now + burst;
}

/* Takes what a packet costs; when the bucket is full again, or 0: it is not open. */
SL_FN u64 police_take(u64 *tat, u64 now, u64 cost, u64 burst)
{
	u64 seen, next;
	u32 i;

	for (i = 0; i < SL_POLICE_TRIES; i++) {
		seen = *(volatile u64 *)tat;
		if (!police_is_open(seen, now, burst))
			return 0;
		next = sl_max(seen, now) + cost;
		if (__sync_val_compare_and_swap(tat, seen, next) == seen)
			return next;
	}
	return 0;
}

/*
 * Gives it back. full: what police_take said; now: later than every time at which somebody else has taken since. Not what has been
 * refilled by then: the bucket may have been full in between, and holds no more than its burst.
 */
SL_FN void police_give_back(u64 *tat, u64 now, u64 cost, u64 full)
{
	if (full > now)
		__sync_fetch_and_add(tat, -cost);
}
