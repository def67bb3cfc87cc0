/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The schedulers of engines qdisc and xsk. The hooks before the queue share the map: see early.h. */
#pragma once
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include "../../abi/instance.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, struct sl_instance);
	__uint(max_entries, 2);
	__uint(map_flags, BPF_F_MMAPABLE);
} state SEC(".maps");

static __always_inline struct sl_sched *sl_state_of(u32 n)
{
	struct sl_instance *instance = bpf_map_lookup_elem(&state, &n);

	return instance ? &instance->sched : NULL;
}
