/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The fast path of a lone packet: one that comes to an empty scheduler and leaves before another comes. It waits in its slot, on top of the
 * free ones, and in no queue; its class is not ready; s->lone says so. If another packet comes, or another configuration, the first
 * one takes the slow path after all, with the time at which it came (lone_end).
 *
 * Packets take it only in classes without ceiling, guarantee and policer, and without a bucket before the queue (sl_keep_from_fast_path), under
 * a discipline with the operation pass. The only packet of a class that queues by flow is not charged to its flow on the slow path either
 * (flow_queue.h, Alone). The engine may therefore set the flow when the packet takes the slow path (sl_lone_slot_by_flow).
 *
 * Both paths show a caller the same: slots, verdicts, counters, and what disciplines keep once the packet has left. The laws
 * lone::equals_the_slow_path and lone::flows_may_be_set_late compare them.
 */
#pragma once
#include "backlog.h"
#include "class_flows.h"
#include "queue.h"
#include "registry.h"

/* Bytes of the longest packet of class k that may take the fast path under this discipline; 0: none may. */
SL_FN u32 lone_limit_bytes(const struct sl_class *k, u32 kind)
{
	if (!k->limit_pkts || k->ceiling || bucket_limits(&k->ceil) || bucket_limits(&k->rate) || !sl_has_pass(kind))
		return 0;
	return k->limit_bytes;
}

/* Whether a packet of so many bytes, at least one, may take the fast path. sl_reap would put a dropped slot above its own on the free stack. */
SL_FN int lone_may(const struct sl_sched *s, const struct sl_class *k, u32 len_bytes)
{
	return !(s->backlog_pkts | s->dropped_slots) && s->free_count && len_bytes <= k->lone_bytes;
}

/* The slot of a packet that takes the fast path: class c, which is *k. */
SL_FN u32 lone_begin(struct sl_sched *s, struct sl_class *k, u32 c, u32 len_bytes, u32 wire_bytes, u64 now_ns)
{
	slot_fill(sl_at(s->slot, s->free), c, len_bytes, wire_bytes, now_ns);
	backlog_begin(s, k, len_bytes);
	s->lone = 1;
	return s->free;
}

/*
 * The slot of the lone packet if its class queues by flow, else SL_NO_SLOT. The caller sets its flow (slot_identify) before sl_enqueue_queued and
 * before sl_configure.
 */
SL_FN u32 sl_lone_slot_by_flow(struct sl_sched *s)
{
	if (sl_likely(!s->lone) || !sl_at(s->classes, sl_at(s->slot, s->free)->class)->by_flow)
		return SL_NO_SLOT;
	return s->free;
}

/* The lone packet, whose slot is *q, is sent. */
SL_FN void lone_take(struct sl_sched *s, const struct sl_slot *q, u64 now_ns)
{
	u32 c = q->class;
	struct sl_class *k = sl_at(s->classes, c);

	s->lone = 0;
	sl_pass(s, k, c, q->len_bytes, q->arrived_ns); /* before the link is charged: disciplines ask whether it was idle */
	backlog_end(s, k, q, c, now_ns);
}

/* The lone packet takes the slow path: it comes to its queue, and its class joins. */
SL_GLOBAL int lone_end(struct sl_sched *s SL_NONNULL)
{
	u32 slot = slot_take(s), c;
	struct sl_slot *q = sl_at(s->slot, slot);
	struct sl_class *k;

	c = q->class;
	k = sl_at(s->classes, c);
	s->lone = 0;
	k->backlog_pkts = 0;
	if (k->by_flow)
		flow_enter(s, k, c, slot, 0, q->arrived_ns);
	else
		sl_push(s, k, slot);
	sl_join(s, k, c, q->arrived_ns);
	k->backlog_pkts = 1;
	return 0;
}
