/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Packets that a hook has let through to each leaf of a tree, and that the leaf has not had yet: what sched/early_leaf.h asks for. */
#pragma once
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include "../../sched/early_leaf.h"

/* Leaves to which packets of a processor may be under way at once; one that takes the place of another begins with none. */
#define SL_LEAVES_UNDERWAY 64u

struct sl_leaf_underway {
	struct sl_underway own;
	u64 leaf;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, u32);
	__type(value, struct sl_leaf_underway);
	__uint(max_entries, SL_LEAVES_UNDERWAY);
} leaf_underway SEC(".maps");

static __always_inline struct sl_underway *sl_underway_to(u32 leaf)
{
	u32 place = leaf & (SL_LEAVES_UNDERWAY - 1);
	struct sl_leaf_underway *u = bpf_map_lookup_elem(&leaf_underway, &place);

	if (!u)
		return NULL;
	if (sl_unlikely(u->leaf != leaf)) {
		u->leaf = leaf;
		u->own.since_ns = 0; /* what is counted there is forgotten */
	}
	return &u->own;
}
