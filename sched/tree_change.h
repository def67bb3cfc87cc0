/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The configuration of a tree of classes, which takes force while packets are queued.
 *
 *	tree_set_up	how many packets it may hold, and how the link below counts them: before use, and again whenever that changes
 *	tree_set_queue	how some leaves queue by flow
 *	tree_configure	what a node is: its parent, limits and weight
 *	tree_set_parts	the parts of a divided leaf, by class
 *	tree_set_class_leaf	the leaf of a class, in a class tree
 *	tree_remove	a node without packets and children is no more
 *	tree_make	any of these, as a record
 *	tree_catch_up	the next changes of a ring
 */
#pragma once
#include "../abi/tree_changes.h"
#include "hierarchy.h"

/* Changes that a call makes at most, so that no packet waits long for them. */
#define SL_CHANGES_A_CALL 16

/* Slots that are kept for packets that come while those of dropped ones are not free yet. */
#define SL_SPARE_TREE_SLOTS 64u

/* Why a node cannot be configured or removed. */
enum sl_tree_error {
	SL_TREE_DONE,
	SL_TREE_NO_NODE, /* there is no such node */
	SL_TREE_NO_PARENT, /* the parent is no inner node and no divided leaf, or not configured */
	SL_TREE_DEPTH, /* too many levels, or a node with children would move to another level */
	SL_TREE_BUSY /* it has children or packets, which forbid this change */
};

/* How many packets the tree may hold, and how the link below counts their bytes. */
SL_GLOBAL int tree_set_up(struct sl_tree *t SL_NONNULL, const struct sl_tree_conf *f SL_NONNULL)
{
	t->slots = sl_min(f->slots, SL_TREE_PKTS);
	t->room_from_pkts = t->slots - sl_min(t->slots / 4, SL_SPARE_TREE_SLOTS);
	t->overhead_bytes = f->overhead_bytes;
	t->mpu_bytes = f->mpu_bytes;
	t->cells = f->cells;
	t->framed = f->overhead_bytes || f->mpu_bytes || f->cells;
	return 0;
}

/* Leaves whose queue is i queue so from now on, also what they hold. */
SL_GLOBAL int tree_set_queue(struct sl_tree *t SL_NONNULL, u32 i, const struct sl_leaf_queue *g SL_NONNULL)
{
	struct sl_leaf_queue *k = sl_at(t->queue, i);

	k->flow_quantum_bytes = sl_min(sl_max(g->flow_quantum_bytes, 1), 1 << 24);
	k->allowance_bytes = sl_min(sl_max(g->allowance_bytes, k->flow_quantum_bytes), 1 << 26);
	k->round_ns = sl_max(g->round_ns, 1);
	k->hosts = g->hosts & (SL_HOSTS_SOURCE | SL_HOSTS_DESTINATION);
	k->one_flow = g->one_flow != 0;
	k->target_ns = g->target_ns;
	k->interval_ns = sl_min(g->interval_ns, 1ULL << 36);
	return 0;
}

/* Levels between node n, which is configured, and the link; SL_TREE_LEVELS: its way does not end there. */
SL_FN u32 tree_depth(struct sl_tree *t, u32 n)
{
	u32 i, depth = SL_TREE_LEVELS;

	sl_for (i, SL_TREE_LEVELS) {
		if (n == SL_FIRST_INNER) {
			depth = i;
			break;
		}
		n = node_parent(node_at(t, n));
	}
	return depth;
}

/* Whether leaf n may be placed below this parent, divided or whole as divided says: an enum sl_tree_error. */
SL_FN u32 leaf_may_join(struct sl_tree *t, u32 n, u32 parent, u32 divided)
{
	struct sl_leaf *leaf = leaf_at(t, n);
	u32 whole = parent < SL_FIRST_INNER ? parent + 1 : 0;

	/* A part is not divided, and only a divided leaf has parts. */
	if (whole && (divided || parent == n || !leaf_is_divided(leaf_at(t, parent))))
		return SL_TREE_NO_PARENT;
	if (leaf_is_divided(leaf) != (int)divided && (leaf->pkts || inner_at(t, n)->below))
		return SL_TREE_BUSY;
	return leaf->whole != whole && leaf->pkts ? SL_TREE_BUSY : SL_TREE_DONE;
}

