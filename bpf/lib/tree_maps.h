/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What a tree of classes is kept in: its nodes, whose they are, and which address leads to which leaf. */
#pragma once
#include "../../abi/addresses.h"
#include "../../abi/hierarchy.h"
#include "kernel.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, struct sl_tree);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
} tree SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, struct sl_addresses);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
} addresses SEC(".maps");

/* Of each leaf and inner node, a hash of its name: whose it is. 0: nobody's. The loader alone uses it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, u64);
	__uint(max_entries, SL_FIRST_INNER + SL_INNERS);
	__uint(map_flags, BPF_F_MMAPABLE);
} owners SEC(".maps");
