/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Trees of classes that share a link, as a table of functions that Rust can call: struct SharedTreeCore of shared_tree.rs. */
#include "shared_tree.h"

static void core_tree_dequeue(struct sl_tree *t, struct sl_tree_part *x, struct sl_shared_trees *link, u64 now_ns,
			      struct sl_tree_verdict *verdict)
{
	*verdict = shared_tree_dequeue(t, x, link, now_ns);
}

static void core_tree_stop(struct sl_tree_part *x, struct sl_shared_trees *link, u64 now_ns)
{
	shared_tree_stop(x, link, now_ns);
}

const struct {
	u32 tree_bytes;
	u32 part_bytes;
	u32 link_bytes;
	void (*dequeue)(struct sl_tree *t, struct sl_tree_part *x, struct sl_shared_trees *link, u64 now_ns,
			struct sl_tree_verdict *verdict);
	void (*stop)(struct sl_tree_part *x, struct sl_shared_trees *link, u64 now_ns);
} sl_shared_tree_core = {
	.tree_bytes = sizeof(struct sl_tree),
	.part_bytes = sizeof(struct sl_tree_part),
	.link_bytes = sizeof(struct sl_shared_trees),
	.dequeue = core_tree_dequeue,
	.stop = core_tree_stop,
};
