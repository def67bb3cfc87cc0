/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The token bucket of a pipe, in 14 bytes: bucket.h with fewer bits. */
#pragma once
#include "world.h"
#include "../abi/pipes.h"

/* The cost of so many bytes, in 1/64 ns. */
SL_FN u64 pipe_cost(u64 bytes, u32 cost)
{
	return (bytes * cost + (1 << (SL_PIPE_COST_BITS - 7))) >> (SL_PIPE_COST_BITS - 6);
}

/* The bucket is open while tat_64ths is no later than this. */
SL_FN u64 pipe_open_until(const struct sl_pipe *k, u64 now_ns)
{
	return (now_ns + ((u64)k->burst_ticks << SL_WHEEL_TICK_BITS)) << 6;
}

SL_FN int pipe_open(const struct sl_pipe *k, u64 now_ns)
{
	return k->tat_64ths <= pipe_open_until(k, now_ns);
}

SL_FN u64 pipe_opens_ns(const struct sl_pipe *k)
{
	u64 full_ns = (k->tat_64ths + 63) >> 6, burst_ns = (u64)k->burst_ticks << SL_WHEEL_TICK_BITS;

	return full_ns > burst_ns ? full_ns - burst_ns : 0;
}

/* New rate and burst. What the bucket owes is kept in bytes, and owed at the new rate. */
SL_FN void pipe_bucket_configure(struct sl_pipe *k, u32 cost, u32 burst_ticks, u64 now_ns)
{
	u64 full = now_ns << 6, owed, bytes;

	if (k->cost && k->cost != cost && k->tat_64ths > full) {
		owed = sl_min(k->tat_64ths - full, 1ULL << 50);
		bytes = sl_min((owed << (SL_PIPE_COST_BITS - 6)) / k->cost, 1ULL << 30);
		k->tat_64ths = full + pipe_cost(bytes, cost);
	}
	k->cost = cost;
	k->burst_ticks = (u16)sl_min(burst_ticks, 0xffffu);
}
