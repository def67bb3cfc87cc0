/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A tree of classes: the link, up to six levels of inner nodes below it, and leaves, which queue their packets by flow (flow_queue.h).
 *
 *	tree_set_up	how many packets it may hold, and how the link below counts them: before use, and again whenever that changes
 *	tree_set_queue	how some leaves queue by flow; packets may be queued
 *	tree_configure	what a node is: its parent, limits and weight; packets may be queued
 *	tree_remove	a node without packets and children is no more
 *	tree_enqueue	the slot that the packet has now, or the negative of an enum sl_refusal
 *	tree_dequeue	send this slot, or wait until then, or idle
 *	tree_drop	a packet of a leaf is dropped; to empty a leaf, until it has none
 *	tree_reap	a slot whose packet was dropped from a queue; to be asked after each of the three above
 *	tree_clear	forget every packet
 *
 * Each node has a ceiling, a guarantee and a weight. A parent has two rings of children: those that may send, and of these the ones whose
 * guarantee has tokens. At each node from the link down to a leaf, the ring of guarantees goes first, a packet for each child in turn. What
 * guarantees leave is borrowed by the discipline of the parent, as in HTB: elastic round robin by weight, or strict priority.
 *
 * A packet is charged to the ceiling of every node on its way, and to the guarantees by which it was chosen. A node whose ceiling has no
 * tokens leaves the rings, and so does an ancestor that has no other child in them. It waits in a timing wheel (wheel.h), a node whose guarantee
 * has none in another. So a node that may not send is never visited.
 *
 * Elastic round robin is as in elastic_round_robin.h, for any number of children. A child has one turn in a round. Where it waits for its
 * ceiling in its turn, it goes on with it if it is back within the round; otherwise it takes its turn of the next round at once. So a ceiling
 * below a child's share does not need a burst as long as a round. Children that have had their turn stand behind all others.
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
 * Cost: O(levels) for a packet, whatever the number of nodes, and O(levels) for each end of waiting, of which one call handles SL_WAKES in
 * each wheel.
 */
#pragma once
#include "leaf_flows.h"
#include "packet.h"
#include "wheel.h"
#include "wire.h"

/* Nodes whose waiting ends in one call, in each wheel. A packet makes no more nodes wait than its way has, so none pile up. */
#define SL_WAKES            8
/* Slots that are kept for packets that come while those of dropped ones are not free yet. */
#define SL_SPARE_TREE_SLOTS 64u

enum sl_tree_action { SL_TREE_IDLE, SL_TREE_WAIT, SL_TREE_SEND };

struct sl_tree_verdict {
	u32 action; /* enum sl_tree_action */
	u32 slot; /* SL_TREE_SEND: it is free again at once */
	u32 leaf;
	u32 len_bytes;
	u32 mark; /* SL_TREE_SEND: it is to say that it has met congestion; only if it was said that it can */
	u64 wake_ns; /* SL_TREE_WAIT: later than now */
};

/* Why a node cannot be configured or removed. */
enum sl_tree_error {
	SL_TREE_DONE,
	SL_TREE_NO_NODE, /* there is no such node */
	SL_TREE_NO_PARENT, /* the parent is no inner node, or not configured */
	SL_TREE_DEPTH, /* too many levels, or a node with children would move to another level */
	SL_TREE_BUSY /* it has children, or packets */
};

SL_FN struct sl_inner *inner_at(struct sl_tree *t, u32 n)
{
	return sl_at(t->inner, n);
}

/* The number of the parent of *k. */
SL_FN u32 node_parent(const struct sl_node *k)
{
	return SL_FIRST_INNER + (k->parent & (SL_INNERS - 1));
}

SL_FN int node_open(const struct sl_node_bucket *b, u64 now_ns)
{
	return b->tat_64ths <= (now_ns + b->burst_ns) << 6;
}

SL_FN u64 node_opens_ns(const struct sl_node_bucket *b)
{
	u64 full_ns = (b->tat_64ths + 63) >> 6;

	return full_ns > b->burst_ns ? full_ns - b->burst_ns : 0;
}

/* What so many bytes cost, in 1/64 ns. */
SL_FN u64 node_cost(u64 bytes, u32 cost)
{
	return (bytes * cost + (1 << (SL_NODE_COST_BITS - 7))) >> (SL_NODE_COST_BITS - 6);
}

