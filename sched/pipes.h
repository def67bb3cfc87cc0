/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The scheduler of pipes, for engines in userspace that send tens of millions of packets a second: a port, up to 64 subports, up to 32,768 pipes (a
 * pipe is a customer), and 13 classes in each pipe, which have 16 queues. Its shape is fixed, other than that of the tree of classes (hierarchy.h).
 * It is configured by pipe_change.h.
 *
 *	pipes_enqueue	packets come: their slots, and which of them are refused
 *	pipes_dequeue	packets leave, of the classes that may send
 *	pipes_take	the same, but their slots stay taken until the caller gives them back (pipes_give_back; see backpressure.h)
 *	pipes_reap	the slot of a packet that CoDel has dropped; to be asked after dequeue
 *	pipes_drop	a packet of a pipe is dropped; to empty a pipe, until it has none
 *	pipes_wake_ns	when a dequeue that gave too little is to be repeated
 *
 * Subports take turns by bytes, and so do the pipes of a subport (deficit round robin with a quantum of a frame). In a pipe, a class sends only
 * if no class before it may; the last class, best effort, has four queues, which share by weight (pipe_shares.h). Port, subports, classes
 * of subports and pipes have token buckets, classes of pipes have limits by period (pipe_credits.h), queues have limits of packets and of
 * bytes, and CoDel (pipe_codel.h).
 *
 * A queue is a list of 8-byte slots (pipe_slots.h). Bitmaps say which pipes may send (pipe_search.h). Pipes are served (pipe_turn.h) in groups that
 * are fetched from memory ahead of their turn (pipe_groups.h). A pipe whose bucket is empty waits in a timing wheel (pipe_wheel.h), one with classes whose credit
 * is used up in another. The work of a call is bounded: in each wheel it ends the waiting of SL_PIPE_WAKES pipes, and it searches
 * SL_PIPE_STEPS_MOST words, or looks at a quarter as many pipes that do not send; a pipe that was found, and whose classes are all held back since, counts
 * as a word. What is left is for the next call.
 *
 * Bounds: in any window of t seconds, port, subport and pipe send no more than rate * t + burst + one packet; a class of a subport
 * SL_SUBPORT_ADVANCE bytes more. A packet leaves at the latest 16 us after everything above it has tokens, if the port is not busy
 * with others and calls find nothing unfinished.
 * Cost: a packet touches the line of its queue, its slot and its neighbour's, and once in a turn the line of its pipe.
 */
#pragma once
#include "pipe_subport.h"
#include "pipe_turn.h"

/* Pipes whose waiting ends in one call, in each wheel. Each waits since a packet of it has left, and a call sends no more packets. */
#define SL_PIPE_WAKES            SL_PIPE_BATCH
#define SL_SUBPORT_QUANTUM_BYTES (32 * 1514)

_Static_assert(SL_PIPES >= 4096 && SL_PIPES <= 32768 && !(SL_PIPES & (SL_PIPES - 1)),
	       "whole words of the summary, and links of 16 bits");
_Static_assert(sizeof(struct sl_pipe) == 64, "one cache line");
_Static_assert(SL_PIPE_GROUP <= 32, "bits of sl_pipe_group.live");

/*
 * Packets come, of which there are n: the first and those behind it that are for the same queue. Each gets its slot, or SL_PIPE_NO_SLOT and a bit
 * in *refused, which are counted from bit first on. How many they are.
 */
