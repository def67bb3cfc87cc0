/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Policing before the queues. A packet must pass every bucket that it is subject to, and is charged to all of them or to none: first
 * each is looked at, then each is charged, and if one has been emptied in between, those before it get back what they gave.
 */
#pragma once
#include "maps.h"
#include "classify.h"
#include "tell.h"
#include "../../sched/police.h"

/* A packet that asks to pass. Small: it is on the stack of whoever asks. */
struct sl_demand {
	struct sl_flow_key flow; /* where the flows of its class are limited */
	u64 now_ns;
	u32 bytes;
	u8 class;
	u8 ecn; /* of the packet */
	u8 direction;
	u8 queued; /* the queue that follows limits its class, and has split it into frames */
};

/* A bucket that a packet is subject to. */
struct sl_toll {
	u64 *tat; /* NULL: it is not */
	u64 cost;
	u64 until; /* its burst; once it has been charged: when it is full again */
};

SL_GLOBAL u64 sl_take(u64 *tat SL_NONNULL, u64 now, u64 cost, u64 burst)
{
	return tat ? police_take(tat, now, cost, burst) : 0;
}

static __always_inline void sl_toll(struct sl_toll *toll, u64 *tat, const struct sl_police_conf *conf, u32 bytes)
{
	toll->tat = tat;
	toll->cost = police_cost(conf->cost, bytes);
	toll->until = conf->burst;
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

/* The buckets that a packet is subject to. */
static __always_inline void sl_find_tolls(struct sl_toll *tolls, const struct sl_tables *t, const struct sl_demand *d)
{
	u32 direction = d->direction & 1, class = d->class & (SL_CLASSES - 1), bytes = d->bytes, zero = 0;
	struct sl_police_state *state = bpf_map_lookup_elem(&police_state, &zero);

	if (!state)
		return;
	if (t->police[direction][class].cost && !d->queued)
		sl_toll(&tolls[SL_LIMIT_CLASS], &state->tat[direction][class], &t->police[direction][class], bytes);
	if (t->flow_police[class].cost)
		sl_toll(&tolls[SL_LIMIT_FLOW], sl_flow_bucket(state, d, direction, class), &t->flow_police[class], bytes);
	if (t->interface_police[direction].cost)
		sl_toll(&tolls[SL_LIMIT_INTERFACE], &state->interface[direction], &t->interface_police[direction], bytes);
	if (t->shared_police[class].cost)
		sl_toll(&tolls[SL_LIMIT_SHARED], sl_shared_bucket(t->buffer & (SL_BUFFERS - 1), direction, class),
			&t->shared_police[class], bytes);
}

/* Which enum sl_limit refuses the packet; SL_LIMITS: none, and it has been charged. */
SL_GLOBAL u32 sl_limit(const struct sl_tables *t SL_NONNULL, const struct sl_demand *d SL_NONNULL)
{
	struct sl_toll tolls[SL_LIMITS] = {};
	u32 i, refused = SL_LIMITS;
	u64 now;

	if (!t || !d)
		return SL_LIMITS;
	now = police_time(d->now_ns);
	sl_find_tolls(tolls, t, d);
#pragma unroll
	for (i = 0; i < SL_LIMITS; i++)
		if (tolls[i].tat && !police_is_open(*(volatile u64 *)tolls[i].tat, now, tolls[i].until))
			return i;
#pragma unroll
	for (i = 0; i < SL_LIMITS; i++) {
		if (refused != SL_LIMITS || !tolls[i].tat)
			continue;
		tolls[i].until = sl_take(tolls[i].tat, now, tolls[i].cost, tolls[i].until);
		if (!tolls[i].until)
			refused = i;
	}
	if (refused == SL_LIMITS)
		return SL_LIMITS;
	now = police_time(bpf_ktime_get_ns());
#pragma unroll
	for (i = 0; i < SL_LIMITS; i++)
		if (i < refused && tolls[i].tat)
			police_give_back(tolls[i].tat, now, tolls[i].cost, tolls[i].until);
	return refused;
}

/* What the buckets hold that a packet is subject to. */
SL_GLOBAL int sl_look_at_buckets(const struct sl_tables *t SL_NONNULL, const struct sl_demand *d SL_NONNULL,
				 struct sl_explanation *e SL_NONNULL)
{
	struct sl_toll tolls[SL_LIMITS] = {};
	u64 now, tat;
	u32 i;

	if (!t || !d || !e)
		return 0;
	now = police_time(d->now_ns);
	sl_find_tolls(tolls, t, d);
#pragma unroll
	for (i = 0; i < SL_LIMITS; i++) {
		tat = tolls[i].tat ? *(volatile u64 *)tolls[i].tat : 0;
		e->buckets[i].burst = tolls[i].tat ? sl_max(tolls[i].until, (u64)1) : 0;
		e->buckets[i].owed = tat > now ? tat - now : 0;
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

/* Whether a bucket refuses the packet, which is counted then: 0, or 1 + its enum sl_limit. */
static __always_inline int sl_is_refused(const struct sl_tables *t, const struct sl_demand *d, u32 pkts)
{
	u32 limit = sl_limit_if_any(t, d);
	struct sl_class_count *count;

	if (sl_likely(limit >= SL_LIMITS))
		return 0;
	count = sl_class_count_at(d->direction, d->class);
	if (count)
		sl_count_add(&count->refused[limit & (SL_LIMITS - 1)], pkts, d->bytes);
	if (sl_events_are_told(d->now_ns))
		sl_tell(d->now_ns, SL_TOLD_EXHAUSTED << 8 | limit, (u32)d->direction << 8 | d->class, d->bytes, 0);
	return 1 + (int)limit;
}
