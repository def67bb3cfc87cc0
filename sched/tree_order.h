/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Disciplines of a node that keep its children that may send in a heap, instead of a ring: weighted fair queueing, EEVDF and PIFO.
 *
 *	order_begin	a node is new among the children of a parent
 *	order_join	a child may send
 *	order_leave	it may not any more
 *	order_first	the child to serve
 *	order_charge	it has sent a packet in its turn
 *	order_refresh	its first packet has changed without a turn: the former one was dropped, or sent by a guarantee
 */
#pragma once
#include "tree_pifo.h"

/* Whether node *p keeps its children that may send in a heap. */
SL_FN int has_heap(const struct sl_inner *p, u32 turn)
{
	return turn == SL_TURN_SHARED && p->discipline >= SL_TREE_FAIR;
}

SL_FN void order_begin(struct sl_tree *t, u32 n, u32 parent)
{
	struct sl_fair_node *c = fair_node_at(t, n);
	struct sl_inner *p = inner_at(t, parent);

	c->key = c->start = fair_node_at(t, parent)->time;
	c->lag = 0;
	if (p->discipline == SL_TREE_PIFO && p->rank == SL_RANK_LEAST_ATTAINED_SERVICE)
		c->start = 0;
}

/* Node n, whose parent is *p, may send. */
SL_FN void order_join(struct sl_tree *t, u32 n, const struct sl_inner *p, u64 now_ns)
{
	if (p->discipline == SL_TREE_FAIR)
		fair_join(t, n);
	else if (p->discipline == SL_TREE_EEVDF)
		eevdf_join(t, n);
	else
		pifo_join(t, n, now_ns);
}

/* Node n, whose parent is *p, may not send any more. */
SL_FN void order_leave(struct sl_tree *t, u32 n, const struct sl_inner *p)
{
	if (p->discipline == SL_TREE_FAIR)
		fair_leave(t, n);
	else if (p->discipline == SL_TREE_EEVDF)
		eevdf_leave(t, n);
	else
		pifo_leave(t, n);
}

/* The child of node n, which is *p, that is to send. */
SL_FN u32 order_first(struct sl_tree *t, u32 n, const struct sl_inner *p)
{
	u32 child;

	if (p->discipline == SL_TREE_EEVDF)
		return eevdf_first(t, n);
	child = SL_NO_NODE - p->first[SL_TURN_SHARED];
	if (p->discipline == SL_TREE_FAIR)
		fair_serve(t, n, child);
	else if (p->rank == SL_RANK_START_TIME_FAIR)
		fair_node_at(t, n)->time = fair_node_at(t, child)->start;
	return child;
}

/* Node n, whose parent is *p, has sent so many bytes in its turn. */
SL_FN void order_charge(struct sl_tree *t, u32 n, const struct sl_inner *p, u32 bytes, u64 now_ns)
{
	if (p->discipline == SL_TREE_FAIR)
		fair_charge(t, n, bytes);
	else if (p->discipline == SL_TREE_EEVDF)
		eevdf_charge(t, n, bytes);
	else
		pifo_charge(t, n, bytes, now_ns);
}

/* Node n, which stands beside others or not, has another first packet: the former one was dropped, or sent by a guarantee. */
SL_GLOBAL int order_refresh(struct sl_tree *t SL_NONNULL, u32 n, u64 now_ns)
{
	struct sl_node *k = node_at(t, n);

	if (k->state & SL_NODE_LISTED && parent_of(t, k)->discipline == SL_TREE_PIFO)
		pifo_move(t, n, now_ns);
	return 0;
}
