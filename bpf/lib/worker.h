/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Engine xsk: whether the worker of a receive queue runs. */
#pragma once
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include "../../abi/wire.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32); /* receive queue */
	__type(value, struct sl_wire_worker);
	__uint(max_entries, SL_WIRE_QUEUES);
	__uint(map_flags, BPF_F_MMAPABLE);
} workers SEC(".maps");

/*
 * Whether the worker of a receive queue was seen a short while ago. The worker may have written a time later than now_ns, which was read earlier: so the
 * difference is signed.
 */
static __always_inline int sl_worker_is_seen(u32 queue, u64 now_ns)
{
	struct sl_wire_worker *w = bpf_map_lookup_elem(&workers, &queue);

	return w && (s64)(now_ns - *(volatile u64 *)&w->seen_ns) <= (s64)SL_WIRE_PATIENCE_NS;
}
