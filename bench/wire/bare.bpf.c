// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* The least that an AF_XDP forwarder needs: whatever arrives goes to the socket of its queue. */
#include "../../bpf/lib/kernel.h"
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__type(key, u32);
	__type(value, u32);
	__uint(max_entries, 1);
} bare_sockets SEC(".maps");

SEC("xdp")
int bare(struct xdp_md *ctx)
{
	return (int)bpf_redirect_map(&bare_sockets, ctx->rx_queue_index, XDP_PASS);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
