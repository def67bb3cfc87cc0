// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Takes packets that arrive at an interface from the host, and hands them to AF_XDP sockets (crates/xsk), one for each receive queue: `sluice
 * capture --steal`. The host keeps those that the filter does not let through. Runs from Linux 6.1.
 */
#include "lib/kernel.h"
#include <bpf/bpf_helpers.h>
#include "../sched/world.h"

const volatile u32 sl_l3_type = 0; /* as in classifier.bpf.c */
const volatile u32 sl_stamp_mark = 0; /* of this run */
const volatile u32 sl_most_bytes = 0; /* a longer packet does not fit into a frame of the sockets' memory */

#include "lib/parse.h"
#include "lib/observe.h"
#include "lib/observe_xdp.h"

/* The socket of each receive queue. */
struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__type(key, u32);
	__type(value, u32);
	__uint(max_entries, 1);
} sockets SEC(".maps");

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Whether the filter lets a packet through, and sampling chooses it; and counts it. */
static __always_inline int sl_is_taken(struct xdp_md *ctx, struct sl_telemetry_cpu *c)
{
	u32 bytes = ctx->data_end - ctx->data;

	/* In the stack, a packet may be a super-packet (GSO), which no frame holds: the host keeps it. */
	if (bytes > sl_most_bytes) {
		c->filtered_pkts++;
		return 0;
	}
	if (sl_conf.filter.fields) {
		if (!sl_observe_parsed_xdp(ctx, SL_CLASS_UNKNOWN | SL_VERDICT_UNKNOWN << 8 | SL_INGRESS << 16, bytes, 1))
			return 0;
	} else {
		c->seen_pkts++;
		c->seen_bytes += bytes;
	}
	return sl_conf.one_in <= 1 || sample_is_one_in(sl_random(c), sl_conf.one_in);
}

/* Writes the time in front of the packet. A driver without metadata refuses: userspace misses the mark, and asks its own clock. */
static __always_inline void sl_stamp(struct xdp_md *ctx)
{
	struct sl_stamp *s;

	if (bpf_xdp_adjust_meta(ctx, -(int)sizeof(*s)))
		return;
	s = (void *)(long)ctx->data_meta;
	if ((void *)(s + 1) > (void *)(long)ctx->data)
		return;
	s->at_ns = bpf_ktime_get_ns();
	s->mark = sl_stamp_mark;
	s->pad = 0;
}

SEC("xdp")
int sl_steal(struct xdp_md *ctx)
{
	u32 queue = ctx->rx_queue_index;
	struct sl_telemetry_cpu *c = sl_this_cpu(bpf_get_smp_processor_id());
	int answer;

	/* Neither counted nor taken, until the command has put its socket there. */
	if (!c || !bpf_map_lookup_elem(&sockets, &queue))
		return XDP_PASS;
	if (!sl_is_taken(ctx, c))
		return XDP_PASS;
	sl_stamp(ctx);
	answer = (int)bpf_redirect_map(&sockets, queue, XDP_PASS);
	if (answer == XDP_REDIRECT)
		c->sampled_pkts++;
	return answer;
}
