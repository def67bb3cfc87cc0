/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The flow queues of the leaves of a tree: one pool for all of them. A leaf takes a queue for a flow that has none, and gives it back when the
 * flow has no packets. Then the queue rests, and keeps its flow and what the flow has used until another flow takes it: the one that has rested
 * for longest if so many rest that SL_FLOWS_REMEMBERED are left, and rounds have given back everything; else one that was never used; else the one
 * that has rested for longest.
 *
 * A flow is found by its hash and its leaf, in chains that are short as long as senders do not know the key of the hash.
 *
 * Leaves with some packets stand in lists by the logarithm of their number, as flows do (flow_sizes.h). When slots run out, one of the largest
 * leaves gives.
 */
#pragma once
#include "leaf_chain.h"

#define SL_SCHEDULER  struct sl_tree
#define SL_SLOT       struct sl_tree_slot
#define SL_CLASS      struct sl_leaf_queue
#define SL_HOST_TABLE struct sl_tree_host_table
#include "queue.h"

/* A leaf stands in the lists of sizes from so many packets on, until it has fewer than half as many. */
#define SL_LARGE_LEAF_PKTS  4u
/* Flows without packets that are remembered in any case. */
#define SL_FLOWS_REMEMBERED 1024u

_Static_assert(SL_TREE_FLOWS > SL_TREE_PKTS, "each packet may be of another flow");

SL_FN struct sl_leaf *leaf_at(struct sl_tree *t, u32 n)
{
	return sl_at(t->leaf, n);
}

/* Adds packets and bytes, which may be negative, to the backlog of a leaf and of the divided leaf of which it is a part. */
SL_FN void leaf_add_backlog(struct sl_tree *t, struct sl_leaf *leaf, u32 pkts, u32 bytes)
{
	leaf->pkts += pkts;
	leaf->backlog_bytes += bytes;
	if (sl_unlikely(leaf->whole)) {
		leaf = leaf_at(t, leaf->whole - 1u);
		leaf->pkts += pkts;
		leaf->backlog_bytes += bytes;
	}
}

/* Counts a packet that is dropped for an enum sl_drop, at its leaf and at the divided leaf of which that is a part. */
SL_FN void leaf_count_drop(struct sl_tree *t, struct sl_leaf *leaf, u32 reason)
{
	leaf->dropped_pkts[reason]++;
	if (sl_unlikely(leaf->whole))
		leaf_at(t, leaf->whole - 1u)->dropped_pkts[reason]++;
}

SL_FN struct sl_leaf_queue *class_of(struct sl_tree *t, u32 leaf)
{
	return sl_at(t->queue, leaf_at(t, leaf)->queue);
}

SL_FN struct sl_flow_queue *flow_at(struct sl_tree *t, u32 i)
{
	return &sl_at(t->flow, i)->queue;
}

/* The list of sizes for a leaf of so many packets, at least two. */
SL_FN u32 leaf_size(u32 pkts)
{
	return sl_min(sl_log2(pkts), SL_LEAF_SIZES - 1);
}

SL_FN void leaf_list(struct sl_tree *t, u32 n, struct sl_leaf *leaf)
{
	u16 *first;

	leaf->size = (u8)leaf_size(leaf->pkts);
	first = sl_at(t->larger, leaf->size);
	leaf->size_before = 0;
	leaf->size_next = *first;
	if (*first)
		leaf_at(t, *first - 1u)->size_before = (u16)(n + 1);
	*first = (u16)(n + 1);
	t->leaf_sizes |= 1u << (leaf->size & (SL_LEAF_SIZES - 1));
}

SL_FN void leaf_unlist(struct sl_tree *t, struct sl_leaf *leaf)
{
	u16 *first = sl_at(t->larger, leaf->size);

	if (leaf->size_next)
		leaf_at(t, leaf->size_next - 1u)->size_before = leaf->size_before;
	if (leaf->size_before)
		leaf_at(t, leaf->size_before - 1u)->size_next = leaf->size_next;
	else
		*first = leaf->size_next;
	if (!*first)
		t->leaf_sizes &= ~(1u << (leaf->size & (SL_LEAF_SIZES - 1)));
	leaf->size = 0;
}

