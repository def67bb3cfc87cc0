/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Earliest eligible virtual deadline first (Stoica and Abdel-Wahab, Old Dominion University TR-95-22, 1995; RTSS 1996) among the children of a node:
 * as eevdf.h explains it for flat classes.
 *
 * Two heaps of the children that may send: those that are not eligible yet, by where they stand, and those that are, by deadline. A deadline is where
 * a child will stand after its request, which is of the child's own bytes, or of its next packet if that is longer. The next packet of a leaf with one queue
 * is known. That of a leaf with flow queues and that of an inner node are not: each packet begins a new request there.
 *
 * Virtual time V is kept exactly: V * weights + rest is the sum of weight * where it stands, of all children that may send. So their lags,
 * weight * (V - where it stands), sum to -rest, and some child is always eligible. A child that leaves, since it is empty or its ceiling has no tokens, keeps
 * its lag, and the others take it over until it comes back (strategy 2 there): no child gains by leaving. One that is alone has no lag.
 * A guarantee's packets are no part of what is shared: they move neither V nor their child.
 *
 * Bounds, while the set of children that may send stays: each lag is above -(its longest packet); and below the longest of all requests and packets,
 * if no packet whose length is not known before is longer than the request of its child (theorem 1 and its corollary there). Such a packet adds what it is longer to the
 * lateness of each sibling.
 *
 * Cost: O(log children). A call moves at most EEVDF_MOVES children into each of the two heaps; each change of virtual time is paid for by a packet, or by
 * a child that comes or leaves, so a packet moves O(1) on average while children stay.
 */
#pragma once
#include "leaf_flows.h"
#include "tree_fair.h"

/* Children that become eligible in one call, and as many that V has stepped back behind. With more children, others follow in the next call. */
#define EEVDF_MOVES 64

/* No child is to be served, in the answer of eevdf_due. */
#define EEVDF_NONE  0u
#define EEVDF_MOVED 1u

/* The slot of the next packet of node n, if it is a leaf with packets in one queue; else SL_NO_SLOT: it is not known. */
SL_GLOBAL u32 node_next_slot(struct sl_tree *t SL_NONNULL, u32 n)
{
	struct sl_leaf *leaf = leaf_at(t, n);
	struct sl_fair *fair = sl_at(t->fair, n);

	if (n >= SL_FIRST_INNER || !leaf->pkts || leaf->queue >= SL_LEAF_QUEUES || !class_of(t, n)->one_flow)
		return SL_NO_SLOT;
	return fair->alone ? fair->alone - 1u : flow_at(t, flow_first(fair))->queue.head;
}

/* The children of *parent have moved by this sum of weight * virtual time: V moves along, and `rest` keeps the remainder. */
SL_FN void eevdf_move_time(struct sl_fair_node *parent, s64 sum)
{
	u64 weights = sl_max(parent->weights, 1), steps;

	sum += parent->rest;
	if (sum >= 0) {
		steps = (u64)sum / weights;
		parent->time += steps;
		parent->rest = (u32)((u64)sum - steps * weights);
	} else {
		steps = ((u64)-sum + weights - 1) / weights;
		parent->time -= steps;
		parent->rest = (u32)(steps * weights - (u64)-sum);
	}
}

/* Node n, which is *k, begins a new request if the present one does not cover its next packet. A next packet that is not known counts as long as a request. */
SL_FN void eevdf_request(struct sl_tree *t, u32 n, const struct sl_node *k, struct sl_fair_node *c)
{
	u32 slot = node_next_slot(t, n), request = sl_max(inner_at(t, n)->request, 1), next = request;
	u64 weight = sl_max(k->weight, 1);

	if (slot != SL_NO_SLOT)
		next = sl_at(t->slot, slot)->wire_bytes;
	if (virtual_before(c->deadline, c->start + ((u64)next << 32) / weight))
		c->deadline = c->start + ((u64)sl_max(next, request) << 32) / weight;
}

/* The root of the heap of its parent in which node n stands, or is to stand. */
SL_FN u16 *eevdf_heap(struct sl_tree *t, u32 n)
{
	struct sl_node *k = node_at(t, n);

	if (fair_node_at(t, n)->early)
		return &fair_node_at(t, node_parent(k))->starts;
	return &parent_of(t, k)->first[SL_TURN_SHARED];
}

/* Node n, which stands in no heap, joins the one where it belongs now. */
SL_GLOBAL int eevdf_place(struct sl_tree *t SL_NONNULL, u32 n)
{
	struct sl_node *k = node_at(t, n);
	struct sl_fair_node *c = fair_node_at(t, n), *parent = fair_node_at(t, node_parent(k));
	u16 *root;

	c->early = virtual_before(parent->time, c->start);
	c->key = c->early ? c->start : c->deadline;
	root = eevdf_heap(t, n);
	*root = (u16)heap_add(t, *root, SL_NO_NODE - n);
	return 0;
}