SL_FN u32 pipe_arrive(struct sl_pipes *t, struct sl_pipe_packet *packet, u32 n, u32 stamp, u32 first_bit, u64 *refused)
{
	u32 number = packet->queue, p = number / SL_PIPE_QUEUES, queue = number & (SL_PIPE_QUEUES - 1), slot, i = 0;
	struct sl_pipe_queue *q = sl_at(t->queue, number);
	const struct sl_pipe_profile *profile = profile_of_pipe(t, p);
	struct sl_subport *sub = subport_of_pipe(t, p);
	u32 limit_pkts = *sl_at(profile->limit_pkts, queue), limit_bytes = *sl_at(profile->limit_bytes, queue);
	u32 pkts = queue_pkts(q->chain), before = pkts, backlog_bytes = q->backlog_bytes, reason = 0, len_bytes;
	u32 first = queue_first(q->chain), last = queue_last(q->chain);
	struct sl_pipe_slot *s;

	do {
		slot = SL_PIPE_NO_SLOT;
		if (sl_unlikely(pkts >= limit_pkts))
			reason = SL_DROP_LIMIT_PKTS;
		else if (sl_unlikely(backlog_bytes >= limit_bytes))
			reason = SL_DROP_LIMIT_BYTES;
		else if (slot = pipe_slot_take(t), sl_unlikely(slot == SL_PIPE_NO_SLOT))
			reason = SL_DROP_NO_SLOT;
		packet[i].slot = slot;
		if (sl_unlikely(slot == SL_PIPE_NO_SLOT)) {
			pipe_count_drop(t, number, reason);
			*refused |= SL_BIT(first_bit + i);
			continue;
		}
		s = sl_at(t->slot, slot);
		len_bytes = packet[i].len_bytes & SL_PIPE_LEN_MASK;
		s->packet = len_bytes | stamp << SL_PIPE_LEN_BITS;
		/* The first of an empty queue follows itself. */
		first = pkts ? first : slot;
		last = pkts ? last : slot;
		sl_at(t->slot, last)->next = slot;
		last = slot;
		backlog_bytes += len_bytes;
		pkts++;
	} while (++i < n && packet[i].queue == number);
	if (sl_unlikely(pkts == before))
		return i;
	q->chain = first | (u64)last << SL_PIPE_INDEX_BITS | (u64)pkts << 2 * SL_PIPE_INDEX_BITS;
	q->backlog_bytes = backlog_bytes;
	if (!before)
		pipe_ready(t, p, 1u << queue);
	if (!sub->pkts)
		t->busy_subports |= SL_BIT(*sl_at(t->subport_of, p >> 6) - 1u);
	sub->pkts += pkts - before;
	return i;
}

/*
 * Packets come, up to SL_PIPE_BATCH; none is longer than SL_PIPE_LEN_BITS can say, nor empty. Each has its slot in packet[].slot, until it leaves. Bit
 * i of the answer: packet i is refused, and has none.
 */
SL_FN u64 pipes_enqueue(struct sl_pipes *t, struct sl_pipe_packet *packet, u32 n, u64 now_ns)
{
	u32 stamp = (u32)(now_ns >> SL_PIPE_STAMP_SHIFT), i;
	u64 refused = 0;

	n = sl_min(n, SL_PIPE_BATCH);
	sl_for (i, n) {
		sl_fetch(sl_at(t->queue, packet[i].queue));
		sl_fetch(sl_at(t->ready, packet[i].queue / SL_PIPE_QUEUES));
	}
	sl_for (i, n)
		sl_fetch(sl_at(t->slot, queue_last(sl_at(t->queue, packet[i].queue)->chain)));
	for (i = 0; i < n;)
		i += pipe_arrive(t, &packet[i], n - i, stamp, i, &refused);
	t->pkts += n - (u32)__builtin_popcountll(refused);
	return refused;
}

