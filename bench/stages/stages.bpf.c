// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * The programs that the bench of observation times. Every packet is dropped, so that nothing but observation comes on top of what the cheapest
 * XDP program costs. The test run sends the same bytes each time; a packet may get another source port, so that keys differ.
 */
#include "../../bpf/telemetry.bpf.c"

/* Set before load: source ports, a power of two, less one; 0: packets stay as they are. */
const volatile u32 bench_ports = 0;

struct bench_count {
	u64 packets;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, u32);
	__type(value, struct bench_count);
	__uint(max_entries, 1);
} bench_sent SEC(".maps");

static __always_inline void bench_vary(struct xdp_md *ctx)
{
	u8 *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	u32 zero = 0, port;
	struct bench_count *sent;

	if (!bench_ports || data + 42 > end)
		return;
	sent = bpf_map_lookup_elem(&bench_sent, &zero);
	if (!sent)
		return;
	port = (u32)(sent->packets++ * 0x9e37u) & bench_ports;
	*(u16 *)(data + 34) = (u16)port;
}

SEC("xdp")
int bench_drop(struct xdp_md *ctx)
{
	bench_vary(ctx);
	return XDP_DROP;
}

SEC("xdp")
int bench_observe(struct xdp_md *ctx)
{
	bench_vary(ctx);
	sl_observe_xdp(ctx, SL_CLASS_UNKNOWN, SL_VERDICT_UNKNOWN);
	return XDP_DROP;
}
