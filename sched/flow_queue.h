/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Flow queueing inside a class: what sends little goes ahead of what sends much, whatever either calls itself.
 *
 * A flow may use up an allowance, and gets a quantum of it back in each round in which the class's bulk flows have had
 * their turn, which is its fair share. A flow whose next packet is within the first quantum of that is sparse and goes first; one that
 * has some allowance left is swift and goes next; one that has none is bulk. Sparse flows take turns packet by packet, likewise swift ones;
 * bulk flows share by deficit round robin. So games, calls, lookups and the first packets of a page do not wait for downloads, and a flow that
 * sends more than its share loses the privilege after one allowance, whatever its port or mark. (After RFC 8290, whose new
 * flows have an allowance of one quantum, which they lose when they pause.)
 *
 * Fairness: over any time in which bulk flows i and j of equally loaded hosts stay bulk and backlogged,
 * | W_i - W_j | <= Q + l_i + l_j: W what they have sent, Q the quantum, l their largest packets. If those are longer than Q, it is
 * 2 Q + l_i + l_j, since a flow that sits out a round can come before another in one round and behind it in the next. Privilege: in any time, a flow
 * sends no more than allowance + Q * rounds + l ahead of others' turns, where l <= 63 Q. All have tests.
 *
 * Hosts: a bulk flow gets the quantum, divided by the number of bulk flows that its source or its destination has, whichever are more
 * (as triple isolation in tc-cake(8)). So a host gets no more for opening more flows. And a source has a source budget for what all its flows send
 * ahead of turns; when it is empty, they all are bulk: so opening a flow for each packet does not pay either (flow_hosts.h).
 *
 * Alone: the only packet of a class goes ahead of no other. It comes to its flow when another one comes before it has left; else
 * it costs little more than in a FIFO, and its flow nothing: the class rests.
 *
 * The wheel: a flow that has to sit out n rounds is put into the wheel_slot n ahead, so its turn costs nothing before it
 * comes, and a bitmap finds the next wheel_slot that has flows. Debts of more than 63 rounds are forgiven. Cost: O(1) for each packet, also
 * when the class is full (flow_sizes.h).
 *
 * Classes of the flat scheduler queue so, and leaves of a tree, which are its classes. The includer has defined what this asks of its scheduler
 * (class_flows.h, leaf_flows.h):
 *
 *	class_of	how a class queues: SL_CLASS
 *	flow_at		a flow queue, by its number
 *	flow_queue_of	the number of the queue in which a flow of the class stands, or is to stand
 *	flow_rests	a queue has no packets any more
 *	class_gives	the class has a flow of two packets; class_keeps: it has none any more
 *	class_shrunk	the class has fewer packets
 *	slot_drop	the packet of a slot has left its queue, and is the engine's to free
 */
#pragma once
#include "codel.h"
#include "flow_hosts.h"
#include "flow_sizes.h"

/* The length of a round while a class is idle, where no rate gives one: a frame at 1 Gbit/s. */
#define SL_ROUND_NS 12112u

SL_FN void flow_list_push(SL_SCHEDULER *s, struct sl_queue *list, u32 i, int was_empty)
{
	if (was_empty)
		list->head = (u16)i;
	else
		flow_at(s, list->tail)->next = (u16)i;
	list->tail = (u16)i;
}

/* The flow takes its place on the wheel, so far ahead that its debt is paid when its turn comes. */
SL_GLOBAL int flow_sit(SL_SCHEDULER *s SL_NONNULL, u32 class, u32 i)
{
	SL_CLASS *k = class_of(s, class);
	struct sl_fair *fair = sl_at(s->fair, class);
	struct sl_flow_queue *f = flow_at(s, i);
	u32 quantum = sl_max(k->flow_quantum_bytes, 1), load = flow_load(s, k, fair, f), rounds = 1, wheel_slot;
	s32 debt = f->used_bytes - (s32)k->allowance_bytes;

	if (sl_likely(load == 1 && debt < (s32)quantum)) {
		debt -= (s32)quantum;
	} else {
		if (debt > 0)
			rounds += (u32)sl_min((u64)debt * load / quantum, SL_WHEEL);
		rounds = sl_min(rounds, SL_WHEEL - 1);
		debt -= (s32)flow_gain(rounds, quantum, load);
	}
	/* Its turn is worth a quantum at most, and a packet at least. */
	if (debt >= 0)
		debt = -1;
	if (debt < -(s32)quantum)
		debt = -(s32)quantum;
	f->used_bytes = (s32)k->allowance_bytes + debt;
	f->round = fair->round + rounds;
	wheel_slot = f->round & (SL_WHEEL - 1);
	flow_list_push(s, sl_at(fair->wheel_slot, wheel_slot), i, !(fair->wheel_used >> wheel_slot & 1));
	fair->wheel_used |= SL_BIT(wheel_slot);
	return 0;
}

