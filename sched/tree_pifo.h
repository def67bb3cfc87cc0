/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Push-in first-out at a node (Sivaraman et al., SIGCOMM 2016): the child whose first packet has the smallest rank is served. The rank functions are
 * those of ranks.h.
 *
 * A packet gets its rank when it becomes the first of its child, and stands in a heap then, one packet for each child: the flow scheduler of the hardware there
 * (section 5.2). That is the order of a PIFO of all packets where the ranks of one child never fall. By packet length and by slack they may: then a
 * packet waits for those before it in its child. Packets of one child leave in the order of their arrival in any case.
 *
 * Children with equal ranks are served in the order in which they have got them: a key is the rank, and behind it the number of the place. That wraps
 * round: after 2^57 places by priority, after 2^41 by bytes, and after 2^16 where ranks are times, which few packets share.
 *
 * The first packet is known of a leaf with one queue. That of any other child counts as one of no length that arrives when the child joins or has
 * sent. By packet length it ranks behind all known packets.
 *
 * Cost: O(log children) for a packet.
 */
#pragma once
#include "tree_eevdf.h"

/* Attained service beyond this counts alike, bytes. */
#define PIFO_MOST_ATTAINED ((1ULL << 22) - 1)
/* Bits of a key behind the rank: of ranks that are a time, a number of bytes, or a priority. */
#define PIFO_TIME_BITS     16
#define PIFO_BYTES_BITS    41
#define PIFO_PRIORITY_BITS 57

/* The time to send so many bytes at the ceiling of node n, or at the link's rate if it has none, ns. */
SL_FN u64 pifo_sending_ns(struct sl_tree *t, u32 n, u32 bytes)
{
	u32 cost = node_at(t, n)->bucket[SL_TURN_SHARED].cost;

	if (!cost)
		cost = node_at(t, SL_FIRST_INNER)->bucket[SL_TURN_SHARED].cost;
	return (u64)bytes * cost >> SL_NODE_COST_BITS;
}

/* The key of child n, which may send, in the heap of its parent. */
SL_GLOBAL u64 pifo_key(struct sl_tree *t SL_NONNULL, u32 n, u64 now_ns)
{
	struct sl_node *k = node_at(t, n);
	struct sl_fair_node *c = fair_node_at(t, n), *parent = fair_node_at(t, node_parent(k));
	u32 slot = node_next_slot(t, n), by = parent_of(t, k)->rank, is_known = slot != SL_NO_SLOT, bits = PIFO_TIME_BITS;
	struct sl_tree_slot *q = sl_at(t->slot, slot);
	u64 due_ns = (is_known ? q->arrived_ns : now_ns) + 1000ULL * inner_at(t, n)->request, rank, place;

	/* Only start-time fair ranks need virtual time; for others the field counts places. */
	place = by == SL_RANK_START_TIME_FAIR ? parent->rest++ : parent->time++;
	switch (by) {
	case SL_RANK_EARLIEST_DEADLINE:
		rank = due_ns;
		break;
	case SL_RANK_SLACK:
		rank = due_ns - pifo_sending_ns(t, node_parent(k), is_known ? q->wire_bytes : 0);
		break;
	case SL_RANK_START_TIME_FAIR:
		c->start = fair_resume(c->start, parent->time, k->weight);
		rank = c->start >> PIFO_TIME_BITS;
		break;
	case SL_RANK_SHORTEST_PACKET:
		rank = is_known ? q->len_bytes : 1 << 20;
		bits = PIFO_BYTES_BITS;
		break;
	case SL_RANK_LEAST_ATTAINED_SERVICE:
		rank = sl_min(c->start, PIFO_MOST_ATTAINED);
		bits = PIFO_BYTES_BITS;
		break;
	default:
		rank = k->priority;
		bits = PIFO_PRIORITY_BITS;
	}
	return rank << bits | (place & ((1ULL << bits) - 1));
}

/* Node n may send. */
SL_GLOBAL int pifo_join(struct sl_tree *t SL_NONNULL, u32 n, u64 now_ns)
{
	struct sl_inner *p = parent_of(t, node_at(t, n));

	fair_node_at(t, n)->key = pifo_key(t, n, now_ns);
	p->first[SL_TURN_SHARED] = (u16)heap_add(t, p->first[SL_TURN_SHARED], SL_NO_NODE - n);
	return 0;
}

/* Node n may not send any more. */
SL_GLOBAL int pifo_leave(struct sl_tree *t SL_NONNULL, u32 n)
{
	struct sl_node *k = node_at(t, n);

	fair_leave(t, n);
	if (!(k->state & SL_NODE_READY) && parent_of(t, k)->rank == SL_RANK_LEAST_ATTAINED_SERVICE)
		fair_node_at(t, n)->start = 0;
	return 0;
}

/* The first packet of child n is another one: it gets a place by its rank. */
SL_GLOBAL int pifo_move(struct sl_tree *t SL_NONNULL, u32 n, u64 now_ns)
{
	struct sl_node *k = node_at(t, n);

	/* A child without packets leaves next. */
	if (!(k->state & SL_NODE_READY))
		return 0;
	fair_leave(t, n);
	return pifo_join(t, n, now_ns);
}

/* Node n has sent so many bytes in its turn. */
SL_GLOBAL int pifo_charge(struct sl_tree *t SL_NONNULL, u32 n, u32 bytes, u64 now_ns)
{
	struct sl_node *k = node_at(t, n);
	u32 by = parent_of(t, k)->rank;

	if (by == SL_RANK_START_TIME_FAIR)
		fair_node_at(t, n)->start += ((u64)bytes << 32) / sl_max(k->weight, 1);
	else if (by == SL_RANK_LEAST_ATTAINED_SERVICE)
		fair_node_at(t, n)->start += bytes;
	return pifo_move(t, n, now_ns);
}
