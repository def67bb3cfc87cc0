// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* The address table in the kernel, asked by a trace instead of packets (BPF_PROG_TEST_RUN): what crates/twin compares with the native build. */
#include "lib/kernel.h"
#include <bpf/bpf_helpers.h>
#include "../sched/addresses_trace.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Mapped by userspace, which changes it while the program runs. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct sl_addresses);
	__uint(max_entries, 1);
} state SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, struct sl_address_trace);
	__uint(max_entries, 1);
} trace SEC(".maps");

SEC("syscall")
int sl_twin(void *ctx)
{
	u32 zero = 0, i;
	struct sl_addresses *s = bpf_map_lookup_elem(&state, &zero);
	struct sl_address_trace *t = bpf_map_lookup_elem(&trace, &zero);

	if (!s || !t)
		return 1;
	bpf_for (i, 0, SL_ADDRESS_TRACE_OPS) {
		if (i >= t->count)
			break;
		addresses_play(s, sl_at(t->op, i));
	}
	return 0;
}
