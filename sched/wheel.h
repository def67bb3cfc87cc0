/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Nodes that wait for tokens, in the buckets of a timing wheel (wheel_buckets.h). A bucket is a doubly linked list, so that a node whose limits
 * change can be taken out. A node that waits longer than the wheel is long (67 ms) is looked at earlier, and waits again. Cost: O(1) to add, to
 * take and to remove.
 */
#pragma once
#include "wheel_buckets.h"
#include "../abi/hierarchy.h"

/* Tests count the nodes that a call visits. */
#ifndef SL_TREE_VISIT
#define SL_TREE_VISIT()
#endif

SL_FN struct sl_node *node_at(struct sl_tree *t, u32 n)
{
	SL_TREE_VISIT();
	return sl_at(t->node, n);
}

SL_FN struct sl_inner *inner_at(struct sl_tree *t, u32 n)
{
	return sl_at(t->inner, n);
}

/* The number of the parent of *k. */
SL_FN u32 node_parent(const struct sl_node *k)
{
	return k->parent ^ SL_FIRST_INNER;
}

SL_FN struct sl_inner *parent_of(struct sl_tree *t, const struct sl_node *k)
{
	return inner_at(t, node_parent(k));
}

/* Node n, which is *k and does not wait there yet, waits until opens_ns. */
SL_FN void wheel_add(struct sl_tree *t, u32 turn, u32 n, struct sl_node *k, u64 opens_ns, u64 now_ns)
{
	struct sl_wheel *w = sl_at(t->wheel, turn);
	u32 b = wheel_bucket(w, opens_ns, now_ns), first = *sl_at(w->first, b);

	*sl_at(k->wheel_next, turn) = (u16)first;
	*sl_at(k->wheel_before, turn) = (u16)(SL_WHEEL_HEAD + b);
	if (first)
		*sl_at(node_at(t, SL_NO_NODE - first)->wheel_before, turn) = (u16)n;
	wheel_begin(w, b, SL_NO_NODE - n);
	k->state |= (u8)(SL_NODE_WAITS << turn);
}

/* Node *k waits no longer, if it did. */
SL_FN void wheel_remove(struct sl_tree *t, u32 turn, struct sl_node *k)
{
	struct sl_wheel *w = sl_at(t->wheel, turn);
	u32 next = *sl_at(k->wheel_next, turn), before = *sl_at(k->wheel_before, turn), b = before - SL_WHEEL_HEAD;

	if (!(k->state & SL_NODE_WAITS << turn))
		return;
	k->state &= (u8) ~(SL_NODE_WAITS << turn);
	if (next)
		*sl_at(node_at(t, SL_NO_NODE - next)->wheel_before, turn) = (u16)before;
	if (before < SL_WHEEL_HEAD) {
		*sl_at(node_at(t, before)->wheel_next, turn) = (u16)next;
		return;
	}
	wheel_first_gone(w, b, next);
}

/* A node whose time has come, which waits no longer; SL_NO_NODE: there is none. */
SL_FN u32 wheel_take(struct sl_tree *t, u32 turn, u64 now_ns)
{
	struct sl_wheel *w = sl_at(t->wheel, turn);
	u64 until = now_ns >> SL_WHEEL_TICK_BITS;
	u32 ahead = wheel_ahead(w), n;

	if (ahead == SL_WHEEL_BUCKETS || w->tick + ahead > until) {
		w->tick = sl_max(w->tick, until);
		return SL_NO_NODE;
	}
	w->tick += ahead;
	n = SL_NO_NODE - *sl_at(w->first, (u32)w->tick);
	wheel_remove(t, turn, node_at(t, n));
	return n;
}

/* When the next node's time comes; 0: no node waits. */
SL_FN u64 wheel_next_ns(struct sl_wheel *w)
{
	u32 ahead = wheel_ahead(w);

	return ahead == SL_WHEEL_BUCKETS ? 0 : (w->tick + ahead) << SL_WHEEL_TICK_BITS;
}
