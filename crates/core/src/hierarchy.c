/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The tree of classes, as a table of functions that Rust can call: struct TreeCore of hierarchy.rs. */
#include "../abi/types.h"

static _Thread_local u64 tree_visits;

#ifdef SL_TREE_COUNTS
#define SL_TREE_VISIT() (tree_visits++)
#endif
#include "tree_change.h"
#include "early_leaf.h"

static void core_set_up(struct sl_tree *t, const struct sl_tree_conf *conf)
{
	tree_set_up(t, conf);
}

static void core_set_queue(struct sl_tree *t, u32 queue, const struct sl_leaf_queue *conf)
{
	tree_set_queue(t, queue, conf);
}

static u32 core_configure(struct sl_tree *t, u32 node, const struct sl_node_conf *conf, u64 now_ns)
{
	return tree_configure(t, node, conf, now_ns);
}

static void core_set_parts(struct sl_tree *t, u32 leaf, const struct sl_parts_conf *conf)
{
	tree_set_parts(t, leaf, conf);
}

static u32 core_leaf_of_class(struct sl_tree *t, u32 leaf, u32 class)
{
	return leaf_of_class(t, leaf, class);
}

static u32 core_leaf_by_class(struct sl_tree *t, u32 class)
{
	return is_class_tree(t) ? leaf_by_class(t, class) : SL_NO_NODE;
}

static u32 core_remove(struct sl_tree *t, u32 node)
{
	return tree_remove(t, node);
}

static u32 core_make(struct sl_tree *t, const struct sl_tree_change *change, u64 now_ns)
{
	return tree_make(t, change, now_ns);
}

static void core_catch_up(struct sl_tree *t, struct sl_tree_changes *ring, u64 now_ns)
{
	tree_catch_up(t, ring, now_ns);
}

static s32 core_enqueue(struct sl_tree *t, const struct sl_packet *packet, u64 now_ns)
{
	return tree_enqueue(t, packet, now_ns);
}

static void core_dequeue(struct sl_tree *t, u64 now_ns, struct sl_tree_verdict *verdict)
{
	*verdict = tree_dequeue(t, now_ns);
}

static u32 core_drop(struct sl_tree *t, u32 leaf, u64 now_ns)
{
	return tree_drop(t, leaf, now_ns);
}

static void core_clear(struct sl_tree *t, u64 now_ns)
{
	tree_clear(t, now_ns);
}

static u32 core_reap(struct sl_tree *t)
{
	return sl_reap(t);
}

static u32 core_early(const struct sl_tree *t, struct sl_underway *underway, const struct sl_packet *packet, u64 now_ns)
{
	return leaf_early(t, underway, packet, now_ns);
}

/* Nodes that calls of this thread have visited, if it was compiled to count them. */
static u64 core_visits(void)
{
	return tree_visits;
}

const struct {
	u32 state_bytes;
	u32 conf_bytes;
	void (*set_up)(struct sl_tree *t, const struct sl_tree_conf *conf);
	void (*set_queue)(struct sl_tree *t, u32 queue, const struct sl_leaf_queue *conf);
	u32 (*configure)(struct sl_tree *t, u32 node, const struct sl_node_conf *conf, u64 now_ns);
	void (*set_parts)(struct sl_tree *t, u32 leaf, const struct sl_parts_conf *conf);
	u32 (*leaf_of_class)(struct sl_tree *t, u32 leaf, u32 class);
	u32 (*leaf_by_class)(struct sl_tree *t, u32 class);
	u32 (*remove)(struct sl_tree *t, u32 node);
	u32 (*make)(struct sl_tree *t, const struct sl_tree_change *change, u64 now_ns);
	void (*catch_up)(struct sl_tree *t, struct sl_tree_changes *ring, u64 now_ns);
	s32 (*enqueue)(struct sl_tree *t, const struct sl_packet *packet, u64 now_ns);
	void (*dequeue)(struct sl_tree *t, u64 now_ns, struct sl_tree_verdict *verdict);
	u32 (*drop)(struct sl_tree *t, u32 leaf, u64 now_ns);
	void (*clear)(struct sl_tree *t, u64 now_ns);
	u32 (*reap)(struct sl_tree *t);
	u32 (*early)(const struct sl_tree *t, struct sl_underway *underway, const struct sl_packet *packet, u64 now_ns);
	u64 (*visits)(void);
} sl_tree_core = {
	.state_bytes = sizeof(struct sl_tree),
	.conf_bytes = sizeof(struct sl_node_conf),
	.set_up = core_set_up,
	.set_queue = core_set_queue,
	.configure = core_configure,
	.set_parts = core_set_parts,
	.leaf_of_class = core_leaf_of_class,
	.leaf_by_class = core_leaf_by_class,
	.remove = core_remove,
	.make = core_make,
	.catch_up = core_catch_up,
	.enqueue = core_enqueue,
	.dequeue = core_dequeue,
	.drop = core_drop,
	.clear = core_clear,
	.reap = core_reap,
	.early = core_early,
	.visits = core_visits,
};
