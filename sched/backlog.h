/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Counters of a packet that comes and of one that is sent: backlog_add and backlog_send for queues, backlog_begin and backlog_end for the fast path. And whether a class has room. */
#pragma once
#include "bucket.h"
#include "sojourn.h"

/* Why the class has no room for a packet; SL_DROPS: it has. */
SL_FN u32 sl_is_full(const struct sl_class *k, u32 len_bytes)
{
	if (k->backlog_pkts >= k->limit_pkts)
		return SL_DROP_LIMIT_PKTS;
	if (k->backlog_bytes + len_bytes > k->limit_bytes)
		return SL_DROP_LIMIT_BYTES;
	return SL_DROPS;
}

/* The slot gets a packet of class c. */
SL_FN void slot_fill(struct sl_slot *q, u32 c, u32 len_bytes, u32 wire_bytes, u64 now_ns)
{
	q->class = (u8)c;
	q->len_bytes = len_bytes;
	q->wire_bytes = wire_bytes;
	q->arrived_ns = now_ns;
}

/* Class k has one packet more. */
SL_FN void backlog_add(struct sl_sched *s, struct sl_class *k, u32 len_bytes)
{
	s->backlog_pkts++;
	k->backlog_pkts++;
	k->backlog_bytes += len_bytes;
	if (k->backlog_bytes > k->peak_backlog_bytes)
		k->peak_backlog_bytes = k->backlog_bytes;
}

/* Counts the arrival of a packet that meets an empty scheduler. */
SL_FN void backlog_begin(struct sl_sched *s, struct sl_class *k, u32 len_bytes)
{
	s->backlog_pkts = 1;
	k->backlog_pkts = 1;
	k->backlog_bytes = len_bytes;
	if (len_bytes > k->peak_backlog_bytes)
		k->peak_backlog_bytes = len_bytes;
}

/* Counts the packet of slot *q as sent, and charges the link. *k is class c. */
SL_FN void count_sent(struct sl_sched *s, struct sl_class *k, const struct sl_slot *q, u32 c, u64 now_ns)
{
	k->sent_pkts++;
	k->sent_bytes += q->len_bytes;
	sojourn_count(sl_at(s->sojourn, c), now_ns - q->arrived_ns);
	bucket_charge(&s->link, q->wire_bytes, now_ns);
}

/* The packet of slot *q is sent: class c, which is *k. */
SL_FN void backlog_send(struct sl_sched *s, struct sl_class *k, const struct sl_slot *q, u32 c, u64 now_ns)
{
	s->backlog_pkts--;
	k->backlog_pkts--;
	k->backlog_bytes -= q->len_bytes;
	count_sent(s, k, q, c, now_ns);
}

/* Counts the departure of the only packet that waits. */
SL_FN void backlog_end(struct sl_sched *s, struct sl_class *k, const struct sl_slot *q, u32 c, u64 now_ns)
{
	s->backlog_pkts = 0;
	k->backlog_pkts = 0;
	k->backlog_bytes = 0;
	count_sent(s, k, q, c, now_ns);
}
