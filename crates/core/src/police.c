/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The bucket in one word, as functions that Rust can call. */
#include "police.h"

u64 sl_police_take(u64 *tat, u64 now, u64 cost, u64 burst)
{
	return police_take(tat, now, cost, burst);
}

u64 sl_police_cost(u64 per_byte, u32 bytes)
{
	return police_cost(per_byte, bytes);
}

u64 sl_police_time(u64 ns)
{
	return police_time(ns);
}

void sl_police_adopt(struct sl_police_bucket *bucket, u64 now, u64 cost)
{
	police_adopt(bucket, now, cost);
}

void sl_police_give_back(u64 *tat, u64 now, u64 cost, u64 full)
{
	police_give_back(tat, now, cost, full);
}
