/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The scheduler: queues per class, limits, token buckets, and the discipline that picks. It holds slot numbers; an
 * engine keeps the packet of slot n where slot n is.
 *
 *	sl_configure	once before use, and again whenever the policy changes, packets queued or not
 *	sl_enqueue	the slot that the packet has now, or the negative of an enum sl_refusal
 *	sl_dequeue	send this slot, or wait until then, or idle
 *	sl_reap		a slot whose packet was dropped from a queue; to be asked after each of the two above
 *	sl_clear	forget every packet
 *
 * A class with packets is either ready (its bit is in s->ready and the discipline may pick it) or held until its
 * ceiling has tokens, and its peak, if it has one. A class with a guarantee that it has not used up goes before the discipline's choice, and is
 * charged to the discipline all the same. What it sends while the guarantee is used up is not charged to the guarantee.
 */
#pragma once
#include "backlog.h"
#include "ceiling.h"
#include "flow_change.h"
#include "lone.h"
#include "packet.h"
#include "queue.h"
#include "wire.h"
#include "registry.h"
#include "room.h"

enum sl_action { SL_IDLE, SL_WAIT, SL_SEND };

struct sl_verdict {
	u32 action; /* enum sl_action */
	u32 slot; /* SL_SEND: it is free again at once, so take the packet out before the next enqueue */
	u32 class;
	u32 len_bytes;
	u32 mark; /* SL_SEND: it is to say that it has met congestion; only if it was said that it can */
	u64 wake_ns; /* SL_WAIT */
};

SL_FN struct sl_class *class_at(struct sl_sched *s, u32 c)
{
	return sl_at(s->classes, c);
}

/* Class c, which has packets and is not ready, waits until this time. */
SL_FN void sl_hold_until(struct sl_sched *s, u32 c, u64 opens)
{
	if (!s->held || opens < s->held_until_ns)
		s->held_until_ns = opens;
	s->held |= SL_BIT(c);
	tournament_put(&s->ceilings, c, opens);
}

/* Class c, which has packets, waits until its ceiling has tokens, and its peak. */
SL_GLOBAL int sl_hold(struct sl_sched *s SL_NONNULL, u32 c)
{
	sl_hold_until(s, c, class_opens_ns(class_at(s, c)));
	return 0;
}

/* Class c, which is *k, has packets: it joins, or is held. */
SL_FN void sl_offer(struct sl_sched *s, struct sl_class *k, u32 c, u64 now_ns)
{
	if (sl_likely(class_open(k, now_ns)))
		sl_join(s, k, c, now_ns);
	else
		sl_hold(s, c);
}

/* When the first of a tournament by opening times opens; the end of time if it is empty. */
SL_FN u64 sl_first_opening(const struct sl_tournament *t)
{
	return tournament_empty(t) ? ~0ULL : *sl_at(t->key, tournament_first(t));
}

/*
 * Held classes whose ceiling has tokens again join, and classes whose guarantee has tokens again may use it. Both wait in the order in which
 * they open, so each costs O(log classes), and those that go on waiting cost nothing. Classes that join at once do so by number.
 */
SL_GLOBAL int sl_release(struct sl_sched *s SL_NONNULL, u64 now_ns)
{
	u64 joins = 0;
	u32 n, c;

	sl_for (n, SL_CLASSES) {
		if (now_ns < s->held_until_ns || tournament_empty(&s->ceilings))
			break;
		c = tournament_first(&s->ceilings);
		tournament_cut(&s->ceilings, c);
		joins |= SL_BIT(c);
		s->held_until_ns = sl_first_opening(&s->ceilings);
	}
	s->held &= ~joins;
	sl_for (n, SL_CLASSES) {
		if (!joins)
			break;
		c = sl_lowest(joins);
		joins &= joins - 1;
		sl_join(s, class_at(s, c), c, now_ns);
	}
	sl_for (n, SL_CLASSES) {
		if (!s->guarantee_used || now_ns < s->guarantee_used_until_ns)
			break;
		c = tournament_first(&s->guarantees);
		tournament_cut(&s->guarantees, c);
		s->guarantee_used &= ~SL_BIT(c);
		s->guarantee_left |= SL_BIT(c);
		s->guarantee_used_until_ns = sl_first_opening(&s->guarantees);
	}
	return 0;
}

/* Class c, which has a guarantee, has used it up until it has tokens again. */
SL_GLOBAL int sl_use_up(struct sl_sched *s SL_NONNULL, u32 c)
{
	u64 opens_ns = bucket_opens_ns(&class_at(s, c)->rate);

	if (!s->guarantee_used || opens_ns < s->guarantee_used_until_ns)
		s->guarantee_used_until_ns = opens_ns;
	s->guarantee_left &= ~SL_BIT(c);
	s->guarantee_used |= SL_BIT(c);
	tournament_put(&s->guarantees, c, opens_ns);
	return 0;
}

