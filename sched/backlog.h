/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Counters of a packet that comes to the scheduler, and of one that is sent: the same for the fast path and for queues. */
#pragma once
#include "bucket.h"
#include "sojourn.h"

/* Class k has one packet more. */
SL_FN void backlog_add(struct sl_sched *s, struct sl_class *k, u32 len_bytes)
{
	s->backlog_pkts++;
	k->backlog_pkts++;
	k->backlog_bytes += len_bytes;
	if (k->backlog_bytes > k->peak_backlog_bytes)
		k->peak_backlog_bytes = k->backlog_bytes;
	k->enqueued_pkts++;
	k->enqueued_bytes += len_bytes;
}

/* The packet of slot *q is sent: class c, which is *k. */
SL_FN void backlog_send(struct sl_sched *s, struct sl_class *k, const struct sl_slot *q, u32 c, u64 now_ns)
{
	u32 len_bytes = q->len_bytes, wire_bytes = q->wire_bytes;
	u64 wait_ns = now_ns - q->arrived_ns;

	s->backlog_pkts--;
	k->backlog_pkts--;
	k->backlog_bytes -= len_bytes;
	k->sent_pkts++;
	k->sent_bytes += len_bytes;
	sojourn_count(sl_at(s->sojourn, c), wait_ns);
	bucket_charge(&s->link, wire_bytes, now_ns);
}
