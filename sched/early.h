/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Early drop: a hook before the queue looks into the scheduler, and drops what the queue would drop, before the host has spent work on it.
 *
 *	early_drops	whether the hook drops the packet; if it does not, the packet is on its way to the queue
 *
 * While a class is full, a hook drops every packet of a class with one queue. Of a class that queues by flow it drops packets of long flows, and
 * already when seven eighths are full: the rest is for other flows, since a queue that makes room for one of their packets drops half of the longest
 * flow (flow_sizes.h), and would let in as many again. Long are the flows in the uppermost list of sizes, which have at least a quarter of the
 * bytes of the longest if that has 4 KiB. If no flow has two packets, the queue refuses a packet only when it is full, and so does the hook.
 * When the slots of the scheduler run out, the class that gives way is full likewise (room.h).
 *
 * The hook reads without the queue's lock, while packets come and go. The packets that this processor has let through, and that the queue has not
 * had yet, count as queued: else a whole batch would pass because one packet has left. Those of other processors do not, so up to a batch
 * of each of them may pass too many, which the queue drops. If packets are taken away between hook and queue, the hook may
 * drop as many too many, within SL_EARLY_NS. Where the queue drops the oldest packets of a flow, the hook drops the newest.
 */
#pragma once
#include "backlog.h"
#include "class_flows.h"
#include "packet.h"
#include "underway.h"

/* The number of packets that the queue has had of the class. Other packets may come and go meanwhile. */
SL_FN u64 early_had_pkts(const struct sl_class *k)
{
	u64 had = k->sent_pkts + k->backlog_pkts;
	u32 reason;

	SL_UNROLLED
	for (reason = 0; reason < SL_DROPS; reason++)
		had += k->dropped_pkts[reason];
	return had;
}

/* Whether a class that is nearly full, or full, drops packets of this flow. One that must share a queue is judged by that queue (flow_find). */
SL_FN int early_drops_flow(const struct sl_sched *s, const struct sl_class *k, u32 class, u32 hash, int full)
{
	u32 ways = sl_min(k->flow_mask, SL_FLOW_WAYS - 1), sizes = sl_at(s->fair, class)->sizes, free = 0, n;
	const struct sl_flow_queue *f;

	if (!sizes)
		return full;
	SL_UNROLLED
	for (n = 0; n < SL_FLOW_WAYS; n++) {
		f = sl_at(s->flow, k->flow_base + ((hash & k->flow_mask & ~ways) | ((hash + n) & ways)));
		if (f->hash == hash && k->flow_mask)
			return f->size >= sl_log2(sizes);
		free |= f->place == SL_FLOW_ABSENT;
	}
	f = sl_at(s->flow, flow_of(k, hash));
	return (!free || f->shared) && f->size >= sl_log2(sizes);
}

/* Whether the class gives way when slots run out, as room_giver has it. */
SL_FN int early_gives(const struct sl_sched *s, u32 class)
{
	u64 givers = s->can_give | ~s->flow_classes_set, top = 0, large;
	u32 n;

	SL_UNROLLED
	for (n = 1; n < SL_CLASS_SIZES; n++) {
		large = s->large[n] & givers;
		top = large ? large : top;
	}
	return top && sl_lowest(top) == class;
}

/* The room that is left of a limit. */
SL_FN u32 early_room(u32 limit, u32 taken)
{
	return limit - sl_min(limit, taken);
}

/*
 * Whether the hook drops a packet, of which class, length and flow matter; *u is what this processor has under way in the class. A class that the
 * policy no longer has is left to the queue.
 */
SL_FN int early_drops(const struct sl_sched *s, struct sl_underway *u, const struct sl_packet *p, u64 now_ns)
{
	const struct sl_class *k = sl_at(s->classes, p->class);
	u32 limit_pkts = k->limit_pkts, pkts = early_room(limit_pkts, k->backlog_pkts), slots, full, spare_pkts, spare_bytes;
	u32 bytes = early_room(k->limit_bytes, k->backlog_bytes);

	/* Slots count as room of the class if it is the one that gives way. */
	slots = early_room(s->room_from_pkts, s->backlog_pkts);
	if (sl_unlikely(slots < pkts) && early_gives(s, p->class)) {
		pkts = slots;
		limit_pkts = s->room_from_pkts;
	}
	spare_pkts = k->by_flow ? limit_pkts / SL_EARLY_PART : 0;
	spare_bytes = k->by_flow ? k->limit_bytes / SL_EARLY_PART : 0;
	if (sl_likely(pkts >= spare_pkts + SL_EARLY_PKTS && bytes >= (u64)spare_bytes + p->len_bytes * SL_EARLY_PKTS) ||
	    !k->limit_pkts)
		return 0;
	underway_look(u, early_had_pkts(k), now_ns);
	full = u->pkts >= pkts || (u64)u->bytes + p->len_bytes > bytes;
	if (!k->by_flow ? full
			: (u->pkts + (u64)spare_pkts >= pkts || (u64)u->bytes + spare_bytes + p->len_bytes > bytes) &&
				  early_drops_flow(s, k, p->class, p->flow_hash, full))
		return 1;
	u->pkts++;
	u->bytes += p->len_bytes;
	return 0;
}
