/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Policing before the queues. A packet must pass every bucket that it is subject to, and is charged to all of them or to none: first
 * each is looked at, then each is charged, and if one has been emptied in between, those before it get back what they gave. The bucket of the
 * built-in rules comes before all of them, and keeps what it took.
 */
#pragma once
#include "maps.h"
#include "classify.h"
#include "events.h"
#include "../../sched/police.h"

/* Buckets that a packet is charged to together; that of the built-in rules comes before them. */
#define SL_BUCKET_REFS SL_LIMIT_CONTROL

/* The buckets that take a look-up to find. NULL: the packet is subject to no such bucket. */
struct sl_found_buckets {
	struct sl_police_bucket *flow, *shared;
};

/* The charges of a packet: for each bucket, the time at which that bucket is full again; 0: the bucket was not charged. */
struct sl_charges {
	u64 full[SL_BUCKET_REFS];
};

SL_GLOBAL u64 sl_take(u64 *tat SL_NONNULL, u64 now, u64 cost, u64 burst)
{
	return tat ? police_take(tat, now, cost, burst) : 0;
}

SL_GLOBAL int sl_adopt(struct sl_police_bucket *bucket SL_NONNULL, u64 now, u64 cost)
{
	if (bucket)
		police_adopt(bucket, now, cost);
	return 0;
}

/* Rate and burst of a bucket, which enum sl_limit names. */
static __always_inline const struct sl_police_conf *sl_limit_conf(const struct sl_tables *t, const struct sl_request *d,
								  u32 limit)
{
	u32 direction = d->direction & 1, class = d->class & (SL_CLASSES - 1);

	switch (limit) {
	case SL_LIMIT_CLASS:
		return &t->police[direction][class];
	case SL_LIMIT_PEAK:
		return &t->peak_police[class];
	case SL_LIMIT_FLOW:
		return &t->flow_police[class];
	case SL_LIMIT_INTERFACE:
		return &t->interface_police[direction];
	case SL_LIMIT_EARLY:
		return &t->virtual_queue[class];
	default:
		return &t->shared_police[class];
	}
}

static __always_inline u64 sl_cost_of(const struct sl_tables *t, const struct sl_request *d, u32 limit)
{
	return police_cost(sl_limit_conf(t, d, limit)->cost, d->bytes);
}

/*
 * The bucket of a flow is in its entry. Flows without one share a few buckets, by their hash: so a flood of them is limited too, and does
 * not take everything from a flow that is about to get its entry.
 */
static __always_inline struct sl_police_bucket *sl_flow_bucket(struct sl_police_state *state, const struct sl_request *d,
							       u32 direction, u32 class)
{
	struct sl_police_bucket *bucket = sl_bucket_of_flow(&d->flow, d->hash);

	return bucket ? bucket : sl_at(state->overflow[direction][class], d->hash);
}

/* The bucket of the machine that a class of this policy takes from. */
static __always_inline struct sl_police_bucket *sl_shared_bucket(u32 buffer, u32 direction, u32 class)
{
	u32 key = buffer * SL_CLASSES + class, zero = 0;
	struct sl_shared_state *state;
	void *map = bpf_map_lookup_elem(&shared, &key);

	if (!map)
		return NULL;
	state = bpf_map_lookup_elem(map, &zero);
	return state ? &state->bucket[direction] : NULL;
}

static __always_inline void sl_find_buckets(struct sl_found_buckets *found, struct sl_police_state *state,
					    const struct sl_tables *t, const struct sl_request *d)
{
	u32 direction = d->direction & 1, class = d->class & (SL_CLASSES - 1);

	if (sl_limit_conf(t, d, SL_LIMIT_FLOW)->cost)
		found->flow = sl_flow_bucket(state, d, direction, class);
	if (sl_limit_conf(t, d, SL_LIMIT_SHARED)->cost)
		found->shared = sl_shared_bucket(t->buffer & (SL_BUFFERS - 1), direction, class);
}

/*
 * The bucket of an enum sl_limit that a packet is subject to, or NULL. Buckets are found again at each use rather than kept: the verifier
 * would follow each combination of those that are there and those that are not.
 */
