/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Token bucket, by the generic cell rate algorithm (ITU-T I.371, virtual scheduling).
 *
 * The bucket is the time at which it will be full again. It is open while it holds any credit, and a packet that
 * leaves may take it into debt: so a packet longer than the burst still goes, and what has gone is paid for before the
 * next. In any window of t seconds no more than rate * t + burst + one packet departs. Fractions of a ns are carried
 * over from charge to charge, so the long-run rate is exact to the resolution of cost (2^-20 ns per byte).
 */
#pragma once
#include "world.h"
#include "../abi/sched.h"

SL_FN int bucket_limits(const struct sl_bucket *b)
{
	return b->cost != 0;
}

SL_FN int bucket_open(const struct sl_bucket *b, u64 now_ns)
{
	return b->tat_ns <= now_ns + b->burst_ns;
}

/* When it is open again; 0 for one that has never been charged. */
SL_FN u64 bucket_opens_ns(const struct sl_bucket *b)
{
	return b->tat_ns > b->burst_ns ? b->tat_ns - b->burst_ns : 0;
}

SL_FN void bucket_charge(struct sl_bucket *b, u32 bytes, u64 now_ns)
{
	u64 sum;

	if (!b->cost)
		return;
	sum = bytes * b->cost + b->frac;
	if (b->tat_ns < now_ns)
		b->tat_ns = now_ns;
	b->tat_ns += sum >> 20;
	b->frac = sum & ((1 << 20) - 1);
}

/* New rate and burst. What the bucket owes is kept in bytes, and owed at the new rate. */
SL_FN void bucket_configure(struct sl_bucket *b, u64 cost, u64 burst_ns, u64 now_ns)
{
	if (b->cost && b->cost != cost && b->tat_ns > now_ns) {
		u64 owed_ns = sl_min(b->tat_ns - now_ns, 16000000000000ULL); /* << 20 fits */
		u64 bytes = sl_min((owed_ns << 20) / b->cost, 1ULL << 24);

		b->tat_ns = now_ns + (bytes * cost >> 20);
	}
	b->cost = cost;
	b->burst_ns = burst_ns;
}
