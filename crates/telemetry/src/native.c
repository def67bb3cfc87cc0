/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The functions of telemetry/ for the laws of this crate. */
#include "bins.h"
#include "heavy.h"
#include "sample.h"

struct sl_telemetry_functions {
	u64 (*count)(struct sl_heavy_set *set, const struct sl_count_key *key, u32 pkts, u32 bytes);
	u32 (*step)(u64 filled_bytes, u32 ring_bytes);
	u32 (*draw)(u64 *state);
	u32 (*is_chosen)(u32 random, u32 step);
	u32 (*is_one_in)(u32 random, u32 n);
	u32 (*bin)(u64 size);
	u64 (*first)(u32 bin);
};

static u64 count(struct sl_heavy_set *set, const struct sl_count_key *key, u32 pkts, u32 bytes)
{
	return heavy_count(set, key, pkts, bytes);
}

static u32 step(u64 filled_bytes, u32 ring_bytes)
{
	return sample_step(filled_bytes, ring_bytes);
}

static u32 draw(u64 *state)
{
	return sample_draw(state);
}

static u32 is_chosen(u32 random, u32 step)
{
	return sample_is_chosen(random, step);
}

static u32 is_one_in(u32 random, u32 n)
{
	return sample_is_one_in(random, n);
}

static u32 bin(u64 size)
{
	return bin_of(size);
}

static u64 first(u32 bin)
{
	return bin_first(bin);
}

const struct sl_telemetry_functions sl_telemetry_functions = { count, step, draw, is_chosen, is_one_in, bin, first };