/* Node n leaves the heap in which it stands. */
SL_GLOBAL int eevdf_unplace(struct sl_tree *t SL_NONNULL, u32 n)
{
	u16 *root = eevdf_heap(t, n);

	*root = (u16)heap_remove(t, *root, SL_NO_NODE - n);
	return 0;
}

/* Node n may send. */
SL_GLOBAL int eevdf_join(struct sl_tree *t SL_NONNULL, u32 n)
{
	struct sl_node *k = node_at(t, n);
	struct sl_fair_node *c = fair_node_at(t, n), *parent = fair_node_at(t, node_parent(k));

	/* The first begins where virtual time stands. */
	if (!parent->weights)
		c->lag = parent->rest = 0;
	else
		eevdf_move_time(parent, -(s64)k->weight * c->lag);
	parent->weights += k->weight;
	c->start = parent->time - (u64)c->lag;
	/* Its former request is void. */
	c->deadline = c->start;
	eevdf_request(t, n, k, c);
	eevdf_place(t, n);
	return 0;
}

/* Node n may not send any more. */
SL_GLOBAL int eevdf_leave(struct sl_tree *t SL_NONNULL, u32 n)
{
	struct sl_node *k = node_at(t, n);
	struct sl_fair_node *c = fair_node_at(t, n), *parent = fair_node_at(t, node_parent(k));
	s64 most = (s64)((SL_FAIR_MOST_BYTES << 32) / sl_max(k->weight, 1)), lag = (s64)(parent->time - c->start);

	eevdf_unplace(t, n);
	parent->weights -= k->weight;
	/* The others take over all of the lag, also what the child will not get back. */
	if (parent->weights)
		eevdf_move_time(parent, k->weight * lag);
	c->lag = sl_max(sl_min(lag, most), -most);
	return 0;
}

/* Moves the child of node n that starts first to the eligible ones, if it is eligible by now. Returns whether it has. */
SL_GLOBAL int eevdf_start_one(struct sl_tree *t SL_NONNULL, u32 n)
{
	struct sl_fair_node *parent = fair_node_at(t, n);
	u32 child = SL_NO_NODE - parent->starts;

	if (!parent->starts || virtual_before(parent->time, fair_node_at(t, child)->start))
		return 0;
	eevdf_unplace(t, child);
	eevdf_place(t, child);
	return 1;
}

/* SL_NO_NODE - the child of node n with the earliest deadline, if it may be served; EEVDF_MOVED: it may not yet, and is not among the eligible any more. */
SL_GLOBAL u32 eevdf_due(struct sl_tree *t SL_NONNULL, u32 n)
{
	u32 first = inner_at(t, n)->first[SL_TURN_SHARED], child = SL_NO_NODE - first;

	if (!first || !virtual_before(fair_node_at(t, n)->time, fair_node_at(t, child)->start))
		return first;
	eevdf_unplace(t, child);
	eevdf_place(t, child);
	return EEVDF_MOVED;
}

/* The child of node n to serve; there is one. */
SL_GLOBAL u32 eevdf_first(struct sl_tree *t SL_NONNULL, u32 n)
{
	u32 i, found = EEVDF_NONE;

	sl_for (i, EEVDF_MOVES)
		if (!eevdf_start_one(t, n))
			break;
	sl_for (i, EEVDF_MOVES) {
		found = eevdf_due(t, n);
		if (found != EEVDF_MOVED)
			break;
	}
	/* Some child is eligible, and has been found unless there are more of them than a call moves. */
	if (found <= EEVDF_MOVED)
		found = inner_at(t, n)->first[SL_TURN_SHARED];
	return SL_NO_NODE - (found ? found : fair_node_at(t, n)->starts);
}

/* Node n, which may send, has sent so many bytes in its turn. */
SL_GLOBAL int eevdf_charge(struct sl_tree *t SL_NONNULL, u32 n, u32 bytes)
{
	struct sl_node *k = node_at(t, n);
	struct sl_fair_node *c = fair_node_at(t, n), *parent = fair_node_at(t, node_parent(k));
	u64 step = ((u64)bytes << 32) / sl_max(k->weight, 1);
	u32 alone = parent_of(t, k)->children == 1;

	if (!alone)
		eevdf_unplace(t, n);
	c->start += step;
	eevdf_move_time(parent, (s64)(step * k->weight));
	eevdf_request(t, n, k, c);
	if (!alone)
		eevdf_place(t, n);
	else
		c->key = c->early ? c->start : c->deadline;
	return 0;
}

/* Node n, which stands in no heap, gets another weight: what it is owed stays as much. */
SL_FN void eevdf_reweigh(struct sl_fair_node *c, u32 was, u32 weight)
{
	u64 owed = (u64)(c->lag < 0 ? -c->lag : c->lag) * was / sl_max(weight, 1);

	c->lag = c->lag < 0 ? -(s64)owed : (s64)owed;
}