static __always_inline struct sl_police_bucket *sl_bucket(struct sl_police_state *state, const struct sl_found_buckets *found,
							  const struct sl_tables *t, const struct sl_request *d, u32 limit)
{
	u32 direction = d->direction & 1, class = d->class & (SL_CLASSES - 1);

	if (!sl_limit_conf(t, d, limit)->cost)
		return NULL;
	switch (limit) {
	case SL_LIMIT_CLASS:
		return d->flags & SL_QUEUED ? NULL : &state->class[direction][class];
	case SL_LIMIT_PEAK: /* of classes with a ceiling only */
		return d->flags & SL_QUEUED ? NULL : &state->peak[direction][class];
	case SL_LIMIT_FLOW:
		return found->flow;
	case SL_LIMIT_INTERFACE:
		return &state->interface[direction];
	case SL_LIMIT_EARLY:
		return direction == SL_INGRESS ? &state->virtual_queue[class] : NULL;
	default:
		return found->shared;
	}
}

/* The same, for the first use: what the bucket owes is converted to the cost of this policy. */
static __always_inline struct sl_police_bucket *sl_bucket_at_its_cost(struct sl_police_state *state,
								      const struct sl_found_buckets *found,
								      const struct sl_tables *t, const struct sl_request *d,
								      u32 limit)
{
	struct sl_police_bucket *bucket = sl_bucket(state, found, t, d, limit);
	u64 cost = sl_limit_conf(t, d, limit)->cost;

	if (bucket && sl_unlikely(bucket->cost != cost))
		sl_adopt(bucket, police_time(d->now_ns), cost);
	return bucket;
}

/* Gives back to each bucket what it was charged for a packet. now: as of police_give_back. */
static __always_inline void sl_give_back(struct sl_police_state *state, const struct sl_found_buckets *found,
					 const struct sl_tables *t, const struct sl_request *d, const struct sl_charges *charges,
					 u64 now)
{
	struct sl_police_bucket *bucket;
	u32 i;

#pragma unroll
	for (i = 0; i < SL_BUCKET_REFS; i++) {
		bucket = sl_bucket(state, found, t, d, i);
		if (bucket)
			police_give_back(&bucket->tat, now, sl_cost_of(t, d, i), charges->full[i]);
	}
}

/* Which enum sl_limit refuses the packet; SL_LIMITS: none, and it has been charged. */
SL_GLOBAL u32 sl_limit(const struct sl_tables *t SL_NONNULL, const struct sl_request *d SL_NONNULL)
{
	struct sl_found_buckets found = {};
	struct sl_charges charges = {};
	u32 i, refused = SL_LIMITS, zero = 0;
	struct sl_police_state *state;
	struct sl_police_bucket *bucket;
	u64 now;

	state = bpf_map_lookup_elem(&police_state, &zero);
	if (!t || !d || !state)
		return SL_LIMITS;
	now = police_time(d->now_ns);
	sl_find_buckets(&found, state, t, d);
#pragma unroll
	for (i = 0; i < SL_BUCKET_REFS; i++) {
		bucket = sl_bucket_at_its_cost(state, &found, t, d, i);
		if (bucket && !police_is_open(*(volatile u64 *)&bucket->tat, now, sl_limit_conf(t, d, i)->burst))
			return i;
	}
#pragma unroll
	for (i = 0; i < SL_BUCKET_REFS; i++) {
		bucket = sl_bucket(state, &found, t, d, i);
		if (refused != SL_LIMITS || !bucket)
			continue;
		charges.full[i] = sl_take(&bucket->tat, now, sl_cost_of(t, d, i), sl_limit_conf(t, d, i)->burst);
		if (!charges.full[i])
			refused = i;
	}
	if (refused != SL_LIMITS)
		sl_give_back(state, &found, t, d, &charges, police_time(bpf_ktime_get_ns()));
	return refused;
}

/* Whether the built-in rules let the packet through, which one of them has chosen; it is charged to their bucket then. */
SL_GLOBAL int sl_control_passes(const struct sl_request *d SL_NONNULL)
{
	struct sl_police_state *state;
	u32 zero = 0;

	state = bpf_map_lookup_elem(&police_state, &zero);
	if (!d || !state)
		return 1;
	return police_take(&state->control[d->direction & 1].tat, police_time(d->now_ns), police_cost(SL_CONTROL_COST, d->bytes),
			   SL_CONTROL_BURST) != 0;
}

