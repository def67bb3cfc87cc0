// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Observation of packets, for as long as a command runs: counts by key, records of packets, captures. On arrival at XDP or tc, either called
 * by the arrival hook of a managed interface, which tells class and verdict, or attached by itself; on departure at tcx. Runs from Linux 6.1.
 */
#include "lib/kernel.h"
#include <bpf/bpf_helpers.h>
#include "../sched/world.h"

const volatile u32 sl_l3_type = 0; /* as in classifier.bpf.c */

#include "lib/parse.h"
#include "lib/observe.h"
#include "lib/after_arrival.h"
#include "lib/observers.h"

static __always_inline int sl_meta_skb(struct __sk_buff *skb, struct sl_captured *c)
{
	c->interface = skb->ifindex;
	c->mark = skb->mark;
	c->has_vlan = (u8)skb->vlan_present;
	c->vlan_tci = (u16)skb->vlan_tci;
	return 0;
}

#include "lib/observe_xdp.h"

#include "lib/parse_skb.h"

static __always_inline void sl_parse_observed_skb(struct __sk_buff *skb, u32 fields, struct sl_headers *h)
{
	sl_headers_init(h, skb->vlan_present ? skb->vlan_tci : SL_NO_TAG, skb->mark, skb->ingress_ifindex);
	sl_parse_frame(skb, fields, h);
}

#define SL_OBSERVE_PARSE sl_parse_observed_skb
#define SL_OBSERVE_META  sl_meta_skb
#include "lib/observe_any.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

static __always_inline int sl_observe_xdp(struct xdp_md *ctx, u32 class, u32 verdict)
{
	u32 bytes = ctx->data_end - ctx->data;
	struct sl_front f;

	if (sl_read_plain(&f, (void *)(long)ctx->data, (void *)(long)ctx->data_end) &&
	    sl_count_plain(&f, bytes, class, verdict, SL_INGRESS))
		return 0;
	if (sl_is_passed_over(bytes, 1))
		return 0;
	return sl_observe_parsed_xdp(ctx, class | verdict << 8 | SL_INGRESS << 16, bytes, 1);
}

static __always_inline int sl_observe_skb(struct __sk_buff *skb, u32 class, u32 verdict, u32 direction)
{
	u32 segments = sl_segments(skb);
	struct sl_front f;

	if (!skb->gso_size && sl_read_plain(&f, (void *)(long)skb->data, (void *)(long)skb->data_end) &&
	    sl_count_plain(&f, skb->len, class, verdict, direction))
		return 0;
	if (sl_is_passed_over(skb->len, segments))
		return 0;
	return sl_observe_parsed_skb(skb, class | verdict << 8 | direction << 16, skb->len, segments);
}

/* Attached by itself. */
SEC("xdp")
int sl_telemetry_xdp(struct xdp_md *ctx)
{
	sl_observe_xdp(ctx, SL_CLASS_UNKNOWN, SL_VERDICT_UNKNOWN);
	return XDP_PASS;
}

SEC("tc")
int sl_telemetry_in(struct __sk_buff *skb)
{
	sl_observe_skb(skb, SL_CLASS_UNKNOWN, SL_VERDICT_UNKNOWN, SL_INGRESS);
	return TC_ACT_UNSPEC;
}

SEC("tc")
int sl_telemetry_out(struct __sk_buff *skb)
{
	sl_observe_skb(skb, SL_CLASS_UNKNOWN, SL_VERDICT_UNKNOWN, SL_EGRESS);
	return TC_ACT_UNSPEC;
}

/* The message of the arrival hook that has called, on this CPU. */
static __always_inline struct sl_observed *sl_told(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&observed, &zero);
}

/* Called by the arrival hook of an interface with a policy, as its last step. */
SEC("xdp")
int sl_telemetry_xdp_called(struct xdp_md *ctx)
{
	struct sl_observed *o = sl_told();

	if (!o)
		return XDP_PASS;
	sl_observe_xdp(ctx, o->class, o->verdict);
	return (int)o->answer;
}

/* Called by the arrival hook at tc. The packet goes on to port forwarding, as from the hook. */
SEC("tc")
int sl_telemetry_in_called(struct __sk_buff *skb)
{
	struct sl_observed *o = sl_told();
	u32 after;

	if (!o)
		return TC_ACT_UNSPEC;
	after = o->answer;
	sl_observe_skb(skb, o->class, o->verdict, SL_INGRESS);
	if (o->verdict != SL_VERDICT_PASSED)
		return TC_ACT_SHOT;
	bpf_tail_call(skb, &forwarder, 0);
	return sl_verdict_after(after);
}