/* Counts a packet that is refused for an enum sl_drop. The negative of its enum sl_refusal. */
SL_FN s32 sl_refuse(struct sl_class *k, u32 reason, u32 len_bytes)
{
	k->dropped_pkts[reason]++;
	k->dropped_bytes += len_bytes;
	return -(s32)SL_DROPPED(reason);
}

/* The slot of a packet that takes the fast path, or -1. Its flow may be set later (sl_lone_slot_by_flow). */
SL_FN s32 sl_enqueue_lone(struct sl_sched *s, u32 class, u32 len_bytes, u32 segments, u64 now_ns)
{
	struct sl_class *k = class_at(s, class);

	if (!lone_may(s, k, len_bytes))
		return -1;
	return (s32)lone_begin(s, k, class, len_bytes, wire_bytes(s, len_bytes, segments), now_ns);
}

/* The slot gets what flow queueing must know of its packet. */
SL_FN void slot_identify(struct sl_slot *q, const struct sl_packet *p)
{
	q->ecn = p->ecn != 0;
	q->flow_hash = p->flow_hash;
	q->src_host = p->src_host;
	q->dst_host = p->dst_host;
}

/* sl_enqueue of a packet that cannot take the fast path. */
SL_FN s32 sl_enqueue_queued(struct sl_sched *s, const struct sl_packet *p, u64 now_ns)
{
	struct sl_class *k = class_at(s, p->class);
	u32 slot, full, wire = wire_bytes(s, p->len_bytes, p->segments);
	struct sl_slot *q;

	if (sl_unlikely(s->lone))
		lone_end(s);
	if (sl_unlikely(k->ceiling & SL_CEILING_DROPS)) {
		full = sl_is_over(k, now_ns);
		if (full != SL_DROPS)
			return sl_refuse(k, full, p->len_bytes);
	}
	full = sl_is_full(k, p->len_bytes);
	if (sl_unlikely(full != SL_DROPS) && k->by_flow) {
		/* Of what is queued, some goes before this packet is refused. */
		flow_overflow(s, p->class);
		full = sl_is_full(k, p->len_bytes);
	}
	if (sl_unlikely(full != SL_DROPS))
		return sl_refuse(k, full, p->len_bytes);
	if (sl_unlikely(s->backlog_pkts >= s->room_from_pkts) && !s->dropped_slots && room_make(s, p->class) == SL_ROOM_OWN)
		return sl_refuse(k, SL_DROP_NO_SLOT, p->len_bytes);
	slot = slot_take(s);
	if (slot == SL_NO_SLOT)
		return sl_refuse(k, SL_DROP_NO_SLOT, p->len_bytes);
	if (sl_unlikely(k->ceiling & SL_CEILING_DROPS))
		sl_charge_peaked(s, p->class, wire, now_ns);

	q = sl_at(s->slot, slot);
	slot_fill(q, p->class, p->len_bytes, wire, now_ns);
	if (k->by_flow) {
		slot_identify(q, p);
		flow_enter(s, k, p->class, slot, k->backlog_pkts, now_ns);
	} else {
		sl_push(s, k, slot);
	}
	if (!k->backlog_pkts)
		sl_offer(s, k, p->class, now_ns);
	backlog_add(s, k, p->len_bytes);
	class_grown(s, k, p->class);
	return (s32)slot;
}

SL_FN s32 sl_enqueue(struct sl_sched *s, const struct sl_packet *p, u64 now_ns)
{
	s32 slot = sl_enqueue_lone(s, p->class, p->len_bytes, p->segments, now_ns);

	if (slot < 0)
		return sl_enqueue_queued(s, p, now_ns);
	slot_identify(sl_at(s->slot, slot), p);
	return slot;
}

/*
 * Takes a packet from its queue, which is not the lone one, while the link is open. Its slot, with SL_FLOW_MARK if it is to be marked;
 * SL_NO_SLOT: every class with packets is held.
 */
