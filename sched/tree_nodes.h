/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Nodes of a tree of classes: their buckets, the rings of children that may send, and whose turn it is (hierarchy.h explains the whole).
 *
 *	tree_rise	a node has packets below it
 *	tree_fall	a node has none any more, or changes
 *	tree_wake	nodes have waited long enough
 *	tree_share	the child whose turn it is
 *	tree_charge	a node has sent a packet
 */
#pragma once
#include "tree_order.h"

/* Nodes whose waiting ends in one call, in each wheel. A packet makes no more nodes wait than its way has, so none pile up. */
#define SL_WAKES 8

/* Where the ring begins of children of node n that have a priority. */
SL_FN u16 *priority_first(struct sl_tree *t, u32 n, u32 priority)
{
	if (n < SL_FIRST_INNER)
		return sl_at(sl_at(t->parts, n)->first, priority);
	return sl_at(sl_at(t->priority, n)->first, priority);
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
		return priority_first(t, node_parent(k), k->priority);
	return sl_at(p->first, turn);
}

/* Node n, which is *k, comes into a ring of its parent's, as the first or as the last; or into the heap. */
SL_FN void ring_add(struct sl_tree *t, u32 turn, u32 n, struct sl_node *k, int as_first, u64 now_ns)
{
	struct sl_inner *p = parent_of(t, k);
	u16 *first = ring_first(t, turn, k, p);
	struct sl_node *other;
	u32 f, last;

	if (turn == SL_TURN_SHARED) {
		p->children++;
		if (!k->parent)
			t->link_weights += k->weight;
		if (p->discipline == SL_TREE_PRIORITY)
			p->priorities |= SL_BIT(k->priority);
	}
	k->state |= (u8)(SL_NODE_LISTED << turn);
	if (has_heap(p, turn)) {
		order_join(t, n, p, now_ns);
		return;
	}
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

/* Node n, which is *k, leaves a ring of its parent's, or the heap, if it is there. */
SL_FN void ring_remove(struct sl_tree *t, u32 turn, u32 n, struct sl_node *k)
{
	struct sl_inner *p = parent_of(t, k);
	u16 *first = ring_first(t, turn, k, p);
	u32 next = *sl_at(k->next, turn), before = *sl_at(k->before, turn);

	if (!(k->state & SL_NODE_LISTED << turn))
		return;
	k->state &= (u8) ~(SL_NODE_LISTED << turn);
	if (turn == SL_TURN_SHARED) {
		p->children--;
		if (!k->parent)
			t->link_weights -= k->weight;
	}
	if (has_heap(p, turn)) {
		order_leave(t, n, p);
		return;
	}
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
	*ring_first(t, turn, k, parent_of(t, k)) = (u16)(SL_NO_NODE - *sl_at(k->next, turn));
}

/* Node n, which is *k and stands in no ring of guarantees, joins it, or waits until its guarantee has tokens. */
SL_FN void node_assure(struct sl_tree *t, u32 n, struct sl_node *k, u64 now_ns)
{
	struct sl_node_bucket *rate = &k->bucket[SL_TURN_ASSURED];

	if (!rate->cost || k->state & SL_NODE_WAITS << SL_TURN_ASSURED)
		return;
	if (node_open(rate, now_ns))
		ring_add(t, SL_TURN_ASSURED, n, k, 0, now_ns);
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
	struct sl_inner *p = parent_of(t, k);
	/* Only elastic round robin has rounds: elsewhere a child that comes is the last. */
	u32 has_rounds = p->discipline == SL_TREE_ELASTIC, had_turn = k->round == p->round;

	if (!node_open(ceil, now_ns)) {
		wheel_add(t, SL_TURN_SHARED, n, k, node_opens_ns(ceil), now_ns);
		return 0;
	}
	if (!had_turn)
		k->left_bytes = 0;
	ring_add(t, SL_TURN_SHARED, n, k, has_rounds && (!had_turn || k->left_bytes > 0), now_ns);
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
		if (!listed || parent_of(t, k)->children)
			break;
		n = node_parent(k);
		node_at(t, n)->state &= (u8)~SL_NODE_READY;
	}
	return 0;
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

/* The child of node n whose turn it is, by the node's discipline; there is one. */
SL_FN u32 tree_share(struct sl_tree *t, u32 n)
{
	struct sl_inner *p = inner_at(t, n);
	struct sl_node *k;
	u64 allowance;
	u32 c;

	if (p->discipline == SL_TREE_PRIORITY)
		return SL_NO_NODE - *priority_first(t, n, sl_lowest(p->priorities));
	if (has_heap(p, SL_TURN_SHARED))
		return order_first(t, n, p);
	c = SL_NO_NODE - p->first[SL_TURN_SHARED];
	if (p->discipline != SL_TREE_ELASTIC)
		return c;
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

/* Node n, which is *k, has sent so many bytes in its turn. */
SL_FN void node_spend(struct sl_tree *t, u32 n, struct sl_node *k, u32 bytes, u64 now_ns)
{
	struct sl_inner *p = parent_of(t, k);
	u32 surplus;

	if (has_heap(p, SL_TURN_SHARED)) {
		order_charge(t, n, p, bytes, now_ns);
		return;
	}
	if (p->discipline != SL_TREE_ELASTIC) {
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
		if (parent_of(t, k)->discipline == SL_TREE_PIFO)
			order_refresh(t, n, now_ns);
	} else {
		node_spend(t, n, k, bytes, now_ns);
	}
	if (k->state & SL_NODE_READY && node_open(ceil, now_ns))
		return 0;
	node_leave(t, n, k);
	if (k->state & SL_NODE_READY)
		wheel_add(t, SL_TURN_SHARED, n, k, node_opens_ns(ceil), now_ns);
	if (!parent_of(t, k)->children)
		node_at(t, node_parent(k))->state &= (u8)~SL_NODE_READY;
	return 0;
}