SL_FN void node_charge(struct sl_node_bucket *b, u32 bytes, u64 now_ns)
{
	if (b->cost)
		b->tat_64ths = sl_max(b->tat_64ths, now_ns << 6) + node_cost(bytes, b->cost);
}

/* New rate and burst. What the bucket owes is kept in bytes, and owed at the new rate. */
SL_FN void node_bucket_configure(struct sl_node_bucket *b, u32 cost, u32 burst_ns, u64 now_ns)
{
	u64 full = now_ns << 6, owed, bytes;

	if (b->cost && b->cost != cost && b->tat_64ths > full) {
		owed = sl_min(b->tat_64ths - full, 1ULL << 50);
		bytes = sl_min((owed << (SL_NODE_COST_BITS - 6)) / sl_max(b->cost, 1), 1ULL << 30);
		b->tat_64ths = full + node_cost(bytes, cost);
	}
	b->cost = cost;
	b->burst_ns = burst_ns;
}

/* Where the ring of *k among the children of *p begins. */
SL_FN u16 *ring_first(struct sl_tree *t, u32 turn, const struct sl_node *k, struct sl_inner *p)
{
	if (turn == SL_TURN_SHARED && p->discipline == SL_TREE_PRIORITY)
		return sl_at(sl_at(t->priority, k->parent)->first, k->priority);
	return sl_at(p->first, turn);
}

/* Node n, which is *k, comes into a ring of its parent's, as the first or as the last. */
SL_FN void ring_add(struct sl_tree *t, u32 turn, u32 n, struct sl_node *k, int as_first)
{
	struct sl_inner *p = inner_at(t, k->parent);
	u16 *first = ring_first(t, turn, k, p);
	struct sl_node *other;
	u32 f, last;

	if (turn == SL_TURN_SHARED) {
		p->children++;
		if (p->discipline == SL_TREE_PRIORITY)
			p->priorities |= SL_BIT(k->priority);
	}
	k->state |= (u8)(SL_NODE_LISTED << turn);
	if (!*first) {
		*first = (u16)(SL_NO_NODE - n);
		*sl_at(k->next, turn) = *sl_at(k->before, turn) = (u16)n;
		return;
	}
	f = SL_NO_NODE - *first;
	other = node_at(t, f);
	last = *sl_at(other->before, turn);
	*sl_at(k->next, turn) = (u16)f;
	*sl_at(k->before, turn) = (u16)last;
	*sl_at(other->before, turn) = (u16)n;
	*sl_at(node_at(t, last)->next, turn) = (u16)n;
	if (as_first)
		*first = (u16)(SL_NO_NODE - n);
}

/* Node n, which is *k, leaves a ring of its parent's, if it is there. */
SL_FN void ring_remove(struct sl_tree *t, u32 turn, u32 n, struct sl_node *k)
{
	struct sl_inner *p = inner_at(t, k->parent);
	u16 *first = ring_first(t, turn, k, p);
	u32 next = *sl_at(k->next, turn), before = *sl_at(k->before, turn);

	if (!(k->state & SL_NODE_LISTED << turn))
		return;
	k->state &= (u8) ~(SL_NODE_LISTED << turn);
	if (turn == SL_TURN_SHARED)
		p->children--;
	if (next == n) {
		*first = 0;
		if (turn == SL_TURN_SHARED)
			p->priorities &= ~SL_BIT(k->priority);
		return;
	}
	*sl_at(node_at(t, before)->next, turn) = (u16)next;
	*sl_at(node_at(t, next)->before, turn) = (u16)before;
	if (*first == SL_NO_NODE - n)
		*first = (u16)(SL_NO_NODE - next);
}

/* Node *k, which is the first of a ring, has had its turn in it. */
SL_FN void ring_pass(struct sl_tree *t, u32 turn, struct sl_node *k)
{
	*ring_first(t, turn, k, inner_at(t, k->parent)) = (u16)(SL_NO_NODE - *sl_at(k->next, turn));
}

/* Node n, which is *k and stands in no ring of guarantees, joins it, or waits until its guarantee has tokens. */
SL_FN void node_assure(struct sl_tree *t, u32 n, struct sl_node *k, u64 now_ns)
{
	struct sl_node_bucket *rate = &k->bucket[SL_TURN_ASSURED];

	if (!rate->cost || k->state & SL_NODE_WAITS << SL_TURN_ASSURED)
		return;
	if (node_open(rate, now_ns))
		ring_add(t, SL_TURN_ASSURED, n, k, 0);
	else
		wheel_add(t, SL_TURN_ASSURED, n, k, node_opens_ns(rate), now_ns);
}