SL_GLOBAL u32 sl_take_queued(struct sl_sched *s SL_NONNULL, u64 now_ns)
{
	struct sl_class *k;
	struct sl_slot *q;
	u32 c, taken, slot;
	u64 first;

	if (sl_unlikely((s->held && now_ns >= s->held_until_ns) || (s->guarantee_used && now_ns >= s->guarantee_used_until_ns)))
		sl_release(s, now_ns);
	if (!s->ready)
		return SL_NO_SLOT;

	first = s->ready & s->guarantee_left;
	c = sl_unlikely(first) ? sl_lowest(first) : sl_pick(s);
	k = class_at(s, c);
	if (k->by_flow) {
		taken = flow_leave(s, c, now_ns);
		k->marked_pkts += taken / SL_FLOW_MARK;
	} else {
		taken = sl_pop(s, k);
	}
	slot = taken & ~SL_FLOW_MARK;
	q = sl_at(s->slot, slot);
	backlog_send(s, k, q, c, now_ns);
	class_shrunk(s, k, c);

	if (sl_likely(!k->ceiling))
		bucket_charge(&k->ceil, q->wire_bytes, now_ns);
	else if (!(k->ceiling & SL_CEILING_DROPS))
		sl_charge_peaked(s, c, q->wire_bytes, now_ns);
	/* Bytes beyond a guarantee are borrowed, and not charged to it (as in HTB): else the class would have to pay them back. */
	if (sl_unlikely(first)) {
		bucket_charge(&k->rate, q->wire_bytes, now_ns);
		if (!bucket_open(&k->rate, now_ns))
			sl_use_up(s, c);
	}
	sl_charge(s, k, q->len_bytes);
	if (!k->backlog_pkts || !class_open(k, now_ns)) {
		sl_leave(s, k, c);
		if (k->backlog_pkts)
			sl_offer(s, k, c, now_ns);
	} else {
		sl_stay(s, k, c);
	}
	slot_give(s, q, slot);
	return taken;
}

SL_FN struct sl_verdict sl_dequeue(struct sl_sched *s, u64 now_ns)
{
	struct sl_verdict v = { SL_IDLE, 0, 0, 0, 0, 0 };
	struct sl_slot *q;
	u32 taken;

	if (!s->backlog_pkts)
		return v;
	v.action = SL_WAIT;
	if (!bucket_open(&s->link, now_ns)) {
		v.wake_ns = bucket_opens_ns(&s->link);
		return v;
	}
	if (sl_likely(s->lone)) {
		v.slot = s->free;
		q = sl_at(s->slot, v.slot);
		lone_take(s, q, now_ns);
	} else {
		taken = sl_take_queued(s, now_ns);
		if (taken == SL_NO_SLOT) {
			v.wake_ns = s->held_until_ns;
			return v;
		}
		v.mark = taken / SL_FLOW_MARK;
		v.slot = taken & ~SL_FLOW_MARK;
		q = sl_at(s->slot, v.slot);
	}
	v.action = SL_SEND;
	v.class = q->class;
	v.len_bytes = q->len_bytes;
	return v;
}

/* Forgets the state of disciplines: no class is ready. */
SL_FN void sl_forget(struct sl_sched *s)
{
	u32 i;

	s->ready = s->held = s->guarantee_left = s->guarantee_used = 0;
	s->held_until_ns = s->guarantee_used_until_ns = 0;
	tournament_clear(&s->ceilings);
	tournament_clear(&s->guarantees);
	sl_for (i, SL_SCHED_STATE_ROWS)
		__builtin_memset(sl_at(s->state, i), 0, sizeof(s->state[0]));
	sl_for (i, SL_CLASSES)
		__builtin_memset(class_at(s, i)->state, 0, sizeof(s->classes[0].state));
}

/* A function of its own, so that its branches are verified once and not for each class. */
SL_GLOBAL int sl_configure_class(struct sl_class *k SL_NONNULL, const struct sl_class_conf *g SL_NONNULL, u64 now_ns)
{
	k->limit_pkts = g->limit_pkts;
	k->limit_bytes = g->limit_bytes;
	k->quantum_bytes = g->quantum_bytes;
	k->level = (u8)(g->level & (SL_CLASSES - 1));
	k->ceiling = (g->policed ? SL_CEILING_DROPS : 0) | (g->ceil_cost && g->peak_cost ? SL_CEILING_HAS_PEAK : 0);
	k->weight = (u16)sl_max(g->weight, 1);
	k->virtual_cost = (1ULL << 32) / sl_max(k->weight, 1);
	k->budget_ns = g->budget_ns;
	k->hosts = (u8)g->hosts;
	k->flow_quantum_bytes = sl_min(sl_max(g->flow_quantum_bytes, 1), 1 << 24);
	k->allowance_bytes = sl_min(sl_max(g->allowance_bytes, k->flow_quantum_bytes), 1 << 26);
	k->target_ns = g->target_ns;
	k->interval_ns = sl_min(g->interval_ns, 1ULL << 36);
	bucket_configure(&k->ceil, g->ceil_cost, g->ceil_burst_ns, now_ns);
	bucket_configure(&k->peak, g->peak_cost, g->peak_burst_ns, now_ns);
	bucket_configure(&k->rate, g->rate_cost, g->rate_burst_ns, now_ns);
	return 0;
}

/* The time of a flow's quantum at the class's rate. */
SL_FN u32 sl_round_ns(const struct sl_sched *s, const struct sl_class *k)
{
	u64 cost = sl_max(s->link.cost, k->ceil.cost);

	return cost ? (u32)sl_min(sl_max(k->flow_quantum_bytes * cost >> 20, 1), 1ULL << 31) : SL_ROUND_NS;
}

