/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Early drop before the queue of engine qdisc: sched/early.h decides, by the state of the very scheduler that queues what arrives. Where no
 * program can look into the queue, it is a bucket that decides: SL_LIMIT_EARLY of police.h.
 */
#pragma once
#include "instances.h"
#include "police.h"
#include "worker.h"
#include "../../sched/early.h"

/* Set before load: a scheduler of ours (engine qdisc or xsk) queues what arrives. If not, the code is removed by the verifier, and there is no map `state`. */
const volatile u32 sl_drops_early = 0;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, u32); /* class; on a wire, receive queue * SL_CLASSES + class */
	__type(value, struct sl_underway);
	__uint(max_entries, SL_CLASSES);
} underway SEC(".maps");

static __noinline int sl_queue_is_full(const struct sl_request *d)
{
	struct sl_packet p = { .class = d->class, .len_bytes = d->bytes, .segments = d->pkts, .flow_hash = d->hash };
	u32 queue = sl_is_wire ? sl_receive_queue(d) : 0, key = queue * SL_CLASSES + p.class;
	struct sl_underway *u = bpf_map_lookup_elem(&underway, &key);
	u64 arrivals = sl_live.arrivals;
	struct sl_sched *s;

	s = arrivals ? sl_state_of(sl_is_wire ? queue : (u32)arrivals - 1) : NULL;
	/* A scheduler that was emptied stays in its place until another takes it. */
	return s && u && s->direction == SL_INGRESS && s->ifindex ? early_drops(s, u, &p, d->now_ns) : 0;
}

/* Counts a packet that the queue has no room for. The enum sl_refusal; SL_NOT_REFUSED: there is room. d->hash is set. */
static __always_inline u32 sl_drop_early(const struct sl_request *d)
{
	/* A packet that passes the process by does not come to its queue. */
	if (sl_is_wire && !sl_worker_is_seen(sl_receive_queue(d), d->now_ns))
		return SL_NOT_REFUSED;
	if (!sl_drops_early || d->direction != SL_INGRESS || sl_likely(!sl_queue_is_full(d)))
		return SL_NOT_REFUSED;
	return sl_refuse_before(d, SL_LIMIT_EARLY);
}