/* A guarantee begins: it may send a packet at once, if none before has been paid for in advance. Time without packets is no credit. */
SL_FN void node_assure_anew(struct sl_node_bucket *rate, u64 now_ns)
{
	rate->tat_64ths = sl_max(rate->tat_64ths, (now_ns + rate->burst_ns) << 6);
}

/* Node n, which is ready, joins its parent's rings, unless its ceiling has no tokens: then it waits. Whether it did. */
SL_FN int node_join(struct sl_tree *t, u32 n, struct sl_node *k, u64 now_ns)
{
	struct sl_node_bucket *ceil = &k->bucket[SL_TURN_SHARED];
	u32 had_turn = k->round == inner_at(t, k->parent)->round;

	if (!node_open(ceil, now_ns)) {
		wheel_add(t, SL_TURN_SHARED, n, k, node_opens_ns(ceil), now_ns);
		return 0;
	}
	if (!had_turn)
		k->left_bytes = 0;
	ring_add(t, SL_TURN_SHARED, n, k, !had_turn || k->left_bytes > 0);
	node_assure(t, n, k, now_ns);
	return 1;
}

SL_FN void node_leave(struct sl_tree *t, u32 n, struct sl_node *k)
{
	ring_remove(t, SL_TURN_SHARED, n, k);
	ring_remove(t, SL_TURN_ASSURED, n, k);
}

/* Node n, which does not wait, is ready: it joins, and its ancestors that are not ready yet become so. */
SL_GLOBAL int tree_rise(struct sl_tree *t SL_NONNULL, u32 n, u64 now_ns)
{
	struct sl_node *k;
	u32 i, was_ready = node_at(t, n)->state & SL_NODE_READY;

	sl_for (i, SL_TREE_LEVELS) {
		k = node_at(t, n);
		k->state |= SL_NODE_READY;
		if (!was_ready)
			node_assure_anew(&k->bucket[SL_TURN_ASSURED], now_ns);
		if (n == SL_FIRST_INNER || !node_join(t, n, k, now_ns))
			break;
		n = node_parent(k);
		if (node_at(t, n)->state & SL_NODE_READY)
			break;
	}
	return 0;
}

/* Node n stands in no ring and in no wheel any more, and its ancestors without other children are not ready any more. */
SL_GLOBAL int tree_fall(struct sl_tree *t SL_NONNULL, u32 n)
{
	struct sl_node *k;
	u32 i, listed;

	sl_for (i, SL_TREE_LEVELS) {
		k = node_at(t, n);
		if (n == SL_FIRST_INNER)
			break;
		listed = k->state & SL_NODE_LISTED;
		node_leave(t, n, k);
		wheel_remove(t, SL_TURN_SHARED, k);
		if (!i)
			wheel_remove(t, SL_TURN_ASSURED, k);
		if (!listed || inner_at(t, k->parent)->children)
			break;
		n = node_parent(k);
		node_at(t, n)->state &= (u8)~SL_NODE_READY;
	}
	return 0;
}

/* The lone packet, if there is one, takes the slow path. */
SL_GLOBAL int tree_end_lone(struct sl_tree *t SL_NONNULL)
{
	u32 n = t->lone - 1;

	if (!t->lone)
		return 0;
	t->lone = 0;
	return tree_rise(t, n, sl_at(t->slot, sl_at(t->fair, n)->alone - 1)->arrived_ns);
}

/* The waiting of some nodes ends. */
SL_GLOBAL int tree_wake(struct sl_tree *t SL_NONNULL, u64 now_ns)
{
	struct sl_node *k;
	u32 i, n;

	sl_for (i, SL_WAKES) {
		n = wheel_take(t, SL_TURN_SHARED, now_ns);
		if (n == SL_NO_NODE)
			break;
		tree_rise(t, n, now_ns);
	}
	sl_for (i, SL_WAKES) {
		n = wheel_take(t, SL_TURN_ASSURED, now_ns);
		if (n == SL_NO_NODE)
			break;
		k = node_at(t, n);
		/* One that has left the rings meanwhile asks again when it joins them. */
		if (k->state & SL_NODE_LISTED)
			node_assure(t, n, k, now_ns);
	}
	return 0;
}