/* The flow, which stands nowhere and whose first packet is so long, takes the place that it deserves. Its hosts are known. */
SL_FN void flow_stand(SL_SCHEDULER *s, SL_CLASS *k, u32 class, struct sl_flow_queue *f, u32 i, u32 len_bytes)
{
	struct sl_fair *fair = sl_at(s->fair, class);

	if (f->used_bytes >= (s32)k->allowance_bytes || !flow_source_pays(s, k, f, fair->round, len_bytes)) {
		flow_count_bulk(s, f, 1);
		f->place = SL_FLOW_BULK;
		flow_sit(s, class, i);
		return;
	}
	if (f->used_bytes + len_bytes <= k->flow_quantum_bytes) {
		f->place = SL_FLOW_SPARSE;
		flow_list_push(s, &fair->sparse, i, !fair->sparse_flows);
		fair->sparse_flows++;
	} else {
		f->place = SL_FLOW_SWIFT;
		flow_list_push(s, &fair->swift, i, !fair->swift_flows);
		fair->swift_flows++;
	}
}

/* Time in which the class had at most one packet counts as rounds of one flow. */
SL_FN void flow_wake(SL_CLASS *k, struct sl_fair *fair, u64 now_ns)
{
	u64 rounds = sl_since(now_ns, fair->rests_since_ns) / sl_max(k->round_ns, 1);

	fair->round += (u32)sl_min(rounds, 1 << 20);
}

/* The packet of the slot comes to its flow. */
SL_GLOBAL int flow_arrive(SL_SCHEDULER *s SL_NONNULL, u32 class, u32 slot)
{
	SL_CLASS *k = class_of(s, class);
	SL_SLOT *q = sl_at(s->slot, slot);
	struct sl_fair *fair = sl_at(s->fair, class);
	u32 i = flow_queue_of(s, k, class, q->flow_hash);
	struct sl_flow_queue *f = flow_at(s, i);
	int was_empty = !f->backlog_pkts;

	queue_push(s, &f->queue, slot, was_empty);
	f->backlog_pkts++;
	f->backlog_bytes += q->len_bytes;
	if (!was_empty) {
		flow_grown(s, class, i);
		return 0;
	}
	flow_find_hosts(s, k, class, f, q);
	/* The rounds since it was empty give back bytes that it had used. */
	if ((s32)(fair->round - f->round) > 0)
		flow_recover(&f->used_bytes, &f->round, fair->round, k->flow_quantum_bytes, flow_load(s, k, fair, f));
	flow_stand(s, k, class, f, i, q->len_bytes);
	return 0;
}

/* The packet of the slot comes to a class that has so many. */
SL_FN void flow_enter(SL_SCHEDULER *s, SL_CLASS *k, u32 class, u32 slot, u32 pkts, u64 now_ns)
{
	struct sl_fair *fair = sl_at(s->fair, class);
	u32 alone = fair->alone;

	if (!pkts) {
		fair->alone = slot + 1;
		return;
	}
	if (sl_unlikely(alone)) {
		fair->alone = 0;
		flow_wake(k, fair, now_ns);
		flow_arrive(s, class, alone - 1);
	}
	flow_arrive(s, class, slot);
}

/*
 * CoDel looks at the head of flow i, which has waited longer than the target. It may drop it, and those behind it. Whether the one that
 * is left at the head is to be marked.
 */
SL_GLOBAL u32 flow_control(SL_SCHEDULER *s SL_NONNULL, u32 i, u32 class, u64 now_ns)
{
	SL_CLASS *k = class_of(s, class);
	struct sl_flow_queue *f = flow_at(s, i);
	struct sl_codel *c = &f->codel;
	u64 interval_ns = k->interval_ns;
	u32 n, dropped = 0;

	sl_for (n, SL_OVERFLOW_PKTS) {
		SL_SLOT *q = sl_at(s->slot, f->queue.head);

		if (!codel_should_drop(c, k->target_ns, interval_ns, q->arrived_ns, f->backlog_bytes - q->len_bytes, now_ns)) {
			c->dropping = 0;
			return 0;
		}
		if (!c->dropping) {
			codel_begin(c, interval_ns, now_ns);
		} else {
			if (dropped)
				c->next_ns = codel_next(c, interval_ns, c->next_ns);
			if (now_ns < c->next_ns)
				return 0;
			c->count++;
			codel_newton_step(c);
			dropped = 1;
			if (q->ecn)
				c->next_ns = codel_next(c, interval_ns, c->next_ns);
		}
		if (q->ecn)
			return 1;
		flow_drop(s, k, class, i, SL_DROP_AQM); /* more than a frame is behind it */
	}
	return 0;
}