/* Whether node n, as a leaf divided or not, may become a child of node parent: an enum sl_tree_error. */
SL_GLOBAL u32 tree_may_join(struct sl_tree *t SL_NONNULL, u32 n, u32 parent, u32 divided)
{
	u32 depth, inner = n >= SL_FIRST_INNER, why;

	if (n >= SL_FIRST_INNER + SL_INNERS)
		return SL_TREE_NO_NODE;
	if (parent == n || (inner && parent < SL_FIRST_INNER) || parent >= SL_FIRST_INNER + SL_INNERS)
		return SL_TREE_NO_PARENT;
	if (parent != SL_FIRST_INNER && !node_at(t, parent)->weight)
		return SL_TREE_NO_PARENT;
	why = inner ? SL_TREE_DONE : leaf_may_join(t, n, parent, divided);
	if (why)
		return why;
	depth = tree_depth(t, parent) + 1;
	if (depth + (inner || divided) >= SL_TREE_LEVELS)
		return SL_TREE_DEPTH;
	/* So no node becomes an ancestor of itself, or its leaves too deep. */
	if (inner && inner_at(t, n)->below && depth != tree_depth(t, n))
		return SL_TREE_DEPTH;
	return SL_TREE_DONE;
}

/*
 * Node n becomes what *g says. Packets stay queued, those below it too; what its buckets owe stays owed. An inner node changes its discipline
 * or its rank function while no child of it may send. A leaf must be empty to be divided, to be made whole, or to move into or out of a divided leaf. An enum sl_tree_error; after an error nothing has changed.
 */
SL_GLOBAL u32 tree_configure(struct sl_tree *t SL_NONNULL, u32 n, const struct sl_node_conf *g SL_NONNULL, u64 now_ns)
{
	struct sl_node *k = node_at(t, n);
	struct sl_inner *own = inner_at(t, n);
	struct sl_leaf *leaf = leaf_at(t, n);
	u32 is_link = n == SL_FIRST_INNER, divided = n < SL_FIRST_INNER && g->queue == SL_LEAF_DIVIDED;
	u32 why = is_link ? SL_TREE_DONE : tree_may_join(t, n, g->parent, divided);
	u32 discipline = g->discipline < SL_TREE_DISCIPLINES ? g->discipline : SL_TREE_ELASTIC;
	u32 rank = discipline == SL_TREE_PIFO && g->rank < SL_RANKS ? g->rank : 0,
	    weight = sl_min(sl_max(g->weight, 1), SL_NODE_WEIGHT_MAX);

	if (why)
		return why;
	if (n >= SL_FIRST_INNER || divided) {
		if ((own->discipline != discipline || own->rank != rank) && own->children)
			return SL_TREE_BUSY;
		own->discipline = (u8)discipline;
		own->rank = (u8)rank;
	}
	if (is_link) {
		node_bucket_configure(&k->bucket[SL_TURN_SHARED], g->ceil_cost, g->ceil_burst_ns, now_ns);
		return SL_TREE_DONE;
	}
	tree_fall(t, n);
	if (k->weight)
		parent_of(t, k)->below--;
	if (!k->weight || node_parent(k) != g->parent) {
		order_begin(t, n, g->parent);
		k->left_bytes = 0;
		k->surplus_bytes = 0;
	}
	k->parent = (u16)(g->parent ^ SL_FIRST_INNER);
	parent_of(t, k)->below++;
	if (k->weight != weight)
		eevdf_reweigh(fair_node_at(t, n), k->weight, weight);
	k->weight = (u16)weight;
	own->request = sl_min(g->request, SL_NODE_REQUEST_MAX);
	k->priority = (u8)(g->priority & ((g->parent < SL_FIRST_INNER ? SL_PART_PRIORITIES : SL_TREE_PRIORITIES) - 1));
	node_bucket_configure(&k->bucket[SL_TURN_SHARED], g->ceil_cost, sl_max(g->ceil_burst_ns, SL_NODE_BURST_NS), now_ns);
	node_bucket_configure(&k->bucket[SL_TURN_ASSURED], g->rate_cost, sl_max(g->rate_burst_ns, SL_NODE_BURST_NS), now_ns);
	node_assure_anew(&k->bucket[SL_TURN_ASSURED], now_ns);
	if (n < SL_FIRST_INNER) {
		leaf->limit_pkts = (u16)(divided ? 0 : g->limit_pkts ? sl_min(g->limit_pkts, 65535) : 65535);
		leaf->queue = (u16)(divided ? SL_LEAF_DIVIDED : g->queue & (SL_LEAF_QUEUES - 1));
		leaf->whole = (u16)(g->parent < SL_FIRST_INNER ? g->parent + 1 : 0);
	}
	if (k->state & SL_NODE_READY)
		tree_rise(t, n, now_ns);
	return SL_TREE_DONE;
}