/* The child of inner node n whose turn it is, by the node's discipline; there is one. */
SL_FN u32 tree_share(struct sl_tree *t, u32 n)
{
	struct sl_inner *p = inner_at(t, n);
	struct sl_node *k;
	u64 allowance;
	u32 c;

	if (p->discipline == SL_TREE_PRIORITY)
		return SL_NO_NODE - *sl_at(sl_at(t->priority, n)->first, sl_lowest(p->priorities));
	c = SL_NO_NODE - p->first[SL_TURN_SHARED];
	k = node_at(t, c);
	if (k->left_bytes > 0)
		return c;
	if (k->round == p->round) {
		/* The first has had its turn, so all have. */
		p->round++;
		p->surplus_before = p->surplus_most;
		p->surplus_most = 0;
	}
	k->round = p->round;
	allowance = sl_min(k->weight * (p->surplus_before + 1ULL), 1ULL << 30);
	/* A surplus may be of an earlier round than the one before; then a turn is a packet at least. */
	k->left_bytes = allowance > k->surplus_bytes ? (s32)(allowance - k->surplus_bytes) : 1;
	k->surplus_bytes = 0;
	return c;
}

/* Node *k has sent so many bytes in its turn. */
SL_FN void node_spend(struct sl_tree *t, struct sl_node *k, u32 bytes)
{
	struct sl_inner *p = inner_at(t, k->parent);
	u32 surplus;

	if (p->discipline == SL_TREE_PRIORITY) {
		ring_pass(t, SL_TURN_SHARED, k);
		return;
	}
	k->left_bytes -= (s32)bytes;
	if (k->left_bytes > 0)
		return;
	k->surplus_bytes = (u32)-k->left_bytes;
	surplus = k->surplus_bytes / sl_max(k->weight, 1);
	p->surplus_most = sl_max(p->surplus_most, surplus);
	ring_pass(t, SL_TURN_SHARED, k);
}

/* What a departure changes of node n, which was chosen from a ring: it is charged, and stays, leaves or waits. */
SL_GLOBAL int tree_charge(struct sl_tree *t SL_NONNULL, u32 n, u32 turn, u32 bytes, u64 now_ns)
{
	struct sl_node *k = node_at(t, n);
	struct sl_node_bucket *ceil = &k->bucket[SL_TURN_SHARED], *rate = &k->bucket[SL_TURN_ASSURED];

	node_charge(ceil, bytes, now_ns);
	if (n == SL_FIRST_INNER)
		return 0;
	if (turn == SL_TURN_ASSURED) {
		node_charge(rate, bytes, now_ns);
		ring_pass(t, SL_TURN_ASSURED, k);
		if (!node_open(rate, now_ns)) {
			ring_remove(t, SL_TURN_ASSURED, n, k);
			wheel_add(t, SL_TURN_ASSURED, n, k, node_opens_ns(rate), now_ns);
		}
	} else {
		node_spend(t, k, bytes);
	}
	if (k->state & SL_NODE_READY && node_open(ceil, now_ns))
		return 0;
	node_leave(t, n, k);
	if (k->state & SL_NODE_READY)
		wheel_add(t, SL_TURN_SHARED, n, k, node_opens_ns(ceil), now_ns);
	if (!inner_at(t, k->parent)->children)
		node_at(t, node_parent(k))->state &= (u8)~SL_NODE_READY;
	return 0;
}

/* Takes a packet of leaf n, which has some: its slot, with SL_FLOW_MARK if it is to be marked. CoDel may drop others. */
SL_GLOBAL u32 leaf_take(struct sl_tree *t SL_NONNULL, u32 n, u64 now_ns)
{
	struct sl_leaf *leaf = leaf_at(t, n);
	u32 taken = flow_leave(t, n, now_ns);
	struct sl_tree_slot *q = sl_at(t->slot, taken & ~SL_FLOW_MARK);

	leaf->backlog_bytes -= q->len_bytes;
	leaf->pkts--;
	t->pkts--;
	leaf_shrunk(t, n, leaf);
	if (!leaf->pkts)
		node_at(t, n)->state &= (u8)~SL_NODE_READY;
	return taken;
}

/* Counts a packet that leaf n refuses for an enum sl_drop. The negative of its enum sl_refusal. */
SL_FN s32 leaf_refuse(struct sl_leaf *leaf, u32 reason)
{
	leaf->dropped_pkts[reason]++;
	return -(s32)SL_DROPPED(reason);
}

