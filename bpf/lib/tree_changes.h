/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The changes of a tree of classes that wait for whoever runs it: the qdisc, or the process of engine xsk. */
#pragma once
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include "../../abi/tree_changes.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, struct sl_tree_changes);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
} changes SEC(".maps");
