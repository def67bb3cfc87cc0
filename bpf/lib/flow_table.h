/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The flow table: sets of four ways, by a keyed hash of the flow. A flow is one cache line, and what few packets look at is in another. In a
 * full set, the flow that has been silent for longest is replaced.
 *
 * CPUs share the table without locks. A CPU that replaces an entry claims it first (a compare-and-swap of its choice), and publishes the
 * choice when the rest is written; a claimed entry has no choice. A reader compares the key again after it has read the choice. A key that is half
 * old and half new holds 14 bits of its own flow's hash. Counters are added to without atomic operations: where two CPUs have packets of one flow
 * in one direction at the same moment, one of both may not be counted, and a CPU that counts in an entry while another replaces it may leave the
 * old sums there.
 */
#pragma once
#include "flow_hash.h"
#include "maps.h"
#include "parse.h"

_Static_assert(sizeof(struct sl_flow) == 64, "one cache line");
_Static_assert(sizeof(struct sl_flow_set) == 512, "whole cache lines");

static __always_inline struct sl_flow_set *sl_flow_set_of(u32 hash)
{
	u32 n = hash & sl_hash.flow_mask;

	return bpf_map_lookup_elem(&flows, &n);
}

/* The last word of a key as entries have it. The set is chosen by the lower bits of the hash, the tag is of the upper ones. */
static __always_inline u64 sl_flow_tail(const struct sl_flow_key *flow, u32 hash)
{
	return ((const u64 *)flow)[4] | ((u64)hash << 32 & SL_FLOW_TAG);
}

/* Whether entry f is of the flow with this key; tail is the key's last word with SL_FLOW_TAG. */
static __always_inline int sl_flow_has_key(const struct sl_flow *f, const u64 *key, u64 tail)
{
	return f->key[4] == tail && f->key[3] == key[3] && f->key[1] == key[1] && f->key[2] == key[2] && f->key[0] == key[0];
}

/* The way of a set in which the flow stands, or SL_FLOW_SET_WAYS. A global function, so that the verifier knows nothing of its answer. */
SL_GLOBAL u32 sl_flow_way(const struct sl_flow_set *set SL_NONNULL, const struct sl_flow_key *flow SL_NONNULL, u32 hash)
{
	u64 tail;
	u32 i;

	if (!set || !flow)
		return SL_FLOW_SET_WAYS;
	tail = sl_flow_tail(flow, hash);
#pragma unroll
	for (i = 0; i < SL_FLOW_SET_WAYS; i++)
		if (sl_flow_has_key(&set->flow[i], (const u64 *)flow, tail))
			return i;
	return SL_FLOW_SET_WAYS;
}

/* The way of a set whose flow gives way to a new one: an empty one, else the one that has been silent for longest. */
SL_GLOBAL u32 sl_flow_victim(const struct sl_flow_set *set SL_NONNULL, u32 tick)
{
	u32 i, age, oldest = 0, found = 0;

	if (!set)
		return 0;
#pragma unroll
	for (i = 0; i < SL_FLOW_SET_WAYS; i++) {
		age = tick - set->flow[i].last_tick;
		if (age + SL_TICKS_AHEAD < SL_TICKS_AHEAD)
			age = 0; /* another CPU's clock is ahead */
		if (!set->flow[i].choice)
			age = ~0u;
		if (age > oldest) {
			oldest = age;
			found = i;
		}
	}
	return found;
}

static __always_inline u32 sl_tick(u64 now_ns)
{
	return (u32)(now_ns >> SL_TICK_SHIFT);
}

/* Counts packets in an entry. */
static __always_inline void sl_flow_count(struct sl_flow *flow, struct sl_flow_detail *detail, u32 pkts, u32 bytes, u64 now_ns)
{
	u32 sum = flow->pkts + pkts;

	flow->pkts = sum;
	if (sl_unlikely(sum < pkts))
		detail->pkts_high++;
	flow->bytes += bytes;
	flow->last_tick = sl_tick(now_ns);
}

/* The bucket of a flow, or NULL: it has no entry. */
static __always_inline struct sl_police_bucket *sl_bucket_of_flow(const struct sl_flow_key *flow, u32 hash)
{
	struct sl_flow_set *set = sl_flow_set_of(hash);
	u32 way;

	if (!set)
		return NULL;
	way = sl_flow_way(set, flow, hash);
	return way < SL_FLOW_SET_WAYS ? &sl_at(set->detail, way)->bucket : NULL;
}