/* Configures the classes, while packets stand in their FIFOs alone. */
SL_GLOBAL int sl_configure_classes(struct sl_sched *s SL_NONNULL, const struct sl_sched_conf *f SL_NONNULL, u64 now_ns)
{
	u32 c;

	sl_for (c, SL_CLASSES)
		*sl_at(s->level_classes, c) = 0;
	sl_for (c, SL_CLASSES) {
		struct sl_class *k = class_at(s, c);

		sl_configure_class(k, sl_at(f->classes, c), now_ns);
		k->round_ns = sl_round_ns(s, k);
		*sl_at(s->level_classes, k->level) |= SL_BIT(c);
		if (bucket_limits(&k->rate) && !sl_ranks_packets(s->kind))
			sl_use_up(s, c);
	}
	flow_divide(s, f);
	sl_for (c, SL_CLASSES)
		class_at(s, c)->lone_bytes = lone_limit_bytes(class_at(s, c), s->kind);
	return 0;
}

/* Keeps packets of these classes (a bitmap) off the fast path until the next sl_configure: the engine polices them first. */
SL_GLOBAL int sl_keep_from_fast_path(struct sl_sched *s SL_NONNULL, u64 classes)
{
	u32 c;

	sl_for (c, SL_CLASSES)
		if (classes >> c & 1)
			class_at(s, c)->lone_bytes = 0;
	return 0;
}

/* Classes that have packets join, or are held. */
SL_GLOBAL int sl_offer_all(struct sl_sched *s SL_NONNULL, u64 now_ns)
{
	u32 c;

	sl_for (c, SL_CLASSES) {
		struct sl_class *k = class_at(s, c);

		if (k->backlog_pkts)
			sl_offer(s, k, c, now_ns);
	}
	return 0;
}

/* The configuration f takes force; packets and counters stay, what buckets owe stays owed. Each step on its own, since stack is scarce. */
SL_GLOBAL int sl_configure(struct sl_sched *s SL_NONNULL, const struct sl_sched_conf *f SL_NONNULL, u64 now_ns)
{
	int stays = flow_stays(s, f);

	if (s->lone)
		lone_end(s);
	sl_dissolve(s);
	if (!stays)
		flow_dissolve(s);
	sl_forget(s);
	s->kind = f->kind;
	s->generation = f->generation;
	s->rank = f->rank;
	s->rank_shift = sl_min(f->rank_shift, 51);
	s->slots = sl_min(f->slots, SL_SLOTS);
	s->room_from_pkts = s->slots - sl_min(s->slots / 4, SL_SPARE_SLOTS);
	s->overhead_bytes = f->overhead_bytes;
	s->mpu_bytes = f->mpu_bytes;
	s->cells = f->cells;
	s->framed = f->overhead_bytes || f->mpu_bytes || f->cells;
	bucket_configure(&s->link, f->link_cost, f->link_burst_ns, now_ns);
	sl_configure_classes(s, f, now_ns);
	if (!stays)
		flow_form(s);
	sl_form(s);
	return sl_offer_all(s, now_ns);
}

/* Every packet is gone. Counters and configuration stay. */
SL_GLOBAL int sl_clear(struct sl_sched *s SL_NONNULL)
{
	u64 guaranteed = s->guarantee_left | s->guarantee_used;
	u32 c;

	sl_forget(s);
	flow_forget(s);
	s->backlog_pkts = s->lone = s->free_count = s->fresh = s->dropped_slots = 0;
	sl_for (c, SL_CLASSES) {
		struct sl_class *k = class_at(s, c);

		k->dropped_pkts[SL_DROP_RESET] += k->backlog_pkts;
		k->dropped_bytes += k->backlog_bytes;
		k->backlog_pkts = k->backlog_bytes = 0;
		class_shrunk(s, k, c);
		if (guaranteed & SL_BIT(c))
			sl_use_up(s, c);
	}
	return 0;
}

/* A state that may have served before is as good as new: empty, unconfigured, all counters zero. */
SL_GLOBAL int sl_wipe(struct sl_sched *s SL_NONNULL)
{
	u32 c, i;

	sl_for (c, SL_CLASSES) {
		struct sl_histogram *h = sl_at(s->sojourn, c);

		__builtin_memset(class_at(s, c), 0, sizeof(struct sl_class));
		sl_for (i, SL_SOJOURN_BUCKETS)
			*sl_at(h->count, i) = 0;
	}
	__builtin_memset(&s->link, 0, sizeof(s->link));
	__builtin_memset(s->large, 0, sizeof(s->large));
	sl_forget(s);
	flow_forget(s);
	s->kind = s->generation = 0;
	s->backlog_pkts = s->lone = s->free_count = s->fresh = s->dropped_slots = 0;
	return 0;
}
