/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Token bucket in one word, for any number of CPUs: the algorithm of bucket.h, changed by compare-and-swap. The word is the time at
 * which the bucket is full again, in 1/16 ns. In any window of t seconds no more than rate * t + burst + one packet passes, whichever CPUs
 * take. A CPU that loses the race looks again, and gets nothing after SL_POLICE_TRIES attempts.
 */
#pragma once
#include "world.h"
#include "../abi/classifier.h"

#define SL_POLICE_TRIES 32

/* Time in the unit of a bucket. */
SL_FN u64 police_time(u64 ns)
{
	return ns << 4;
}

/* The cost of a packet, from a cost per byte << 16; rounded up, so that many small ones do not exceed the rate. */
SL_FN u64 police_cost(u64 per_byte, u32 bytes)
{
	return (bytes * per_byte + 0xffff) >> 16;
}

SL_FN int police_is_open(u64 tat, u64 now, u64 burst)
{
	return tat <= now + burst;
}

#define SL_POLICE_LOST (~0ULL) /* another CPU has changed the word meanwhile */

/*
 * One attempt of police_take; SL_POLICE_LOST: none of it has happened. A function of its own: the verifier follows it once, and not for
 * each attempt.
 */
SL_GLOBAL u64 police_try(u64 *tat SL_NONNULL, u64 now, u64 cost, u64 burst)
{
	u64 seen, next;

	if (!tat)
		return 0;
	seen = *(volatile u64 *)tat;
	if (!police_is_open(seen, now, burst))
		return 0;
	next = sl_max(seen, now) + cost;
	return __sync_val_compare_and_swap(tat, seen, next) == seen ? next : SL_POLICE_LOST;
}

/* Takes what a packet costs; when the bucket is full again, or 0: it is not open. */
SL_FN u64 police_take(u64 *tat, u64 now, u64 cost, u64 burst)
{
	u64 full;
	u32 i;

	for (i = 0; i < SL_POLICE_TRIES; i++) {
		full = police_try(tat, now, cost, burst);
		if (full != SL_POLICE_LOST)
			return full;
	}
	return 0;
}

/*
 * Gives a charge back. full: what police_take said; now: later than every time at which another CPU has taken since. What has been refilled by
 * then is not given back: without the charge the bucket would have been full as much earlier, and holds no more than its burst. A CPU
 * that gives back after another one that took earlier does not know of that, and returns up to what has been refilled since it took: a few us of the rate.
 */
SL_FN void police_give_back(u64 *tat, u64 now, u64 cost, u64 full)
{
	if (full > now)
		__sync_fetch_and_add(tat, -sl_min(cost, full - now));
}

/* Converts a debt from one cost of a byte to another. Debts are kept in bytes, rounded up. */
SL_FN u64 police_owed(u64 owed, u64 from, u64 to)
{
	u64 bytes;

	owed = sl_min(owed, 1ULL << 47);
	bytes = ((owed << 16) + from - 1) / from;
	return bytes >= (1ULL << 62) / to ? 1ULL << 46 : bytes * to >> 16;
}

/* One attempt to convert the debt of a bucket; 0: another CPU has changed it meanwhile. */
SL_GLOBAL int police_convert(u64 *tat SL_NONNULL, u64 now, u64 from, u64 to)
{
	u64 seen, next;

	if (!tat || !from || !to)
		return 1;
	seen = *(volatile u64 *)tat;
	if (seen <= now)
		return 1;
	next = now + police_owed(seen - now, from, to);
	return __sync_val_compare_and_swap(tat, seen, next) == seen;
}

/*
 * The bucket is charged at this cost of a byte from now on; neither is 0. If several CPUs notice the change, one of them converts the debt.
 */
SL_FN void police_adopt(struct sl_police_bucket *b, u64 now, u64 cost)
{
	u64 from = *(volatile u64 *)&b->cost;
	u32 i;

	if (from == cost || !cost || __sync_val_compare_and_swap(&b->cost, from, cost) != from || !from)
		return;
	for (i = 0; i < SL_POLICE_TRIES; i++)
		if (police_convert(&b->tat, now, from, cost))
			return;
}