/* Node n is no more, and its counters are gone. An enum sl_tree_error. */
SL_GLOBAL u32 tree_remove(struct sl_tree *t SL_NONNULL, u32 n)
{
	struct sl_node *k = node_at(t, n);

	if (n == SL_FIRST_INNER || n >= SL_FIRST_INNER + SL_INNERS || !k->weight)
		return SL_TREE_NO_NODE;
	if (inner_at(t, n)->below || (n < SL_FIRST_INNER && leaf_at(t, n)->pkts))
		return SL_TREE_BUSY;
	/* Its guarantee may wait still. */
	tree_fall(t, n);
	parent_of(t, k)->below--;
	__builtin_memset(k, 0, sizeof(*k));
	__builtin_memset(inner_at(t, n), 0, sizeof(struct sl_inner));
	if (n < SL_FIRST_INNER) {
		__builtin_memset(leaf_at(t, n), 0, sizeof(struct sl_leaf));
		__builtin_memset(sl_at(t->parts, n), 0, sizeof(struct sl_parts));
	}
	return SL_TREE_DONE;
}

/* Packets of leaf n, which is divided or will be, go to these leaves by their class: 1 + the number of each, 0: none. */
SL_GLOBAL int tree_set_parts(struct sl_tree *t SL_NONNULL, u32 n, const struct sl_parts_conf *g SL_NONNULL)
{
	struct sl_parts *parts = sl_at(t->parts, n);
	u32 class;

	if (!g)
		return 0;
	for (class = 0; class < SL_PART_CLASSES; class ++)
		parts->of_class[class] = g->of_class[class];
	return 0;
}

/* Packets of a class go to this leaf. Once the last class, that of unclassified packets, has a leaf, addresses are not looked at. */
SL_GLOBAL int tree_set_class_leaf(struct sl_tree *t SL_NONNULL, u32 class, const struct sl_class_leaf_conf *g SL_NONNULL)
{
	if (!g)
		return 0;
	*sl_at(t->class_leaf, class) = (u16)g->leaf;
	return 0;
}

/* Makes a change. An enum sl_tree_error; after an error nothing has changed. */
SL_FN u32 tree_make(struct sl_tree *t, const struct sl_tree_change *c, u64 now_ns)
{
	switch (c->kind) {
	case SL_CHANGE_SET_UP:
		tree_set_up(t, (const struct sl_tree_conf *)c->what);
		return SL_TREE_DONE;
	case SL_CHANGE_QUEUE:
		tree_set_queue(t, c->at, (const struct sl_leaf_queue *)c->what);
		return SL_TREE_DONE;
	case SL_CHANGE_NODE:
		return tree_configure(t, c->at, (const struct sl_node_conf *)c->what, now_ns);
	case SL_CHANGE_REMOVE:
		return tree_remove(t, c->at);
	case SL_CHANGE_PARTS:
		tree_set_parts(t, c->at, (const struct sl_parts_conf *)c->what);
		return SL_TREE_DONE;
	case SL_CHANGE_CLASS_LEAF:
		tree_set_class_leaf(t, c->at, (const struct sl_class_leaf_conf *)c->what);
		return SL_TREE_DONE;
	}
	return SL_TREE_NO_NODE;
}

/* Makes the changes that wait in a ring, some of them. To be called again before the next packet. */
SL_GLOBAL int tree_catch_up(struct sl_tree *t SL_NONNULL, struct sl_tree_changes *r SL_NONNULL, u64 now_ns)
{
	/* Atomic operations that return a value are full barriers: a change is read after it was written, and before its place is free again. */
	u64 written = __sync_fetch_and_add(&r->written, 0), made = r->made;
	const struct sl_tree_change *c;
	u32 i, why;

	sl_for (i, SL_CHANGES_A_CALL) {
		if (made == written)
			break;
		c = sl_at(r->change, made);
		why = tree_make(t, c, now_ns);
		/* What a removal finds in use stays, and whoever wants it gone asks again. */
		if (why && !(why == SL_TREE_BUSY && c->kind == SL_CHANGE_REMOVE))
			r->refused++;
		made = __sync_fetch_and_add(&r->made, 1) + 1;
	}
	return 0;
}
