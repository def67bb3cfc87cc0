/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Children of a node in the order of their keys: a leftist heap (Crane 1972; Knuth, TAOCP 3, 5.2.3), of any number of children. Keys, such as
 * virtual times, wrap round, and are compared by the sign of their difference.
 *
 * A node of the heap is before all below it. Its rank is the number of nodes on its right spine, and the rank of its right child is never greater
 * than that of its left child. So a right spine has no more than log2(nodes + 1) nodes. Two heaps become one along their right spines, and a node
 * leaves by making one heap of the two below it. Cost: O(log children), whatever node leaves.
 *
 *	heap_merge	two heaps become one
 *	heap_add	a node joins a heap
 *	heap_remove	a node leaves a heap
 */
#pragma once
#include "wheel.h"

/* The greatest rank in a heap of SL_NODES nodes. */
#define SL_HEAP_RANK 17

/* The node of a link, which is SL_NO_NODE - its number. */
SL_FN struct sl_fair_node *heap_at(struct sl_tree *t, u32 link)
{
	SL_TREE_VISIT();
	return sl_at(t->fair_node, SL_NO_NODE - link);
}

/* Puts the child of greater rank on the left. Whether the rank of *c is another one now. */
SL_FN int heap_restore(struct sl_tree *t, struct sl_fair_node *c)
{
	u16 left = c->left, right = c->right, was = c->rank;
	u16 left_rank = left ? heap_at(t, left)->rank : 0, right_rank = right ? heap_at(t, right)->rank : 0;

	if (left_rank < right_rank) {
		c->left = right;
		c->right = left;
	}
	c->rank = (u16)(1 + sl_min(left_rank, right_rank));
	return c->rank != was;
}

/* The heaps of these two roots become one: its root. Either may be 0, which is an empty heap. Of two roots with equal keys, that of the first heap becomes the root. */
SL_GLOBAL u32 heap_merge(struct sl_tree *t SL_NONNULL, u32 first, u32 second)
{
	u32 root = 0, above = 0, next, other, i;
	struct sl_fair_node *c;

	sl_for (i, 2 * SL_HEAP_RANK) {
		if (!first || !second)
			break;
		if (virtual_before(heap_at(t, second)->key, heap_at(t, first)->key)) {
			next = second;
			other = first;
		} else {
			next = first;
			other = second;
		}
		c = heap_at(t, next);
		c->above = (u16)above;
		if (above)
			heap_at(t, above)->right = (u16)next;
		else
			root = next;
		above = next;
		first = c->right;
		second = other;
	}
	next = first ? first : second;
	if (next)
		heap_at(t, next)->above = (u16)above;
	if (!above)
		return next;
	heap_at(t, above)->right = (u16)next;
	sl_for (i, 2 * SL_HEAP_RANK) {
		if (!above)
			break;
		c = heap_at(t, above);
		heap_restore(t, c);
		above = c->above;
	}
	return root;
}

/* The node of this link, which stands in no heap and has a key, joins the heap of a root: the root that the heap has then. */
SL_FN u32 heap_add(struct sl_tree *t, u32 root, u32 link)
{
	struct sl_fair_node *c = sl_at(t->fair_node, SL_NO_NODE - link);

	c->left = c->right = c->above = 0;
	c->rank = 1;
	return heap_merge(t, root, link);
}

/* The node of this link leaves the heap of a root, in which it stands: the root that the heap has then. */
SL_GLOBAL u32 heap_remove(struct sl_tree *t SL_NONNULL, u32 root, u32 link)
{
	struct sl_fair_node *c = heap_at(t, link);
	u32 above = c->above, below = heap_merge(t, c->left, c->right), i;

	if (!above)
		return below;
	c = heap_at(t, above);
	if (c->left == link)
		c->left = (u16)below;
	else
		c->right = (u16)below;
	if (below)
		heap_at(t, below)->above = (u16)above;
	/* A rank that changes is one more than one that has changed below it, before or now: so at most SL_HEAP_RANK change. */
	sl_for (i, 2 * SL_HEAP_RANK) {
		if (!above)
			break;
		c = heap_at(t, above);
		if (!heap_restore(t, c))
			break;
		above = c->above;
	}
	return root;
}
