/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Weighted fair queueing among the children of a node: by virtual start times, as in weighted_fair_queuing.h, for any number of children.
 *
 * The child with the smallest start is served, and its start is the virtual time of the node then. A child that has been away begins at
 * that time, or where it stopped, if that is later.
 *
 * Fairness: while two children may both send, what they are served, each divided by its weight, differs by at most
 * l_f / w_f + l_m / w_m, l the largest packet of each. What a guarantee sends ahead of its turn is not counted.
 * Cost: O(log children) for a packet; O(1) while a child is alone.
 */
#pragma once
#include "heap.h"

/*
 * The furthest that a child is ahead when it comes back: the longest packet. One that is further ahead begins anew: its start is from before virtual
 * time wrapped round, or its weight has grown. A start from before the wrap that happens to be nearer is believed.
 */
#define SL_FAIR_MOST_BYTES (1ULL << 21)

SL_FN struct sl_fair_node *fair_node_at(struct sl_tree *t, u32 n)
{
	return sl_at(t->fair_node, n);
}

/* The virtual start of a node that joins again: its former one, or the virtual time of its parent if the former one is earlier or too far ahead. */
SL_FN u64 fair_resume(u64 start, u64 time, u32 weight)
{
	return start - time > (SL_FAIR_MOST_BYTES << 32) / sl_max(weight, 1) ? time : start;
}

/* Node n may send, beside others. */
SL_GLOBAL int fair_join(struct sl_tree *t SL_NONNULL, u32 n)
{
	struct sl_node *k = node_at(t, n);
	struct sl_fair_node *c = fair_node_at(t, n);
	struct sl_inner *p = parent_of(t, k);

	c->key = fair_resume(c->key, fair_node_at(t, node_parent(k))->time, k->weight);
	p->first[SL_TURN_SHARED] = (u16)heap_add(t, p->first[SL_TURN_SHARED], SL_NO_NODE - n);
	return 0;
}

/* Node n leaves the heap of its parent: it may not send any more. */
SL_GLOBAL int fair_leave(struct sl_tree *t SL_NONNULL, u32 n)
{
	struct sl_inner *p = parent_of(t, node_at(t, n));

	p->first[SL_TURN_SHARED] = (u16)heap_remove(t, p->first[SL_TURN_SHARED], SL_NO_NODE - n);
	return 0;
}

/* Node n serves this child, which is the first of its heap. */
SL_FN void fair_serve(struct sl_tree *t, u32 n, u32 child)
{
	fair_node_at(t, n)->time = fair_node_at(t, child)->key;
}

/* Node n, which may send, has sent so many bytes in its turn. */
SL_GLOBAL int fair_charge(struct sl_tree *t SL_NONNULL, u32 n, u32 bytes)
{
	struct sl_node *k = node_at(t, n);
	struct sl_fair_node *c = fair_node_at(t, n);
	u32 alone = parent_of(t, k)->children == 1;

	if (!alone)
		fair_leave(t, n);
	c->key += ((u64)bytes << 32) / sl_max(k->weight, 1);
	if (!alone)
		fair_join(t, n);
	return 0;
}
