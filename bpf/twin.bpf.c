// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* The core in the kernel, driven by a trace instead of packets (BPF_PROG_TEST_RUN): what crates/twin compares with the native build. */
#include "lib/kernel.h"
#include <bpf/bpf_helpers.h>
#include "../sched/trace.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, struct sl_sched);
	__uint(max_entries, 1);
} state SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, struct sl_trace);
	__uint(max_entries, 1);
} trace SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, struct sl_sched_conf);
	__uint(max_entries, SL_TRACE_CONFS);
} confs SEC(".maps");

SEC("syscall")
int sl_twin(void *ctx)
{
	u32 zero = 0, i;
	struct sl_sched *s = bpf_map_lookup_elem(&state, &zero);
	struct sl_trace *t = bpf_map_lookup_elem(&trace, &zero);

	if (!s || !t)
		return 1;
	bpf_for (i, 0, SL_TRACE_OPS) {
		struct sl_op *op = sl_at(t->op, i);
		u32 which = op->class & (SL_TRACE_CONFS - 1);
		struct sl_sched_conf *conf = bpf_map_lookup_elem(&confs, &which);

		if (i >= t->count || !conf)
			break;
		sl_play(s, op, conf);
	}
	return 0;
}
