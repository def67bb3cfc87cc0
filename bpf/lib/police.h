/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Policing before the queues. A packet must pass every bucket that it is subject to, and is charged to all of them or to none: first
 * each is looked at, then each is charged, and if one has been emptied in between, those before it get back what they gave.
 */
#pragma once
#include "maps.h"
#include "classify.h"
#include "../../sched/police.h"

/* A packet that asks to pass. */
struct sl_demand {
	struct sl_flow_key flow; /* where the flows of its class are limited */
	u64 now_ns;
	u32 direction;
	u32 class;
	u32 bytes;
	u32 queued; /* the queue that follows limits its class, and has split it into frames */
};

SL_GLOBAL u64 sl_take(u64 *tat SL_NONNULL, u64 now, u64 cost, u64 burst)
{
	return tat ? police_take(tat, now, cost, burst) : 0;
}

SL_GLOBAL int sl_give_back(u64 *tat SL_NONNULL, u64 now, u64 cost, u64 full)
{
	if (tat)
		police_give_back(tat, now, cost, full);
	return 0;
}

/* The rate of an enum sl_limit. */
static __always_inline const struct sl_police_conf *sl_rate_of(const struct sl_tables *t, u32 limit, u32 direction, u32 class)
{
	switch (limit) {
	case SL_LIMIT_CLASS:
		return &t->police[direction & 1][class & (SL_CLASSES - 1)];
	case SL_LIMIT_FLOW:
		return &t->flow_police[class & (SL_CLASSES - 1)];
	case SL_LIMIT_INTERFACE:
		return &t->interface_police[direction & 1];
	default:
		return &t->shared_police[class & (SL_CLASSES - 1)];
	}
}

/* The bucket of a flow is in its entry. Flows without one share a bucket, so that a flood of them is limited too. */
static __always_inline u64 *sl_flow_bucket(struct sl_police_state *state, const struct sl_demand *d, u32 direction, u32 class)
{
	struct sl_flow_key key = d->flow;
	struct sl_flow *flow = bpf_map_lookup_elem(&flows, &key);

	return flow ? &flow->tat : &state->overflow[direction][class];
}

/* The bucket of the machine that a class of this policy takes from. */
static __always_inline u64 *sl_shared_bucket(u32 buffer, u32 direction, u32 class)
{
	u32 key = buffer * SL_CLASSES + class, zero = 0;
	struct sl_shared_state *state;
	void *map = bpf_map_lookup_elem(&shared, &key);

	if (!map)
		return NULL;
	state = bpf_map_lookup_elem(map, &zero);
	return state ? &state->tat[direction] : NULL;
}

/* The buckets that a packet is subject to, by enum sl_limit; NULL: it is not. */
static __always_inline void sl_find_buckets(u64 **tat, const struct sl_tables *t, const struct sl_demand *d)
{
	u32 direction = d->direction & 1, class = d->class & (SL_CLASSES - 1), zero = 0;
	struct sl_police_state *state = bpf_map_lookup_elem(&police_state, &zero);

	if (!state)
		return;
	if (sl_rate_of(t, SL_LIMIT_CLASS, direction, class)->cost && !d->queued)
		tat[SL_LIMIT_CLASS] = &state->tat[direction][class];
	if (sl_rate_of(t, SL_LIMIT_FLOW, direction, class)->cost)
		tat[SL_LIMIT_FLOW] = sl_flow_bucket(state, d, direction, class);
	if (sl_rate_of(t, SL_LIMIT_INTERFACE, direction, class)->cost)
		tat[SL_LIMIT_INTERFACE] = &state->interface[direction];
	if (sl_rate_of(t, SL_LIMIT_SHARED, direction, class)->cost)
		tat[SL_LIMIT_SHARED] = sl_shared_bucket(t->buffer & (SL_BUFFERS - 1), direction, class);
}

/* Which enum sl_limit refuses the packet; SL_LIMITS: none, and it has been charged. */
SL_GLOBAL u32 sl_limit(const struct sl_tables *t SL_NONNULL, const struct sl_demand *d SL_NONNULL)
{
	u64 *tat[SL_LIMITS] = {}, full[SL_LIMITS] = {}, now;
	const struct sl_police_conf *rate;
	u32 i, refused = SL_LIMITS;

	if (!t || !d)
		return SL_LIMITS;
	now = police_time(d->now_ns);
	sl_find_buckets(tat, t, d);
#pragma unroll
	for (i = 0; i < SL_LIMITS; i++)
		if (tat[i] && !police_is_open(*(volatile u64 *)tat[i], now, sl_rate_of(t, i, d->direction, d->class)->burst))
			return i;
#pragma unroll
	for (i = 0; i < SL_LIMITS; i++) {
		if (refused != SL_LIMITS || !tat[i])
			continue;
		rate = sl_rate_of(t, i, d->direction, d->class);
		full[i] = sl_take(tat[i], now, police_cost(rate->cost, d->bytes), rate->burst);
		if (!full[i])
			refused = i;
	}
	if (refused == SL_LIMITS)
		return SL_LIMITS;
	now = police_time(bpf_ktime_get_ns());
#pragma unroll
	for (i = 0; i < SL_LIMITS; i++) {
		rate = sl_rate_of(t, i, d->direction, d->class);
		if (tat[i] && full[i])
			sl_give_back(tat[i], now, police_cost(rate->cost, d->bytes), full[i]);
	}
	return refused;
}

/* What the buckets hold that a packet is subject to. */
SL_GLOBAL int sl_look_at_buckets(const struct sl_tables *t SL_NONNULL, const struct sl_demand *d SL_NONNULL,
				 struct sl_explanation *e SL_NONNULL)
{
	u64 *tat[SL_LIMITS] = {}, now, full;
	u32 i;

	if (!t || !d || !e)
		return 0;
	now = police_time(d->now_ns);
	sl_find_buckets(tat, t, d);
#pragma unroll
	for (i = 0; i < SL_LIMITS; i++) {
		full = tat[i] ? *(volatile u64 *)tat[i] : 0;
		e->buckets[i].burst = tat[i] ? sl_max(sl_rate_of(t, i, d->direction, d->class)->burst, (u64)1) : 0;
		e->buckets[i].owed = full > now ? full - now : 0;
	}
	return 0;
}

static __always_inline int sl_flows_are_limited(const struct sl_tables *t, u32 class)
{
	return sl_at(t->flow_police, class)->cost != 0;
}

/* Likewise, without a call where nothing limits the class. */
static __always_inline u32 sl_limit_if_any(const struct sl_tables *t, const struct sl_demand *d)
{
	if (!(t->limited[d->direction & 1] >> (d->class & (SL_CLASSES - 1)) & 1))
		return SL_LIMITS;
	return sl_limit(t, d);
}

static __always_inline struct sl_class_count *sl_class_count_at(u32 direction, u32 class)
{
	u32 key = (direction & 1) * SL_CLASSES + (class & (SL_CLASSES - 1));

	return bpf_map_lookup_elem(&class_counts, &key);
}

/* Whether a bucket refuses the packet, which is counted then. */
static __always_inline int sl_is_refused(const struct sl_tables *t, const struct sl_demand *d, u32 pkts)
{
	u32 limit = sl_limit_if_any(t, d);
	struct sl_class_count *count;

	if (sl_likely(limit >= SL_LIMITS))
		return 0;
	count = sl_class_count_at(d->direction, d->class);
	if (count)
		sl_count_add(&count->refused[limit & (SL_LIMITS - 1)], pkts, d->bytes);
	return 1;
}
