/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The maps of a tree of classes: its nodes, the owner of each node, the leaf of each address, and the hosts that no list names. */
#pragma once
#include "../../abi/addresses.h"
#include "../../abi/each_host.h"
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

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, struct sl_each_host);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
} hosts SEC(".maps");

/* The owner of each number of a node: the hash of the name of the subscriber or site; 0: the number is free. Only the loader uses this map. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, u64);
	__uint(max_entries, SL_FIRST_INNER + SL_INNERS);
	__uint(map_flags, BPF_F_MMAPABLE);
} owners SEC(".maps");