/* Pipes have waited long enough. */
SL_FN void pipes_wake(struct sl_pipes *t, u64 now_ns)
{
	struct sl_pipe_wheel *w = sl_at(t->wheel, SL_PIPE_TOKENS);
	u16 due[SL_PIPE_WAKES];
	u32 i, p, n = 0;

	sl_for (i, SL_PIPE_WAKES) {
		p = pipe_wheel_take(w, now_ns);
		if (p == SL_PIPES)
			break;
		pipe_release(t, p);
	}
	w = sl_at(t->wheel, SL_PIPE_CREDITS);
	sl_for (n, SL_PIPE_WAKES) {
		p = pipe_wheel_take(w, now_ns);
		if (p == SL_PIPES)
			break;
		*sl_at(due, n) = (u16)p;
		sl_fetch(sl_at(t->pipe, p));
	}
	sl_for (i, n) {
		struct sl_pipe *k = sl_at(t->pipe, *sl_at(due, i));
		const struct sl_pipe_profile *profile = profile_of_pipe(t, *sl_at(due, i));

		credits_settle(t, *sl_at(due, i), k, profile, now_ns);
		if (k->shut)
			credits_wait(t, *sl_at(due, i), k, profile, now_ns);
	}
}

/* The next group's turn begins, and one group more is looked for. Whether a subport has any pipes that may have a turn. */
SL_FN int subport_next_group(struct sl_pipes *t, struct sl_subport *sub, struct sl_pipe_call *call)
{
	struct sl_pipe_group *done = sl_at(sub->group, sub->at), *next, *after;
	u32 at = sub->at + 1 == SL_PIPE_GROUPS_USED ? 0 : sub->at + 1;

	next = sl_at(sub->group, at);
	after = sl_at(sub->group, at + 1 == SL_PIPE_GROUPS_USED ? 0 : at + 1);
	group_fetch_packets(t, after, call->queues);
	group_fill(t, sub, done, call);
	group_begin(t, sub, next, call);
	sub->at = at;
	return next->count || after->count || done->count;
}

/* A subport sends until it has none that may send, or the call has enough. Whether it has none. */
SL_FN int subport_serve(struct sl_pipes *t, struct sl_subport *sub, struct sl_pipe_call *call)
{
	for (;;) {
		struct sl_pipe_group *g = sl_at(sub->group, sub->at);
		u32 i;

		if (call->steps >= SL_PIPE_STEPS_MOST) {
			t->unfinished = 1;
			return 0;
		}
		if (!g->live) {
			g->count = 0;
			if (!subport_next_group(t, sub, call) && call->steps < SL_PIPE_STEPS_MOST) {
				if (!call->unsought)
					return 1;
				/* Pipes that were found did not send. */
				call_seek(call);
			}
			continue;
		}
		if (!(g->todo & g->live))
			g->todo = g->live;
		i = sl_lowest(g->todo & g->live);
		if (pipe_serve(t, sub, call, g, i))
			g->todo &= ~(1u << i);
		else
			g->live &= ~(1u << i);
		if (call->got == call->wanted || call->left_bytes <= 0)
			return 0;
	}
}

/*
 * A subport has its turn. Whether it may have another one in this call: it has not sent all that it may.
 */
SL_FN int subport_turn(struct sl_pipes *t, struct sl_subport *sub, struct sl_pipe_call *call)
{
	s64 room = sl_min(bucket_room(&sub->bucket, call->now_ns), bucket_room(&t->bucket, call->now_ns)), sent;
	u32 before = call->got;
	int idle;

	if (room <= 0)
		return 0;
	if (sub->left_bytes <= 0)
		sub->left_bytes += SL_SUBPORT_QUANTUM_BYTES;
	if (sl_unlikely(sub->closed))
		subport_reopen(sub, call->now_ns);
	call->queues = call->allowed & ~(u32)sub->closed;
	room = sl_min(room, sub->left_bytes);
	call->left_bytes = room;
	idle = subport_serve(t, sub, call);
	sent = room - call->left_bytes;
	bucket_charge(&sub->bucket, (u32)sent, call->now_ns);
	bucket_charge(&t->bucket, (u32)sent, call->now_ns);
	sub->left_bytes -= (s32)sent;
	subport_shrinks(t, sub, call->got - before);
	if (idle)
		sub->left_bytes = sl_min(sub->left_bytes, 0);
	return !idle;
}

/*
 * Up to n packets leave, of these classes (bits), and of each no more than its allowance, which is counted down; NULL: any number. How many
 * left. Their slots stay taken until the caller gives them back (pipes_give_back). Fewer than n: pipes_wake_ns says when to ask again.
 */
