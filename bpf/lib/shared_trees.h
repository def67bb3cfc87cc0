/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The link that trees below mq share (sched/shared_tree.h): its words, and the part of each tree. The loader makes no such maps for one tree. */
#pragma once
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include "../../sched/shared_tree.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, struct sl_shared_trees);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
} shared_trees SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, struct sl_tree_part);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
} tree_part SEC(".maps");

static __always_inline struct sl_shared_trees *sl_link(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&shared_trees, &zero);
}

/* Tree n, of those that share a link, has no packets: it gives back what others lack. */
static __always_inline void sl_rest(u32 n)
{
	struct sl_tree_part *x = bpf_map_lookup_elem(&tree_part, &n);
	struct sl_shared_trees *l = sl_link();

	if (x && l && (x->joined || (x->credit.scarce && x->credit.bytes > 0)))
		shared_tree_rest(x, l, bpf_ktime_get_ns());
}

/* Tree n, of those that share a link, ends or is emptied. */
static __always_inline void sl_leave(u32 n)
{
	struct sl_tree_part *x = bpf_map_lookup_elem(&tree_part, &n);
	struct sl_shared_trees *l = sl_link();

	if (x && l)
		shared_tree_stop(x, l, bpf_ktime_get_ns());
}

/* The next packet of tree n, which is one of those that share a link. */
SL_GLOBAL int sl_shared_dequeue(struct sl_tree *t SL_NONNULL, u32 n, struct sl_tree_verdict *v SL_NONNULL, u64 now)
{
	struct sl_tree_part *x = bpf_map_lookup_elem(&tree_part, &n);
	struct sl_shared_trees *l = sl_link();

	if (x && l && v)
		*v = shared_tree_dequeue(t, x, l, now);
	return 0;
}