/* Gives back to the buckets what a packet was charged that the queue refuses then: only what is accepted counts. */
SL_GLOBAL int sl_refund(const struct sl_tables *t SL_NONNULL, const struct sl_request *d SL_NONNULL)
{
	struct sl_found_buckets found = {};
	struct sl_police_state *state;
	struct sl_police_bucket *bucket;
	u32 i, zero = 0;

	state = bpf_map_lookup_elem(&police_state, &zero);
	if (!t || !d || !state)
		return 0;
	sl_find_buckets(&found, state, t, d);
#pragma unroll
	for (i = 0; i < SL_BUCKET_REFS; i++) {
		bucket = sl_bucket_at_its_cost(state, &found, t, d, i);
		if (bucket)
			police_give_back(&bucket->tat, police_time(d->now_ns), sl_cost_of(t, d, i),
					 *(volatile u64 *)&bucket->tat);
	}
	return 0;
}

/* The fill of the buckets that a packet is subject to. */
SL_GLOBAL int sl_look_at_buckets(const struct sl_tables *t SL_NONNULL, const struct sl_request *d SL_NONNULL,
				 struct sl_explanation *e SL_NONNULL)
{
	struct sl_found_buckets found = {};
	struct sl_police_state *state;
	struct sl_police_bucket *bucket;
	u32 i, zero = 0;
	u64 now, tat;

	state = bpf_map_lookup_elem(&police_state, &zero);
	if (!t || !d || !e || !state)
		return 0;
	now = police_time(d->now_ns);
	sl_find_buckets(&found, state, t, d);
#pragma unroll
	for (i = 0; i < SL_BUCKET_REFS; i++) {
		bucket = sl_bucket_at_its_cost(state, &found, t, d, i);
		tat = bucket ? *(volatile u64 *)&bucket->tat : 0;
		e->buckets[i].burst = bucket ? sl_max(sl_limit_conf(t, d, i)->burst, (u64)1) : 0;
		e->buckets[i].owed = tat > now ? tat - now : 0;
	}
	return 0;
}

static __always_inline int sl_flows_are_limited(const struct sl_tables *t, u32 class)
{
	return sl_at(t->flow_police, class)->cost != 0;
}

/* Whether any bucket before the queues may refuse the packet. */
static __always_inline int sl_is_limited(const struct sl_tables *t, const struct sl_request *d)
{
	return t->limited[d->direction & 1] >> (d->class & (SL_CLASSES - 1)) & 1 || sl_unlikely(d->flags & SL_CONTROL);
}

static __always_inline struct sl_class_count *sl_class_count_at(u32 direction, u32 class)
{
	u32 key = (direction & 1) * SL_CLASSES + (class & (SL_CLASSES - 1));

	return bpf_map_lookup_elem(&class_counts, &key);
}

/* Counts a packet as refused before the queue, and tells listeners. The enum sl_refusal. */
static __always_inline u32 sl_refuse_before(const struct sl_request *d, u32 limit)
{
	struct sl_class_count *count = sl_class_count_at(d->direction, d->class);
	u32 event = limit == SL_LIMIT_EARLY ? SL_EVENT(SL_EVENT_DROPS, SL_LIMITED(limit)) : SL_EVENT(SL_EVENT_EXHAUSTED, limit);

	if (count)
		sl_count_add(sl_at(count->refused, limit), d->pkts, d->bytes);
	if (sl_events_are_on(d->now_ns))
		sl_emit(d->now_ns, event, (u32)d->direction << 8 | d->class, d->bytes, 0);
	return SL_LIMITED(limit);
}

/* Charges the packet to its buckets, or counts it as refused by one. Which enum sl_refusal. */
static __always_inline u32 sl_police(const struct sl_tables *t, const struct sl_request *d)
{
	u32 limit;

	if (sl_likely(!sl_is_limited(t, d)))
		return SL_NOT_REFUSED;
	limit = sl_unlikely(d->flags & SL_CONTROL) && !sl_control_passes(d) ? SL_LIMIT_CONTROL : sl_limit(t, d);
	return sl_likely(limit >= SL_LIMITS) ? SL_NOT_REFUSED : sl_refuse_before(d, limit);
}
