/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Counts of keys in a bounded table, for finding those that send most (heavy hitters): Space-Saving (Metwally, Agrawal and El Abbadi 2005)
 * within sets of SL_HEAVY_WAYS places.
 *
 * A key has its place in the set of its hash. Where that set is full, the key with the least bytes that it can have sent gives way, and the set
 * remembers how much any key that is not in it can have sent at most: pkts_gone and bytes_gone. A key that comes in begins at 0, and may have
 * sent that much before. So of each key in the table
 *
 *	pkts <= what it has sent <= pkts + pkts_missed
 *
 * and of each other key: what it has sent <= pkts_gone of its set; likewise in bytes. A key that sends more than bytes_gone of its set is in
 * the table. Nothing is said of the table as a whole that depends on the traffic: every figure has its own bound.
 */
#pragma once
#include "../abi/telemetry.h"
#include "../sched/world.h"

SL_FN u32 heavy_keys_are_equal(const struct sl_count_key *a, const struct sl_count_key *b)
{
	const u64 *x = (const u64 *)a, *y = (const u64 *)b;

	return !((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]) | (x[3] ^ y[3]) | (x[4] ^ y[4]) | (x[5] ^ y[5]));
}

/* The way of a key, or SL_HEAVY_WAYS. */
SL_FN u32 heavy_find(const struct sl_heavy_set *set, const struct sl_count_key *key)
{
	u32 i, found = SL_HEAVY_WAYS;

	SL_UNROLLED
	for (i = 0; i < SL_HEAVY_WAYS; i++)
		if (set->way[i].pkts && heavy_keys_are_equal(&set->way[i].key, key))
			found = i;
	return found;
}

/* The way that a new key takes: a free one, or that of the key which can have sent the least bytes. */
SL_FN u32 heavy_victim(const struct sl_heavy_set *set)
{
	u64 least = ~0ULL, most;
	u32 i, victim = 0;

	SL_UNROLLED
	for (i = 0; i < SL_HEAVY_WAYS; i++) {
		most = set->way[i].pkts ? set->way[i].bytes + set->way[i].bytes_missed + 1 : 0;
		if (most < least) {
			least = most;
			victim = i;
		}
	}
	return victim;
}

/* Counts packets of a key. Returns the bytes of the key that gave way for it, or 0. */
SL_FN u64 heavy_count(struct sl_heavy_set *set, const struct sl_count_key *key, u32 pkts, u32 bytes)
{
	u32 way = heavy_find(set, key);
	struct sl_heavy *h;
	u64 gone = 0;

	if (way >= SL_HEAVY_WAYS) {
		way = heavy_victim(set);
		h = sl_at(set->way, way);
		if (h->pkts) {
			gone = h->bytes;
			set->pkts_gone = sl_max(set->pkts_gone, h->pkts + h->pkts_missed);
			set->bytes_gone = sl_max(set->bytes_gone, h->bytes + h->bytes_missed);
		}
		h->key = *key;
		h->pkts = h->bytes = 0;
		h->pkts_missed = set->pkts_gone;
		h->bytes_missed = set->bytes_gone;
	}
	h = sl_at(set->way, way);
	h->pkts += pkts;
	h->bytes += bytes;
	return gone;
}
