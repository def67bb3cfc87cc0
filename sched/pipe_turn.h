/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The turn of a pipe: packets of its classes, the first that may send before all others, while its bucket, its limits, its subport and the caller
 * let it. CoDel may drop some.
 */
#pragma once
#include "pipe_codel.h"
#include "pipe_groups.h"
#include "pipe_shares.h"
#include "pipe_slots.h"
#include "pipe_subport.h"

/* Packets that a pipe sends before another one of its group goes on. */
#define SL_PIPE_RUN 8

/* Whether CoDel drops the packet of slot *s, which has left queue number q of pipe *k. It is to be asked of each packet of a queue with CoDel. */
SL_FN int pipe_controls(struct sl_pipes *t, struct sl_pipe *k, const struct sl_pipe_profile *profile, u32 number, u32 q,
			const struct sl_pipe_slot *s, u64 now_ns)
{
	u32 now = (u32)(now_ns >> SL_PIPE_STAMP_SHIFT),
	    waited = (now - (s->packet >> SL_PIPE_LEN_BITS)) & ((1u << SL_PIPE_STAMP_BITS) - 1);
	int watched = k->watched >> q & 1, drop;

	if (sl_likely(waited < profile->codel_target && !watched))
		return 0;
	drop = pipe_codel_drops(sl_at(t->codel, number), profile->codel_target, profile->codel_interval, waited,
				sl_at(t->queue, number)->backlog_bytes, now, &watched);
	k->watched = (u16)((k->watched & ~(1u << q)) | (u32)watched << q);
	return drop;
}

/* The packet of slot *s is dropped by CoDel. */
SL_FN void pipe_drop_controlled(struct sl_pipes *t, struct sl_subport *sub, u32 number, u32 slot, struct sl_pipe_slot *s)
{
	s->next = t->dropped;
	t->dropped = slot;
	t->dropped_count++;
	pipe_count_drop(t, number, SL_DROP_AQM);
	subport_shrinks(t, sub, 1);
}

