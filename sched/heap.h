/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Children of a node in the order of their virtual starts: a leftist heap (Crane 1972; Knuth, TAOCP 3, 5.2.3), of any number of nodes of a tree, whose
 * links are in the nodes. Virtual times wrap
 * round, and are compared by the sign of their difference.
 *
 * A node of the heap is before all below it, and its way to a free place is never longer on the right than on the left. So the way that
 * always turns right has no more than log2(nodes + 1) nodes; two heaps become one along these ways, and a node leaves by making one heap of the
 * two below it. Cost: O(log children), whatever node leaves.
 *
 *	heap_merge	two heaps become one
 *	heap_remove	a node leaves a heap
 */
#pragma once
#include "wheel.h"

/* The longest way that always turns right, of SL_NODES nodes. */
#define SL_HEAP_DEPTH 17

/* The node of a link, which is SL_NO_NODE - its number. */
SL_FN struct sl_contender *heap_at(struct sl_tree *t, u32 link)
{
	SL_TREE_VISIT();
	return sl_at(t->contender, SL_NO_NODE - link);
}

/* Puts the longer side of *c on the left. Whether its depth is another one now. */
SL_FN int heap_lean(struct sl_tree *t, struct sl_contender *c)
{
	u16 left = c->left, right = c->right, was = c->depth;
	u16 left_depth = left ? heap_at(t, left)->depth : 0, right_depth = right ? heap_at(t, right)->depth : 0;

	if (left_depth < right_depth) {
		c->left = right;
		c->right = left;
	}
	c->depth = (u16)(1 + sl_min(left_depth, right_depth));
	return c->depth != was;
}

/* The heaps of these two roots become one: its root. Either may be 0, which is an empty heap. Of equal starts, those of the first heap come first. */
SL_GLOBAL u32 heap_merge(struct sl_tree *t SL_NONNULL, u32 first, u32 second)
{
	u32 root = 0, above = 0, next, other, i;
	struct sl_contender *c;

	sl_for (i, 2 * SL_HEAP_DEPTH) {
		if (!first || !second)
			break;
		if (virtual_before(heap_at(t, second)->start, heap_at(t, first)->start)) {
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
	sl_for (i, 2 * SL_HEAP_DEPTH) {
		if (!above)
			break;
		c = heap_at(t, above);
		heap_lean(t, c);
		above = c->above;
	}
	return root;
}

/* The node of this link leaves the heap of a root, in which it stands: the root that the heap has then. */
SL_GLOBAL u32 heap_remove(struct sl_tree *t SL_NONNULL, u32 root, u32 link)
{
	struct sl_contender *c = heap_at(t, link);
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
	/* A depth that changes is one more than the one below it that has changed: so these are few. */
	sl_for (i, 2 * SL_HEAP_DEPTH) {
		if (!above)
			break;
		c = heap_at(t, above);
		if (!heap_lean(t, c))
			break;
		above = c->above;
	}
	return root;
}
