/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A tree of classes: the link, up to six levels of inner nodes below it, and leaves, which queue their packets by flow (flow_queue.h). Nodes are
 * configured by tree_change.h.
 *
 *	tree_enqueue	the slot that the packet has now, or the negative of an enum sl_refusal
 *	tree_dequeue	send this slot, or wait until then, or idle
 *	tree_drop	a packet of a leaf is dropped; to empty a leaf, until it has none
 *	sl_reap		a slot whose packet was dropped from a queue; to be asked after each of the three above
 *	tree_clear	forget every packet
 *
 * Each node has a ceiling, a guarantee and a weight. A parent has two rings of children: those that may send, and of these the ones whose
 * guarantee has tokens. At each node from the link down to a leaf, the ring of guarantees goes first, a packet for each child in turn. What
 * guarantees leave is borrowed by the discipline of the parent, as in HTB: elastic round robin by weight, strict priority, round robin by packets,
 * or one that needs an order of the children (tree_order.h): weighted fair queueing, EEVDF, PIFO.
 *
 * A packet is charged to the ceiling of every node on its way, and to the guarantees by which it was chosen. A node whose ceiling has no
 * tokens leaves the rings, and so does an ancestor that has no other child in them. It waits in a timing wheel (wheel.h), a node whose guarantee
 * has none in another. So a node that may not send is never visited.
 *
 * Elastic round robin is as in elastic_round_robin.h, for any number of children. A child has one turn in a round. Where it waits for its
 * ceiling in its turn, it goes on with it if it is back within the round; otherwise it takes its turn of the next round at once. So a ceiling
 * below a child's share does not need a burst as long as a round. Children that have had their turn stand behind all others.
 *
 * A leaf may be divided into parts, one for each class of its packets: then it is a node like others, with a few children that are leaves, and counts
 * what they hold, send and drop. So a part has a guarantee, a ceiling, and a weight or a priority inside of its leaf.
 *
 * The burst of a guarantee is the lateness that it makes up while it has packets. It is no credit for time without packets: else siblings
 * that come back together would exceed their parent.
 *
 * The fast path: a packet that comes to an empty tree stands in no ring, and its way is not ready; t->lone says so. If it leaves before
 * another one comes, it is charged to the ceilings alone: a guarantee and a turn matter only beside others. If another one comes, or a
 * ceiling has no tokens, its leaf joins the rings as of the time of its arrival (tree_end_lone).
 *
 * Bounds: in any window of t seconds no node sends more than ceil * t + burst + one packet. A ceiling is reached if its burst lasts as long as
 * a round of each parent above, and two ticks of the wheel. A guarantee is kept if it fits (those of siblings add up to no more than their
 * parent's, and no ceiling on the way is lower) and if its burst, at its rate, is as much as two packets of each sibling on each level, and what
 * the parent sends in four ticks of the wheel.
 * Cost: O(levels) for a packet, whatever the number of nodes, but O(log children) at a node whose discipline needs an order; and O(levels) for each end of waiting, of which one call handles SL_WAKES in
 * each wheel.
 */
#pragma once
#include "leaf_class.h"
#include "leaf_flows.h"
#include "packet.h"
#include "tree_nodes.h"
#include "wire.h"

enum sl_tree_action { SL_TREE_IDLE, SL_TREE_WAIT, SL_TREE_SEND };

struct sl_tree_verdict {
	u32 action; /* enum sl_tree_action */
	u32 slot; /* SL_TREE_SEND: it is free again at once */
	u32 leaf;
	u32 len_bytes;
	u32 mark; /* SL_TREE_SEND: it is to say that it has met congestion; only if it was said that it can */
	u32 assured; /* SL_TREE_SEND: by its guarantee, a child of the link was chosen before others */
	u64 wake_ns; /* SL_TREE_WAIT: later than now */
};

/* The lone packet, if there is one, takes the slow path. */
SL_GLOBAL int tree_end_lone(struct sl_tree *t SL_NONNULL)
{
	u32 n = t->lone - 1;

	if (!t->lone)
		return 0;
	t->lone = 0;
	return tree_rise(t, n, sl_at(t->slot, sl_at(t->fair, n)->alone - 1)->arrived_ns);
}

/* Takes a packet of leaf n, which has some: its slot, with SL_FLOW_MARK if it is to be marked. CoDel may drop others. */
SL_GLOBAL u32 leaf_take(struct sl_tree *t SL_NONNULL, u32 n, u64 now_ns)
{
	struct sl_leaf *leaf = leaf_at(t, n);
	u32 taken = flow_leave(t, n, now_ns);
	struct sl_tree_slot *q = sl_at(t->slot, taken & ~SL_FLOW_MARK);

	leaf_add_backlog(t, leaf, -1u, -q->len_bytes);
	t->pkts--;
	leaf_shrunk(t, n, leaf);
	if (!leaf->pkts)
		node_at(t, n)->state &= (u8)~SL_NODE_READY;
	return taken;
}

/* Counts a packet that leaf n refuses for an enum sl_drop. The negative of its enum sl_refusal. */
SL_FN s32 leaf_refuse(struct sl_tree *t, struct sl_leaf *leaf, u32 reason)
{
	leaf_count_drop(t, leaf, reason);
	return -(s32)SL_DROPPED(reason);
}

/*
 * A packet comes to leaf p->class. Its slot, or the negative of an enum sl_refusal: the leaf is full, or the tree, or there is no such leaf. A full
 * leaf drops from its longest flow first, a full tree from one of its largest leaves.
 */
SL_GLOBAL s32 tree_enqueue(struct sl_tree *t SL_NONNULL, const struct sl_packet *p SL_NONNULL, u64 now_ns)
{
	u32 n = p->class, pkts, slot, gives;
	struct sl_leaf *leaf = leaf_at(t, n);
	struct sl_tree_slot *q;

	if (n >= SL_FIRST_INNER)
		return -(s32)SL_DROPPED(SL_DROP_LIMIT_PKTS);
	if (t->lone)
		tree_end_lone(t);
	/* The limit of a leaf that is not configured is 0, and that of a divided one. */
	if (sl_unlikely(leaf->pkts >= leaf->limit_pkts) && leaf->pkts && !leaf_is_divided(leaf)) {
		if (flow_overflow(t, n))
			order_refresh(t, n, now_ns);
	}
	if (sl_unlikely(leaf->pkts >= leaf->limit_pkts))
		return leaf_refuse(t, leaf, SL_DROP_LIMIT_PKTS);
	if (sl_unlikely(t->pkts >= t->room_from_pkts) && !t->dropped_slots) {
		gives = tree_make_room(t, now_ns);
		if (!gives)
			return leaf_refuse(t, leaf, SL_DROP_NO_SLOT);
		order_refresh(t, gives - 1, now_ns);
	}
	slot = slot_take(t);
	if (slot == SL_NO_SLOT)
		return leaf_refuse(t, leaf, SL_DROP_NO_SLOT);
	q = sl_at(t->slot, slot);
	q->leaf = (u16)n;
	/* No packet is longer; so bytes of a turn fit an s32. */
	q->len_bytes = sl_min(p->len_bytes, 1 << 20);
	q->wire_bytes = sl_min(wire_bytes(t, q->len_bytes, p->segments), 1 << 21);
	q->arrived_ns = now_ns;
	q->flow_hash = p->flow_hash;
	q->src_host = p->src_host;
	q->dst_host = p->dst_host;
	q->ecn = p->ecn != 0;
	pkts = leaf->pkts;
	flow_enter(t, class_of(t, n), n, slot, pkts, now_ns);
	leaf_add_backlog(t, leaf, 1, q->len_bytes);
	t->pkts++;
	leaf_grown(t, n, leaf);
	if (t->pkts == 1)
		t->lone = n + 1;
	else if (!pkts)
		tree_rise(t, n, now_ns);
	return (s32)slot;
}

/* Drops the packet that leaf n would send next. Its slot, which is free again; SL_NO_SLOT: it has none. */
SL_GLOBAL u32 tree_drop(struct sl_tree *t SL_NONNULL, u32 n, u64 now_ns)
{
	struct sl_leaf *leaf = leaf_at(t, n);
	u32 slot;

	if (n >= SL_FIRST_INNER || !leaf->pkts || leaf_is_divided(leaf))
		return SL_NO_SLOT;
	tree_end_lone(t);
	slot = leaf_take(t, n, now_ns) & ~SL_FLOW_MARK;
	leaf_count_drop(t, leaf, SL_DROP_RESET);
	if (!leaf->pkts)
		tree_fall(t, n);
	else
		order_refresh(t, n, now_ns);
	slot_give(t, sl_at(t->slot, slot), slot);
	return slot;
}

/* Every packet is gone. Counters and configuration stay, and what flows and nodes owe. */
SL_GLOBAL int tree_clear(struct sl_tree *t SL_NONNULL, u64 now_ns)
{
	u32 n, i;

	sl_for (n, SL_FIRST_INNER) {
		if (!t->pkts)
			break;
		sl_for (i, SL_TREE_SLOTS)
			if (tree_drop(t, n, now_ns) == SL_NO_SLOT)
				break;
	}
	sl_for (i, SL_TREE_SLOTS)
		if (sl_reap(t) == SL_NO_SLOT)
			break;
	return 0;
}

/* Counts a packet of *leaf, whose slot is *q, as sent, and as marked if mark is 1. */
SL_FN void leaf_count_sent(struct sl_leaf *leaf, const struct sl_tree_slot *q, u32 mark, u64 now_ns)
{
	leaf->sent_pkts++;
	leaf->sent_bytes += q->len_bytes;
	leaf->marked_pkts += mark;
	leaf->wait_ns += (u32)(sl_min(now_ns - q->arrived_ns, 0xffffffffu) >> 4) - (leaf->wait_ns >> 4);
}

/* Counts it also at the divided leaf of which *leaf is a part. */
SL_FN void leaf_and_whole_count_sent(struct sl_tree *t, struct sl_leaf *leaf, const struct sl_tree_slot *q, u32 mark, u64 now_ns)
{
	leaf_count_sent(leaf, q, mark, now_ns);
	if (sl_unlikely(leaf->whole))
		leaf_count_sent(leaf_at(t, leaf->whole - 1u), q, mark, now_ns);
}

/* The lone packet is sent, if every ceiling on its way has tokens: its slot, which is free again; SL_NO_SLOT: some have none. */
SL_GLOBAL u32 tree_send_lone(struct sl_tree *t SL_NONNULL, u64 now_ns)
{
	u32 leaf = t->lone - 1, slot = sl_at(t->fair, leaf)->alone - 1, n = leaf, i;
	struct sl_tree_slot *q = sl_at(t->slot, slot);
	struct sl_leaf *l = leaf_at(t, leaf);
	struct sl_node *k;

	SL_UNROLLED
	for (i = 0; i < SL_TREE_LEVELS; i++) {
		k = node_at(t, n);
		if (!node_open(&k->bucket[SL_TURN_SHARED], now_ns))
			return SL_NO_SLOT;
		if (n == SL_FIRST_INNER)
			break;
		n = node_parent(k);
	}
	n = leaf;
	SL_UNROLLED
	for (i = 0; i < SL_TREE_LEVELS; i++) {
		k = node_at(t, n);
		node_charge(&k->bucket[SL_TURN_SHARED], q->wire_bytes, now_ns);
		if (n == SL_FIRST_INNER)
			break;
		n = node_parent(k);
	}
	t->lone = 0;
	sl_at(t->fair, leaf)->alone = 0;
	leaf_add_backlog(t, l, -1u, -q->len_bytes);
	t->pkts = 0;
	leaf_and_whole_count_sent(t, l, q, 0, now_ns);
	slot_give(t, q, slot);
	return slot;
}

/* In the answer of tree_choose: it is chosen by its guarantee. */
#define SL_CHOSEN_ASSURED (1U << 16)

/* The child of node n that sends next; there is one. */
SL_GLOBAL u32 tree_choose(struct sl_tree *t SL_NONNULL, u32 n)
{
	u32 assured = inner_at(t, n)->first[SL_TURN_ASSURED];

	return assured ? (SL_NO_NODE - assured) | SL_CHOSEN_ASSURED : tree_share(t, n);
}

SL_FN struct sl_tree_verdict tree_dequeue(struct sl_tree *t, u64 now_ns)
{
	struct sl_tree_verdict v = { SL_TREE_IDLE, 0, 0, 0, 0, 0, 0 };
	struct sl_node *link = node_at(t, SL_FIRST_INNER);
	/* Bit i: the node i levels below the link was chosen by its guarantee. */
	u32 i, n = SL_FIRST_INNER, assured = 0, level = 0, taken, bytes;
	struct sl_tree_slot *q;
	struct sl_leaf *leaf;

	if (!t->pkts)
		return v;
	v.action = SL_TREE_WAIT;
	if (!node_open(&link->bucket[SL_TURN_SHARED], now_ns)) {
		v.wake_ns = node_opens_ns(&link->bucket[SL_TURN_SHARED]);
		return v;
	}
	if (t->lone) {
		v.slot = tree_send_lone(t, now_ns);
		if (v.slot != SL_NO_SLOT) {
			q = sl_at(t->slot, v.slot);
			v.action = SL_TREE_SEND;
			v.leaf = q->leaf;
			v.len_bytes = q->len_bytes;
			return v;
		}
		tree_end_lone(t);
	}
	if (wheel_due(&t->wheel[SL_TURN_SHARED], now_ns) || wheel_due(&t->wheel[SL_TURN_ASSURED], now_ns))
		tree_wake(t, now_ns);
	if (!(link->state & SL_NODE_READY)) {
		v.wake_ns = sl_max(wheel_next_ns(&t->wheel[SL_TURN_SHARED]), now_ns + 1);
		return v;
	}
	SL_UNROLLED
	for (level = 1; level < SL_TREE_LEVELS; level++) {
		n = tree_choose(t, n);
		assured |= n / SL_CHOSEN_ASSURED << level;
		n &= SL_CHOSEN_ASSURED - 1;
		if (n < SL_FIRST_INNER && !leaf_is_divided(leaf_at(t, n)))
			break;
	}
	v.action = SL_TREE_SEND;
	v.leaf = n & (SL_FIRST_INNER - 1);
	v.assured = assured >> 1 & 1;
	taken = leaf_take(t, n, now_ns);
	v.mark = taken / SL_FLOW_MARK;
	v.slot = taken & ~SL_FLOW_MARK;
	q = sl_at(t->slot, v.slot);
	v.len_bytes = q->len_bytes;
	bytes = q->wire_bytes;
	leaf = leaf_at(t, n);
	leaf_and_whole_count_sent(t, leaf, q, v.mark, now_ns);
	SL_UNROLLED
	for (i = 0; i < SL_TREE_LEVELS; i++) {
		tree_charge(t, n, assured >> (level & 31) & 1, bytes, now_ns);
		if (n == SL_FIRST_INNER)
			break;
		n = node_parent(node_at(t, n));
		level--;
	}
	slot_give(t, q, v.slot);
	return v;
}