SL_GLOBAL int leaf_resize(struct sl_tree *t SL_NONNULL, u32 n)
{
	struct sl_leaf *leaf = leaf_at(t, n);

	if (leaf->size)
		leaf_unlist(t, leaf);
	if (leaf->pkts >= SL_LARGE_LEAF_PKTS / 2)
		leaf_list(t, n, leaf);
	return 0;
}

/* Any leaf with many packets gives, also one whose flows have one each. */
SL_FN void class_gives(struct sl_tree *t, u32 n)
{
	(void)t;
	(void)n;
}

SL_FN void class_keeps(struct sl_tree *t, u32 n)
{
	(void)t;
	(void)n;
}

/* Leaf n, which is *leaf, has one packet more. */
SL_FN void leaf_grown(struct sl_tree *t, u32 n, const struct sl_leaf *leaf)
{
	if (sl_unlikely(leaf->pkts >= SL_LARGE_LEAF_PKTS && leaf->pkts >> leaf->size > 1 && leaf->size < SL_LEAF_SIZES - 1))
		leaf_resize(t, n);
}

/* Leaf n has fewer. */
SL_FN void leaf_shrunk(struct sl_tree *t, u32 n, const struct sl_leaf *leaf)
{
	if (sl_unlikely(leaf->size && leaf->pkts < (1u << leaf->size) >> 1))
		leaf_resize(t, n);
}

SL_FN void class_shrunk(struct sl_tree *t, const struct sl_leaf_queue *k, u32 n)
{
	(void)k;
	leaf_shrunk(t, n, leaf_at(t, n));
}

/* The packet of the slot, which has left its queue, is the engine's to free: sl_reap. */
SL_FN void slot_drop(struct sl_tree *t, const struct sl_leaf_queue *k, u32 slot, u32 reason)
{
	struct sl_tree_slot *q = sl_at(t->slot, slot);
	struct sl_leaf *leaf = leaf_at(t, q->leaf);

	(void)k;
	leaf_add_backlog(t, leaf, -1u, -q->len_bytes);
	leaf_count_drop(t, leaf, reason);
	t->pkts--;
	slot_drop_for(t, q, slot, reason);
}

/* Where the chain of a flow of a leaf begins. */
SL_FN u16 *flow_chain(struct sl_tree *t, u32 leaf, u32 hash)
{
	return sl_at(t->flow_of_hash, leaf_chain(leaf, hash));
}

/* Flow queue *f, which rests, no longer does. */
SL_FN void flow_rest_ends(struct sl_tree *t, const struct sl_tree_flow *f)
{
	if (f->rests_next)
		sl_at(t->flow, f->rests_next - 1u)->rests_before = f->rests_before;
	else
		t->rests_last = f->rests_before;
	if (f->rests_before)
		sl_at(t->flow, f->rests_before - 1u)->rests_next = f->rests_next;
	else
		t->rests_first = f->rests_next;
	t->resting--;
}

/* Queue i has no packets any more. */
SL_FN void flow_rests(struct sl_tree *t, const struct sl_leaf_queue *k, u32 i)
{
	struct sl_tree_flow *f = sl_at(t->flow, i);

	(void)k;
	f->rests_before = t->rests_last;
	f->rests_next = 0;
	if (t->rests_last)
		sl_at(t->flow, t->rests_last - 1u)->rests_next = (u16)(i + 1);
	else
		t->rests_first = (u16)(i + 1);
	t->rests_last = (u16)(i + 1);
	t->resting++;
}