/* Pipe i of a group sends what it may in a run. Whether its turn goes on at once. */
SL_FN int pipe_serve(struct sl_pipes *t, struct sl_subport *sub, struct sl_pipe_call *call, const struct sl_pipe_group *g, u32 i)
{
	u32 p = *sl_at(g->pipe, i), queues = group_queues(g, i);
	struct sl_pipe *k = sl_at(t->pipe, p);
	const struct sl_pipe_profile *profile = profile_of_pipe(t, p);
	u32 limited = profile->limited, codel = profile->codel, ready, may, m, run = SL_PIPE_RUN, closes = 0;
	u64 now_64ths = call->now_ns << 6, tat = sl_max(k->tat_64ths, now_64ths), until = pipe_open_until(k, call->now_ns);
	s32 left_bytes = k->left_bytes;

	if (limited) {
		credits_settle(t, p, k, profile, call->now_ns);
		ready = *sl_at(t->ready, p);
		/* Packets have come to a class that is closed. */
		if (sl_unlikely(ready & k->closed)) {
			k->shut |= (u16)(ready & k->closed);
			ready &= ~(u32)k->closed;
			*sl_at(t->ready, p) = (u16)ready;
			credits_wait(t, p, k, profile, call->now_ns);
		}
	} else {
		ready = *sl_at(t->ready, p);
	}
	may = call->queues & queues;
	m = ready & may;
	if (sl_unlikely(!m)) {
		call->steps += SL_PIPE_STEPS_VAIN;
		if (ready & queues)
			pipe_turn_pauses(t, sub, p, k, ready & queues);
		else
			pipe_turn_ends(t, p, k);
		return 0;
	}
	do {
		u32 q = sl_lowest(m), class = class_of_queue(q), number = p * SL_PIPE_QUEUES + q, slot, wire;
		struct sl_pipe_queue *queue = sl_at(t->queue, number);
		struct sl_pipe_packet *out;
		struct sl_pipe_slot *s;
		u64 used = 0;

		if (q >= SL_PIPE_BEST_EFFORT && m & (m - 1)) {
			used = k->share_used;
			q = SL_PIPE_BEST_EFFORT + shares_next(&used, m >> SL_PIPE_BEST_EFFORT);
			number = p * SL_PIPE_QUEUES + q;
			queue = sl_at(t->queue, number);
		}
		slot = pipe_queue_take(t, queue);
		s = sl_at(t->slot, slot);
		/* The next one will be needed soon. */
		sl_fetch(sl_at(t->slot, queue_pkts(queue->chain) ? s->next : slot));
		ready &= ~((u32)!queue_pkts(queue->chain) << q);
		/* And the first one of the queue that is served after this one. */
		if (ready & may & ~(1u << q))
			sl_fetch(sl_at(t->slot, queue_first(pipe_first_queue(t, p, ready & may & ~(1u << q))->chain)));
		m = ready & may;
		if (codel >> q & 1 && sl_unlikely(pipe_controls(t, k, profile, number, q, s, call->now_ns))) {
			/* More than a frame is behind it. */
			pipe_drop_controlled(t, sub, number, slot, s);
			call->steps += SL_PIPE_STEPS_VAIN;
			continue;
		}
		wire = pipe_wire_bytes(t, slot_len_bytes(s));
		out = &call->out[call->got++];
		out->queue = number;
		out->slot = slot;
		out->len_bytes = slot_len_bytes(s);
		queue->sent_bytes += slot_len_bytes(s);
		*sl_at(sub->sent_bytes, class) += slot_len_bytes(s);
		(*sl_at(sub->sent_pkts, class))++;
		k->sent_pkts++;
		tat += pipe_cost(wire, k->cost);
		left_bytes -= (s32)wire;
		call->left_bytes -= wire;
		if (q >= SL_PIPE_BEST_EFFORT) {
			u32 lane = q & 3;

			k->share_used = used + ((u64)share_of_packet(wire, profile->share_cost[lane], k->sent_pkts) << 16 * lane);
		}
		if (limited >> class & 1) {
			s16 *credit = &k->credit[class];

			*credit = (s16)(*credit - (s32)wire);
			if (sl_unlikely(*credit <= 0)) {
				closes |= class_queues(class);
				k->closed |= (u16)class_queues(class);
				k->shut |= (u16)(ready & class_queues(class));
				ready &= ~class_queues(class);
			}
		}
		if (sl_unlikely(sub->limited >> q & 1)) {
			s32 *ahead = sl_at(sub->class_left, class);

			*ahead -= (s32)wire;
			if (sl_unlikely(*ahead <= 0) && !subport_class_refill(sub, class, call->now_ns)) {
				sub->closed |= (u16)class_queues(class);
				call->queues &= ~class_queues(class);
				may &= call->queues;
			}
		}
		if (call->allowance && !--*sl_at(call->allowance->pkts, class)) {
			call->allowed &= ~class_queues(class);
			call->queues &= ~class_queues(class);
			may &= call->queues;
		}
		m = ready & may;
	} while (m && tat <= until && left_bytes > 0 && call->got < call->wanted && call->left_bytes > 0 && --run);
	*sl_at(t->ready, p) = (u16)ready;
	k->tat_64ths = tat;
	k->left_bytes = (s16)left_bytes;
	if (sl_unlikely(closes & k->shut))
		credits_wait(t, p, k, profile, call->now_ns);
	if (m && tat <= until && left_bytes > 0)
		return 1;
	if (tat > until && ready) {
		pipe_wait(t, p, k, call->now_ns);
		return 0;
	}
	if (sl_unlikely(left_bytes > 0 && ready & queues)) {
		pipe_turn_pauses(t, sub, p, k, ready & queues);
		return 0;
	}
	/* A turn beside one that pauses does not pay for that one. */
	if (sl_unlikely(*sl_at(t->owed, p >> 6) & SL_BIT(p)))
		k->left_bytes = (s16)sl_min(left_bytes, *sl_at(g->before, i));
	pipe_turn_ends(t, p, k);
	return 0;
}