/* Flow i, which is first in its list, has sent so much. */
SL_FN void flow_move_on(SL_SCHEDULER *s, SL_CLASS *k, u32 class, struct sl_flow_queue *f, u32 i, u32 bytes)
{
	struct sl_fair *fair = sl_at(s->fair, class);
	struct sl_queue *list;

	f->used_bytes += (s32)bytes;
	if (f->place == SL_FLOW_BULK) {
		if (f->backlog_pkts && f->used_bytes < (s32)k->allowance_bytes)
			return;
		list = sl_at(fair->wheel_slot, f->round);
		if (list->head == list->tail)
			fair->wheel_used &= ~SL_BIT(f->round);
		list->head = f->next;
		if (f->backlog_pkts) {
			flow_sit(s, class, i);
			return;
		}
		flow_count_bulk(s, f, -1);
		f->place = SL_FLOW_ABSENT;
		flow_rests(s, k, i);
		return;
	}
	if (f->place == SL_FLOW_SPARSE) {
		fair->sparse_flows--;
		fair->sparse.head = f->next;
	} else {
		fair->swift_flows--;
		fair->swift.head = f->next;
	}
	f->place = SL_FLOW_ABSENT;
	if (f->backlog_pkts) {
		SL_SLOT *head = sl_at(s->slot, f->queue.head);

		flow_find_hosts(s, k, class, f, head); /* it may have been forgotten: nothing has held it */
		flow_stand(s, k, class, f, i, head->len_bytes);
		return;
	}
	flow_rests(s, k, i);
}

/* The flow whose turn it is; the class has packets. */
SL_FN u32 flow_first(struct sl_fair *fair)
{
	u32 at, ahead;

	if (fair->sparse_flows)
		return fair->sparse.head;
	if (fair->swift_flows)
		return fair->swift.head;
	at = fair->round & (SL_WHEEL - 1);
	if (!(fair->wheel_used >> at & 1)) {
		u64 turned = fair->wheel_used >> at | fair->wheel_used << (-at & (SL_WHEEL - 1));

		ahead = sl_lowest(turned);
		fair->round += ahead;
		at = fair->round & (SL_WHEEL - 1);
	}
	return sl_at(fair->wheel_slot, at)->head;
}

/* In the answer of flow_take: the packet is to be sent as one that has met congestion. */
#define SL_FLOW_MARK (1u << 31)

/* The slot that the class sends next, whose packets stand in their flows. */
SL_GLOBAL u32 flow_take(SL_SCHEDULER *s SL_NONNULL, u32 class, u64 now_ns)
{
	SL_CLASS *k = class_of(s, class);
	struct sl_fair *fair = sl_at(s->fair, class);
	u32 i = flow_first(fair), mark = 0, slot, bytes;
	struct sl_flow_queue *f = flow_at(s, i);
	SL_SLOT *q = sl_at(s->slot, f->queue.head);

	if (k->target_ns) {
		u32 left_bytes = f->backlog_bytes - q->len_bytes;

		if (!codel_should_drop(&f->codel, k->target_ns, k->interval_ns, q->arrived_ns, left_bytes, now_ns))
			f->codel.dropping = 0;
		else if (flow_control(s, i, class, now_ns))
			mark = SL_FLOW_MARK;
	}
	slot = queue_pop(s, &f->queue);
	bytes = sl_at(s->slot, slot)->len_bytes;
	f->backlog_pkts--;
	f->backlog_bytes -= bytes;
	if (!f->backlog_pkts)
		codel_rest(&f->codel);
	flow_shrunk(s, class, i);
	flow_move_on(s, k, class, f, i, bytes);
	fair->rests_since_ns = now_ns; /* if this was the last */
	return slot | mark;
}

/* The next packet of a class that has packets: its slot, and SL_FLOW_MARK if it is to be marked. */
SL_FN u32 flow_leave(SL_SCHEDULER *s, u32 class, u64 now_ns)
{
	struct sl_fair *fair = sl_at(s->fair, class);
	u32 alone = fair->alone;

	if (!alone)
		return flow_take(s, class, now_ns);
	fair->alone = 0;
	return alone - 1;
}