/* Whether the rounds of its leaf have given a flow back what it had used. While the leaf is idle, nobody waits for that. */
SL_FN int flow_has_paid(struct sl_tree *t, const struct sl_tree_flow *f)
{
	s32 rounds = (s32)(sl_at(t->fair, f->leaf)->round - f->queue.round);

	if (!leaf_at(t, f->leaf)->pkts)
		return 1;
	return rounds > 0 && f->queue.used_bytes <= (s64)rounds * class_of(t, f->leaf)->flow_quantum_bytes;
}

/* Flow *f, which is queue i, leaves its chain. */
SL_FN void flow_unchain(struct sl_tree *t, const struct sl_tree_flow *f, u32 i)
{
	u16 *link = flow_chain(t, f->leaf, f->queue.hash);
	u32 n;

	sl_for (n, SL_CHAIN_FLOWS) {
		if (*link == i + 1) {
			*link = f->chain;
			break;
		}
		link = &sl_at(t->flow, *link - 1u)->chain;
	}
}

/* A queue for a flow that has none: its number. */
SL_GLOBAL u32 flow_queue_take(struct sl_tree *t SL_NONNULL, u32 leaf, u32 hash)
{
	u32 i = t->rests_first - 1u;
	struct sl_tree_flow *f = sl_at(t->flow, i);
	u16 *chain;

	if (t->fresh_flows >= SL_TREE_PKTS || (t->resting > SL_FLOWS_REMEMBERED && flow_has_paid(t, f))) {
		flow_rest_ends(t, f);
		flow_unchain(t, f, i);
	} else {
		i = t->fresh_flows++;
		f = sl_at(t->flow, i);
	}
	chain = flow_chain(t, leaf, hash);
	__builtin_memset(f, 0, sizeof(*f));
	f->leaf = (u16)leaf;
	f->queue.hash = hash;
	f->queue.round = sl_at(t->fair, leaf)->round;
	f->chain = *chain;
	*chain = (u16)(i + 1);
	return i;
}

/* The queue in which a flow of the leaf stands, or is to stand. */
SL_GLOBAL u32 leaf_flow(struct sl_tree *t SL_NONNULL, u32 leaf, u32 hash)
{
	u32 at = *flow_chain(t, leaf, hash), n;
	struct sl_tree_flow *f;

	/* Most chains have one flow, which is found without the loop: in BPF, a loop of one step costs more than the step. */
	if (at && sl_at(t->flow, at - 1)->queue.hash != hash) {
		sl_for (n, SL_CHAIN_FLOWS) {
			at = sl_at(t->flow, at - 1)->chain;
			if (!at || sl_at(t->flow, at - 1)->queue.hash == hash)
				break;
		}
	}
	/* It is of this leaf: of flows with one hash, each leaf's has another chain. */
	f = sl_at(t->flow, at - 1);
	if (at && f->queue.hash == hash) {
		if (f->queue.place == SL_FLOW_ABSENT)
			flow_rest_ends(t, f);
		return at - 1;
	}
	return flow_queue_take(t, leaf, hash);
}

SL_FN u32 flow_queue_of(struct sl_tree *t, const struct sl_leaf_queue *k, u32 leaf, u32 hash)
{
	return leaf_flow(t, leaf, k->one_flow ? 0 : hash);
}

#include "flow_queue.h"

/*
 * Makes room for a packet when slots run out: one of the largest leaves drops packets of its longest flow; if each of its flows has one packet, the
 * one that it would send next. 1 + that leaf; 0: no leaf has many.
 */
SL_GLOBAL u32 tree_make_room(struct sl_tree *t SL_NONNULL, u64 now_ns)
{
	u32 n = *sl_at(t->larger, sl_log2(t->leaf_sizes | 1)) - 1u, taken;

	if (!t->leaf_sizes)
		return 0;
	if (flow_overflow(t, n))
		return n + 1;
	taken = flow_leave(t, n, now_ns);
	slot_drop(t, class_of(t, n), taken & ~SL_FLOW_MARK, SL_DROP_OVERFLOW);
	leaf_shrunk(t, n, leaf_at(t, n));
	return n + 1;
}