SL_FN u32 pipes_take(struct sl_pipes *t, struct sl_pipe_packet *out, u32 n, u32 classes, struct sl_pipe_allowance *allowance,
		     u64 now_ns)
{
	struct sl_pipe_call call = { .out = out,
				     .wanted = sl_min(n, SL_PIPE_BATCH),
				     .allowed = classes_queues(classes),
				     .allowance = allowance,
				     .now_ns = now_ns };
	u64 waiting;
	u32 i, s;

	call_seek(&call);
	t->unfinished = 0;
	if (!call.wanted)
		return 0;
	pipes_wake(t, now_ns);
	for (i = 0; allowance && i < SL_PIPE_CLASSES; i++) {
		if (!*sl_at(allowance->pkts, i))
			call.allowed &= ~class_queues(i);
	}
	waiting = call.allowed ? t->busy_subports : 0;
	while (waiting && call.got < call.wanted && !t->unfinished) {
		s = sl_lowest_from(waiting, t->turn);
		t->turn = s;
		if (!subport_turn(t, sl_at(t->subport, s), &call))
			waiting &= ~SL_BIT(s);
		waiting &= t->busy_subports;
		if (sl_at(t->subport, s)->left_bytes <= 0)
			t->turn = s + 1;
	}
	return call.got;
}

/* The slot of a packet that was taken is free again. */
SL_FN void pipes_give_back(struct sl_pipes *t, u32 slot)
{
	pipe_slot_give(t, slot, sl_at(t->slot, slot));
}

/* Like pipes_take, but the slots are free again at once. */
SL_FN u32 pipes_dequeue(struct sl_pipes *t, struct sl_pipe_packet *out, u32 n, u32 classes, struct sl_pipe_allowance *allowance,
			u64 now_ns)
{
	u32 got = pipes_take(t, out, n, classes, allowance, now_ns), i;

	sl_for (i, got)
		pipes_give_back(t, out[i].slot);
	return got;
}

/*
 * When a dequeue that gave less than was asked for is to be repeated, if no packet comes before, and these classes may send, of which each has an allowance: now if it had not
 * finished, SL_PIPE_NEVER if none of the packets waits for a time.
 */
SL_FN u64 pipes_wake_ns(struct sl_pipes *t, u32 classes, u64 now_ns)
{
	u64 first, port_ns = now_ns, at, busy;

	if (!t->pkts)
		return SL_PIPE_NEVER;
	if (t->unfinished)
		return now_ns;
	first = sl_min(pipe_wheel_next_ns(sl_at(t->wheel, SL_PIPE_TOKENS)), pipe_wheel_next_ns(sl_at(t->wheel, SL_PIPE_CREDITS)));
	if (bucket_room(&t->bucket, now_ns) <= 0)
		port_ns = bucket_opens_ns(&t->bucket);
	for (busy = t->busy_subports; busy; busy &= busy - 1) {
		const struct sl_subport *sub = sl_at(t->subport, sl_lowest(busy));

		at = bucket_room(&sub->bucket, now_ns) <= 0 ? bucket_opens_ns(&sub->bucket) : now_ns;
		at = sl_max(at, port_ns);
		if (at == now_ns)
			at = subport_reopens_ns(sub, classes_queues(classes));
		first = sl_min(first, at);
	}
	return sl_max(first, now_ns);
}

/* The slot of a packet that CoDel has dropped, which is free again; SL_PIPE_NO_SLOT: there is none. */
SL_FN u32 pipes_reap(struct sl_pipes *t)
{
	u32 slot = t->dropped;
	struct sl_pipe_slot *s = sl_at(t->slot, slot);

	if (!t->dropped_count)
		return SL_PIPE_NO_SLOT;
	t->dropped = s->next;
	t->dropped_count--;
	pipe_slot_give(t, slot, s);
	return slot;
}
