/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Another configuration for classes that queue by flow: flows dissolve into the FIFOs of their classes, queues are divided anew, and
 * flows form again. What a flow has used is forgotten. But where all that is as before, flows stay.
 */
#pragma once
#include "class_flows.h"
#include "registry.h"

/* A class's by_flow, for a moment: the packets that it has were queued without knowing their flows. */
#define SL_FLOW_UNKNOWN 2u

SL_FN void flow_forget_class(struct sl_sched *s, u32 class)
{
	struct sl_fair *fair = sl_at(s->fair, class);

	fair->wheel_used = 0;
	fair->rests_since_ns = 0;
	fair->round = 0;
	fair->alone = fair->sizes = 0;
	__builtin_memset(fair->longer, 0, sizeof(fair->longer));
	fair->sparse_flows = fair->swift_flows = 0;
}

/* No flow has packets, and none is remembered. */
SL_GLOBAL int flow_forget(struct sl_sched *s SL_NONNULL)
{
	u32 i;

	sl_for (i, SL_CLASSES)
		flow_forget_class(s, i);
	s->can_give = 0;
	sl_for (i, SL_HOSTS) {
		__builtin_memset(sl_at(s->src_hosts.host, i), 0, sizeof(struct sl_host));
		__builtin_memset(sl_at(s->dst_hosts.host, i), 0, sizeof(struct sl_host));
	}
	sl_for (i, SL_FLOW_QUEUES)
		__builtin_memset(flow_at(s, i), 0, sizeof(struct sl_flow_queue));
	return 0;
}

/* Every packet returns to the FIFO of its class, flow after flow. */
SL_GLOBAL int flow_dissolve(struct sl_sched *s SL_NONNULL)
{
	u64 filled = 0;
	u32 i, c;

	sl_for (c, SL_CLASSES) {
		struct sl_fair *fair = sl_at(s->fair, c);

		if (fair->alone)
			queue_push(s, &sl_at(s->classes, c)->queue, fair->alone - 1, 1);
	}
	sl_for (i, SL_FLOW_QUEUES) {
		struct sl_flow_queue *f = flow_at(s, i);
		struct sl_class *k;

		if (!f->backlog_pkts)
			continue;
		c = sl_at(s->slot, f->queue.head)->class;
		k = sl_at(s->classes, c);
		queue_append(s, &k->queue, &f->queue, !(filled & SL_BIT(c)));
		filled |= SL_BIT(c);
	}
	return flow_forget(s);
}

/* Whether flows may stay where they are, with what they have used. */
SL_GLOBAL int flow_stays(struct sl_sched *s SL_NONNULL, const struct sl_sched_conf *f SL_NONNULL)
{
	u32 c;

	if (!s->generation || sl_ranks_packets(s->kind) || sl_ranks_packets(f->kind))
		return 0;
	sl_for (c, SL_CLASSES) {
		const struct sl_class_conf *g = sl_at(f->classes, c);
		const struct sl_class *k = sl_at(s->classes, c);

		if (k->flows != g->flows)
			return 0;
		if (g->flows && (k->hosts != g->hosts || k->flow_quantum_bytes != g->flow_quantum_bytes ||
				 k->allowance_bytes != g->allowance_bytes))
			return 0;
	}
	return 1;
}

/* Which queues each class has: as many as it is to have, or as there are for each. What adds up stands in the state, not in
 * registers: the verifier follows every value that it knows.
 */
SL_FN void flow_divide(struct sl_sched *s, const struct sl_sched_conf *f)
{
	u32 c, each;

	s->flow_classes = s->flow_queues = 0;
	s->flow_classes_set = 0;
	sl_for (c, SL_CLASSES)
		s->flow_classes += sl_at(f->classes, c)->flows != 0;
	/* Classes, rounded up to a power of two. */
	each = SL_FLOW_QUEUES >> sl_log2(sl_max(2 * s->flow_classes, 2) - 1);
	each = sl_min(each, SL_CLASS_FLOWS);
	sl_for (c, SL_CLASSES) {
		struct sl_class *k = sl_at(s->classes, c);
		u32 flows = sl_min(sl_at(f->classes, c)->flows, each), known = k->by_flow != 0;

		k->flows = (u16)sl_at(f->classes, c)->flows;
		k->by_flow = flows != 0 && !sl_ranks_packets(s->kind);
		if (k->by_flow)
			s->flow_classes_set |= SL_BIT(c);
		if (k->by_flow && !known)
			k->by_flow = SL_FLOW_UNKNOWN;
		k->flow_base = (u16)s->flow_queues;
		k->flow_mask = (u16)(flows ? (1u << sl_log2(flows)) - 1 : 0);
		s->flow_queues += flows;
	}
}

/* The slot tells of a packet that came before. */
SL_FN void flow_unknown(struct sl_slot *q)
{
	q->flow_hash = 0;
	q->src_host = q->dst_host = 0;
	q->ecn = 0;
}

/* The packets of classes that queue by flow come to their flows; those that came before the class did, to one. */
SL_GLOBAL int flow_form(struct sl_sched *s SL_NONNULL)
{
	u32 n, c, slot;

	sl_for (c, SL_CLASSES) {
		struct sl_class *k = sl_at(s->classes, c);

		if (!k->by_flow)
			continue;
		sl_for (n, SL_SLOTS) {
			if (n >= k->backlog_pkts)
				break;
			slot = queue_pop(s, &k->queue);
			if (k->by_flow == SL_FLOW_UNKNOWN)
				flow_unknown(sl_at(s->slot, slot));
			flow_arrive(s, c, slot);
		}
		k->by_flow = 1;
	}
	return 0;
}