/*
 * A packet comes to leaf p->class. Its slot, or the negative of an enum sl_refusal: the leaf is full, or the tree, or there is no such leaf. A full
 * leaf drops from its longest flow first, a full tree from one of its largest leaves.
 */
SL_GLOBAL s32 tree_enqueue(struct sl_tree *t SL_NONNULL, const struct sl_packet *p SL_NONNULL, u64 now_ns)
{
	u32 n = p->class, pkts, slot;
	struct sl_leaf *leaf = leaf_at(t, n);
	struct sl_tree_slot *q;

	if (n >= SL_FIRST_INNER)
		return -(s32)SL_DROPPED(SL_DROP_LIMIT_PKTS);
	if (t->lone)
		tree_end_lone(t);
	/* The limit of a leaf that is not configured is 0. */
	if (sl_unlikely(leaf->pkts >= leaf->limit_pkts) && leaf->pkts)
		flow_overflow(t, n);
	if (sl_unlikely(leaf->pkts >= leaf->limit_pkts))
		return leaf_refuse(leaf, SL_DROP_LIMIT_PKTS);
	if (sl_unlikely(t->pkts >= t->room_from_pkts) && !t->dropped_slots && !tree_make_room(t, now_ns))
		return leaf_refuse(leaf, SL_DROP_NO_SLOT);
	slot = slot_take(t);
	if (slot == SL_NO_SLOT)
		return leaf_refuse(leaf, SL_DROP_NO_SLOT);
	q = sl_at(t->slot, slot);
	q->leaf = (u16)n;
	/* No packet is longer; so bytes of a turn fit an s32. */
	q->len_bytes = sl_min(p->len_bytes, 1 << 20);
	q->wire_bytes = sl_min(wire_bytes(t, q->len_bytes, p->segments), 1 << 21);
	q->arrived_ns = now_ns;
	q->flow_hash = class_of(t, n)->one_flow ? 0 : p->flow_hash;
	q->src_host = p->src_host;
	q->dst_host = p->dst_host;
	q->ecn = p->ecn != 0;
	pkts = leaf->pkts;
	flow_enter(t, class_of(t, n), n, slot, pkts, now_ns);
	leaf->pkts = pkts + 1;
	leaf->backlog_bytes += q->len_bytes;
	t->pkts++;
	leaf_grown(t, n, leaf);
	if (t->pkts == 1)
		t->lone = n + 1;
	else if (!pkts)
		tree_rise(t, n, now_ns);
	return (s32)slot;
}

/* The slot of a packet that was dropped, which is free again; SL_NO_SLOT: there is none. */
SL_FN u32 tree_reap(struct sl_tree *t)
{
	u32 slot;

	if (sl_likely(!t->dropped_slots))
		return SL_NO_SLOT;
	t->dropped_slots--;
	slot = queue_pop(t, &t->dropped);
	slot_give(t, sl_at(t->slot, slot), slot);
	return slot;
}

/* Drops the packet that leaf n would send next. Its slot, which is free again; SL_NO_SLOT: it has none. */
SL_GLOBAL u32 tree_drop(struct sl_tree *t SL_NONNULL, u32 n, u64 now_ns)
{
	struct sl_leaf *leaf = leaf_at(t, n);
	u32 slot;

	if (n >= SL_FIRST_INNER || !leaf->pkts)
		return SL_NO_SLOT;
	tree_end_lone(t);
	slot = leaf_take(t, n, now_ns) & ~SL_FLOW_MARK;
	leaf->dropped_pkts[SL_DROP_RESET]++;
	if (!leaf->pkts)
		tree_fall(t, n);
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
		if (tree_reap(t) == SL_NO_SLOT)
			break;
	return 0;
}

/* Counts a packet of a leaf, whose slot is *q, as sent. */
SL_FN void leaf_count_sent(struct sl_leaf *leaf, const struct sl_tree_slot *q)
{
	leaf->sent_pkts++;
	leaf->sent_bytes += q->len_bytes;
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
	l->pkts = l->backlog_bytes = t->pkts = 0;
	leaf_count_sent(l, q);
	slot_give(t, q, slot);
	return slot;
}

