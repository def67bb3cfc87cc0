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

/* A bucket that a packet is subject to. Small: a few are on the stack of a program. */
struct sl_bucket_ref {
	struct sl_police_bucket *bucket; /* NULL: it is not */
	u64 full; /* once it has been charged: when it is full again */
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

static __always_inline void sl_refer(struct sl_bucket_ref *ref, struct sl_police_bucket *bucket, u64 cost,
				     const struct sl_request *d)
{
	if (bucket && sl_unlikely(bucket->cost != cost))
		sl_adopt(bucket, police_time(d->now_ns), cost);
	ref->bucket = bucket;
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

/* The buckets that a packet is subject to. */
static __always_inline void sl_find_buckets(struct sl_bucket_ref *refs, const struct sl_tables *t, const struct sl_request *d)
{
	u32 direction = d->direction & 1, class = d->class & (SL_CLASSES - 1), zero = 0;
	struct sl_police_state *state = bpf_map_lookup_elem(&police_state, &zero);
	u64 cost;

	if (!state)
		return;
	cost = sl_limit_conf(t, d, SL_LIMIT_CLASS)->cost;
	if (cost && !(d->flags & SL_QUEUED)) {
		sl_refer(&refs[SL_LIMIT_CLASS], &state->class[direction][class], cost, d);
		cost = sl_limit_conf(t, d, SL_LIMIT_PEAK)->cost; /* of classes with a ceiling only */
		if (cost)
			sl_refer(&refs[SL_LIMIT_PEAK], &state->peak[direction][class], cost, d);
	}
	cost = sl_limit_conf(t, d, SL_LIMIT_FLOW)->cost;
	if (cost)
		sl_refer(&refs[SL_LIMIT_FLOW], sl_flow_bucket(state, d, direction, class), cost, d);
	cost = sl_limit_conf(t, d, SL_LIMIT_INTERFACE)->cost;
	if (cost)
		sl_refer(&refs[SL_LIMIT_INTERFACE], &state->interface[direction], cost, d);
	cost = sl_limit_conf(t, d, SL_LIMIT_SHARED)->cost;
	if (cost)
		sl_refer(&refs[SL_LIMIT_SHARED], sl_shared_bucket(t->buffer & (SL_BUFFERS - 1), direction, class), cost, d);
	cost = sl_limit_conf(t, d, SL_LIMIT_EARLY)->cost;
	if (cost && direction == SL_INGRESS)
		sl_refer(&refs[SL_LIMIT_EARLY], &state->virtual_queue[class], cost, d);
}

/* Which enum sl_limit refuses the packet; SL_LIMITS: none, and it has been charged. */
SL_GLOBAL u32 sl_limit(const struct sl_tables *t SL_NONNULL, const struct sl_request *d SL_NONNULL)
{
	struct sl_bucket_ref refs[SL_BUCKET_REFS] = {};
	u32 i, refused = SL_LIMITS;
	u64 now;

	if (!t || !d)
		return SL_LIMITS;
	now = police_time(d->now_ns);
	sl_find_buckets(refs, t, d);
#pragma unroll
	for (i = 0; i < SL_BUCKET_REFS; i++)
		if (refs[i].bucket && !police_is_open(*(volatile u64 *)&refs[i].bucket->tat, now, sl_limit_conf(t, d, i)->burst))
			return i;
#pragma unroll
	for (i = 0; i < SL_BUCKET_REFS; i++) {
		if (refused != SL_LIMITS || !refs[i].bucket)
			continue;
		refs[i].full = sl_take(&refs[i].bucket->tat, now, sl_cost_of(t, d, i), sl_limit_conf(t, d, i)->burst);
		if (!refs[i].full)
			refused = i;
	}
	if (refused == SL_LIMITS)
		return SL_LIMITS;
	now = police_time(bpf_ktime_get_ns());
#pragma unroll
	for (i = 0; i < SL_BUCKET_REFS; i++)
		if (i < refused && refs[i].bucket)
			police_give_back(&refs[i].bucket->tat, now, sl_cost_of(t, d, i), refs[i].full);
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
	struct sl_bucket_ref refs[SL_BUCKET_REFS] = {};
	u64 now;
	u32 i;

	if (!t || !d)
		return 0;
	now = police_time(d->now_ns);
	sl_find_buckets(refs, t, d);
#pragma unroll
	for (i = 0; i < SL_BUCKET_REFS; i++)
		if (refs[i].bucket)
			police_give_back(&refs[i].bucket->tat, now, sl_cost_of(t, d, i), *(volatile u64 *)&refs[i].bucket->tat);
	return 0;
}

/* The fill of the buckets that a packet is subject to. */
SL_GLOBAL int sl_look_at_buckets(const struct sl_tables *t SL_NONNULL, const struct sl_request *d SL_NONNULL,
				 struct sl_explanation *e SL_NONNULL)
{
	struct sl_bucket_ref refs[SL_BUCKET_REFS] = {};
	u64 now, tat;
	u32 i;

	if (!t || !d || !e)
		return 0;
	now = police_time(d->now_ns);
	sl_find_buckets(refs, t, d);
#pragma unroll
	for (i = 0; i < SL_BUCKET_REFS; i++) {
		tat = refs[i].bucket ? *(volatile u64 *)&refs[i].bucket->tat : 0;
		e->buckets[i].burst = refs[i].bucket ? sl_max(sl_limit_conf(t, d, i)->burst, (u64)1) : 0;
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
