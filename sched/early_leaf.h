/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Early drop for a leaf of a tree: a hook on arrivals at one interface looks into the tree that queues departures from another, and drops what
 * the leaf would drop, before the host has spent work on it.
 *
 *	leaf_early	whether the hook drops the packet; if it does not, the packet is on its way to the leaf
 *
 * As in early.h: while a leaf is full, a hook drops every packet of a leaf with one queue; of a leaf that queues by flow it drops packets of long
 * flows, and already when seven eighths are full. If no flow has two packets, the leaf refuses a packet only when it is full, and so does the
 * hook. When the slots of the tree run out, leaves in the uppermost list of sizes are full likewise: one of them gives way (tree_make_room), and each
 * has at least a quarter of the packets that any leaf has. A divided leaf is left to the queue, as the part of a packet is found behind the hook.
 *
 * The hook reads without the queue's lock, while packets come and go. What it reads of a flow may be of one that has just taken its queue: then one
 * packet is judged by another flow. It follows no chain beyond SL_EARLY_CHAIN flows; a flow that is further behind is not long.
 */
#pragma once
#include "leaf_chain.h"
#include "leaf_drops.h"
#include "packet.h"
#include "underway.h"

/* Flows of a chain that the hook looks at. With as many flows as there are, one chain in 10^15 is longer. */
#define SL_EARLY_CHAIN 16u

/* The number of packets that the queue has had of a leaf. Other packets may come and go meanwhile. */
SL_FN u64 leaf_had_pkts(const struct sl_leaf *leaf)
{
	return leaf->sent_pkts + leaf->pkts + leaf_dropped_pkts(leaf);
}

/* Whether a flow stands in the list of the longest flows of leaf n, which is the one of this size. */
SL_GLOBAL int leaf_flow_is_long(const struct sl_tree *t SL_NONNULL, u32 n, u32 hash, u32 size)
{
	const struct sl_tree_flow *f;
	u32 at, i;

	if (!t) /* before Linux 6.8, the verifier takes it for NULL or not */
		return 0;
	at = *sl_at(t->flow_of_hash, leaf_chain(n, hash));
	for (i = 0; i < SL_EARLY_CHAIN && at; i++) {
		f = sl_at(t->flow, at - 1);
		if (f->queue.hash == hash && f->leaf == n)
			return f->queue.size >= size;
		at = f->chain;
	}
	return 0;
}

/*
 * The enum sl_leaf_early of a packet for leaf p->class, of which its flow and its segments matter: the packets that it is at the queue. *u is
 * what this processor has under way to the leaf.
 */
SL_FN u32 leaf_early(const struct sl_tree *t, struct sl_underway *u, const struct sl_packet *p, u64 now_ns)
{
	u32 n = p->class & (SL_FIRST_INNER - 1);
	const struct sl_leaf *leaf = sl_at(t->leaf, n);
	u32 limit = leaf->limit_pkts, room = limit - sl_min(limit, leaf->pkts), slots, spare, sizes;
	int by_flow = !sl_at(t->queue, leaf->queue)->one_flow;

	slots = t->room_from_pkts - sl_min(t->room_from_pkts, t->pkts);
	if (sl_unlikely(slots < room) && leaf->size && leaf->size >= sl_log2(t->leaf_sizes | 1)) {
		room = slots;
		limit = t->room_from_pkts;
	}
	spare = by_flow ? limit / SL_EARLY_PART : 0;
	/* The limit of a leaf that is not configured is 0, and that of a divided one. */
	if (sl_likely(room >= spare + SL_EARLY_PKTS) || !limit)
		return SL_LEAF_PASSES;
	underway_look(u, leaf_had_pkts(leaf), now_ns);
	if (u->pkts + spare >= room) {
		sizes = by_flow ? sl_at(t->fair, n)->sizes : 0;
		if (sizes && leaf_flow_is_long(t, n, p->flow_hash, sl_log2(sizes)))
			return SL_LEAF_LONG;
		if (!sizes && u->pkts >= room)
			return SL_LEAF_FULL;
	}
	u->pkts += p->segments;
	return SL_LEAF_PASSES;
}