SL_FN struct sl_tree_verdict tree_dequeue(struct sl_tree *t, u64 now_ns)
{
	struct sl_tree_verdict v = { SL_TREE_IDLE, 0, 0, 0, 0, 0 };
	struct sl_node *link = node_at(t, SL_FIRST_INNER);
	/* Bit i: the node i levels below the link was chosen by its guarantee. */
	u32 i, n = SL_FIRST_INNER, assured = 0, level = 0, taken, bytes;
	struct sl_tree_slot *q;
	struct sl_leaf *leaf;
	struct sl_inner *p;

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
	tree_wake(t, now_ns);
	if (!(link->state & SL_NODE_READY)) {
		v.wake_ns = sl_max(wheel_next_ns(&t->wheel[SL_TURN_SHARED]), now_ns + 1);
		return v;
	}
	sl_for (i, SL_TREE_LEVELS - 1) {
		p = inner_at(t, n);
		level = i + 1;
		if (p->first[SL_TURN_ASSURED]) {
			n = SL_NO_NODE - p->first[SL_TURN_ASSURED];
			assured |= 1U << (level & 31);
		} else {
			n = tree_share(t, n);
		}
		if (n < SL_FIRST_INNER)
			break;
	}
	v.action = SL_TREE_SEND;
	v.leaf = n & (SL_FIRST_INNER - 1);
	taken = leaf_take(t, n, now_ns);
	v.mark = taken / SL_FLOW_MARK;
	v.slot = taken & ~SL_FLOW_MARK;
	q = sl_at(t->slot, v.slot);
	v.len_bytes = q->len_bytes;
	bytes = q->wire_bytes;
	leaf = leaf_at(t, n);
	leaf_count_sent(leaf, q);
	leaf->marked_pkts += v.mark;
	sl_for (i, SL_TREE_LEVELS) {
		tree_charge(t, n, assured >> (level & 31) & 1, bytes, now_ns);
		if (n == SL_FIRST_INNER)
			break;
		n = node_parent(node_at(t, n));
		level--;
	}
	slot_give(t, q, v.slot);
	return v;
}

/* How many packets the tree may hold, and how the link below counts their bytes. */
SL_GLOBAL int tree_set_up(struct sl_tree *t SL_NONNULL, const struct sl_tree_conf *f SL_NONNULL)
{
	t->slots = sl_min(f->slots, SL_TREE_PKTS);
	t->room_from_pkts = t->slots - sl_min(t->slots / 4, SL_SPARE_TREE_SLOTS);
	t->overhead_bytes = f->overhead_bytes;
	t->mpu_bytes = f->mpu_bytes;
	t->cells = f->cells;
	t->framed = f->overhead_bytes || f->mpu_bytes || f->cells;
	return 0;
}

/* Leaves whose queue is i queue so from now on, also what they hold. */
SL_GLOBAL int tree_set_queue(struct sl_tree *t SL_NONNULL, u32 i, const struct sl_leaf_queue *g SL_NONNULL)
{
	struct sl_leaf_queue *k = sl_at(t->queue, i);

	k->flow_quantum_bytes = sl_min(sl_max(g->flow_quantum_bytes, 1), 1 << 24);
	k->allowance_bytes = sl_min(sl_max(g->allowance_bytes, k->flow_quantum_bytes), 1 << 26);
	k->round_ns = sl_max(g->round_ns, 1);
	k->hosts = g->hosts & (SL_HOSTS_SOURCE | SL_HOSTS_DESTINATION);
	k->one_flow = g->one_flow != 0;
	k->target_ns = g->target_ns;
	k->interval_ns = sl_min(g->interval_ns, 1ULL << 36);
	return 0;
}

/* Levels between node n, which is configured, and the link; SL_TREE_LEVELS: its way does not end there. */
SL_FN u32 tree_depth(struct sl_tree *t, u32 n)
{
	u32 i, depth = SL_TREE_LEVELS;

	sl_for (i, SL_TREE_LEVELS) {
		if (n == SL_FIRST_INNER) {
			depth = i;
			break;
		}
		n = node_parent(node_at(t, n));
	}
	return depth;
}

/* Whether node n may become a child of node parent: an enum sl_tree_error. */
SL_FN u32 tree_may_join(struct sl_tree *t, u32 n, u32 parent)
{
	u32 depth, inner = n >= SL_FIRST_INNER;

	if (n >= SL_FIRST_INNER + SL_INNERS)
		return SL_TREE_NO_NODE;
	if (parent == n || parent < SL_FIRST_INNER || parent >= SL_FIRST_INNER + SL_INNERS)
		return SL_TREE_NO_PARENT;
	if (parent != SL_FIRST_INNER && !node_at(t, parent)->weight)
		return SL_TREE_NO_PARENT;
	depth = tree_depth(t, parent) + 1;
	if (depth + inner >= SL_TREE_LEVELS)
		return SL_TREE_DEPTH;
	/* So no node becomes an ancestor of itself, or its leaves too deep. */
	if (inner && inner_at(t, n)->below && depth != tree_depth(t, n))
		return SL_TREE_DEPTH;
	return SL_TREE_DONE;
}

/*
 * Node n becomes what *g says. Packets stay queued, those below it too; what its buckets owe stays owed. An inner node changes its discipline
 * while no child of it may send. An enum sl_tree_error; after an error nothing has changed.
 */
SL_GLOBAL u32 tree_configure(struct sl_tree *t SL_NONNULL, u32 n, const struct sl_node_conf *g SL_NONNULL, u64 now_ns)
{
	struct sl_node *k = node_at(t, n);
	struct sl_inner *own = inner_at(t, n);
	u32 is_link = n == SL_FIRST_INNER, why = is_link ? SL_TREE_DONE : tree_may_join(t, n, g->parent);
	u32 discipline = g->discipline == SL_TREE_PRIORITY ? SL_TREE_PRIORITY : SL_TREE_ROUND_ROBIN;

	if (why)
		return why;
	if (n >= SL_FIRST_INNER) {
		if (own->discipline != discipline && own->children)
			return SL_TREE_BUSY;
		own->discipline = (u8)discipline;
	}
	if (is_link) {
		node_bucket_configure(&k->bucket[SL_TURN_SHARED], g->ceil_cost, g->ceil_burst_ns, now_ns);
		return SL_TREE_DONE;
	}
	tree_fall(t, n);
	if (k->weight)
		inner_at(t, k->parent)->below--;
	if (k->parent != g->parent - SL_FIRST_INNER) {
		k->left_bytes = 0;
		k->surplus_bytes = 0;
	}
	k->parent = (u16)(g->parent - SL_FIRST_INNER);
	inner_at(t, k->parent)->below++;
	k->weight = (u16)sl_min(sl_max(g->weight, 1), SL_NODE_WEIGHT_MAX);
	k->priority = (u8)(g->priority & (SL_TREE_PRIORITIES - 1));
	node_bucket_configure(&k->bucket[SL_TURN_SHARED], g->ceil_cost, sl_max(g->ceil_burst_ns, SL_NODE_BURST_NS), now_ns);
	node_bucket_configure(&k->bucket[SL_TURN_ASSURED], g->rate_cost, sl_max(g->rate_burst_ns, SL_NODE_BURST_NS), now_ns);
	node_assure_anew(&k->bucket[SL_TURN_ASSURED], now_ns);
	if (n < SL_FIRST_INNER) {
		leaf_at(t, n)->limit_pkts = (u16)(g->limit_pkts ? sl_min(g->limit_pkts, 65535) : 65535);
		leaf_at(t, n)->queue = (u16)(g->queue & (SL_LEAF_QUEUES - 1));
	}
	if (k->state & SL_NODE_READY)
		tree_rise(t, n, now_ns);
	return SL_TREE_DONE;
}

/* Node n is no more, and its counters are gone. An enum sl_tree_error. */
SL_GLOBAL u32 tree_remove(struct sl_tree *t SL_NONNULL, u32 n)
{
	struct sl_node *k = node_at(t, n);

	if (n == SL_FIRST_INNER || n >= SL_FIRST_INNER + SL_INNERS || !k->weight)
		return SL_TREE_NO_NODE;
	if (n >= SL_FIRST_INNER ? inner_at(t, n)->below : leaf_at(t, n)->pkts)
		return SL_TREE_BUSY;
	/* Its guarantee may wait still. */
	tree_fall(t, n);
	inner_at(t, k->parent)->below--;
	__builtin_memset(k, 0, sizeof(*k));
	if (n >= SL_FIRST_INNER)
		__builtin_memset(inner_at(t, n), 0, sizeof(struct sl_inner));
	else
		__builtin_memset(leaf_at(t, n), 0, sizeof(struct sl_leaf));
	return SL_TREE_DONE;
}
