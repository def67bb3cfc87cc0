// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * The hooks before the queues: XDP on arrival, tc (tcx or clsact) on arrival and departure, and the classifier of an
 * HTB root. Each parses at most once, counts, polices, and hands the class on in skb->tc_index. Runs from Linux 6.1.
 */
#include "lib/kernel.h"
#include <bpf/bpf_helpers.h>
#include "../sched/world.h"

/* Set before load. */
const volatile u32 sl_l3_type = 0; /* the device has no Ethernet header: packets start at the network layer */
const volatile u32 sl_ingress_ifb = 0; /* ifindex: what arrives is queued there */
const volatile u32 sl_ingress_by_filter = 0; /* a filter behind the hook sends it there, since programs cannot before 6.4 */
const volatile u32 sl_look_behind_nat = 0; /* for the hosts of what is queued there; only where conntrack can be asked */
const volatile u32 sl_is_wire =
	0; /* a process queues what arrives (engine xsk). 0: the verifier removes the code, and its maps are not made */
const volatile u32 sl_split_ifb = 0; /* ifindex: super-packets that depart are split there */

#include "lib/parse.h"
#define SL_PACKET struct xdp_md
#define SL_PACKET_ARG
#define SL_LOAD         bpf_xdp_load_bytes
#define SL_LENGTH(x)    ((u32)((x)->data_end - (x)->data))
#define SL_PARSER(name) name##_xdp
#define SL_MARK(x)      0
#define SL_TAG(x)       SL_NO_TAG
#include "lib/parse_any.h"
#include "lib/trace_any.h"
#undef SL_PACKET
#undef SL_LOAD
#undef SL_LENGTH
#undef SL_PARSER
#undef SL_MARK
#undef SL_TAG
#define SL_PACKET       struct __sk_buff
#define SL_LOAD         bpf_skb_load_bytes
#define SL_LENGTH(x)    ((x)->len)
#define SL_PARSER(name) name##_skb
#define SL_MARK(x)      ((x)->mark)
#define SL_TAG(x)       ((x)->vlan_present ? (x)->vlan_tci : SL_NO_TAG)
#include "lib/parse_any.h"
#include "lib/trace_any.h"
#include "lib/admit.h"
#include "lib/marks.h"
#include "lib/arriving_hosts.h"
#include "lib/answers.h"
#include "lib/after_arrival.h"
#include "lib/observers.h"
#include "lib/wire.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

static __always_inline u16 sl_tag(const struct sl_tables *t, u32 class)
{
	return (u16)(t->tag << SL_CLASS_BITS | (class & (SL_CLASSES - 1)));
}

static __always_inline void sl_parse_frame_xdp(struct xdp_md *ctx, u32 fields, struct sl_headers *h)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;

	sl_parse_xdp(ctx, data + SL_FRONT + SL_FRONT_BYTES <= end ? data + SL_FRONT : NULL, 0, fields, h);
}

/* Tells the observer what was found about a packet. */
static __always_inline void sl_tell_admission(struct sl_admission a, u32 answer)
{
	if (a.class < 0)
		sl_tell_observer((u32)(-1 - a.class), SL_VERDICT_REFUSED + a.refusal, answer);
	else
		sl_tell_observer((u32)a.class, SL_VERDICT_PASSED, answer);
}

/* The event of a packet that a hook drops, or gives to a queue that sends no events; and the place of its class. */
static __always_inline u32 sl_event_of(struct sl_admission a)
{
	return a.class < 0 ? SL_EVENT(SL_EVENT_DROPPED, a.refusal) : SL_EVENT(SL_EVENT_SENT, 0);
}

static __always_inline u32 sl_place_of(struct sl_admission a, u32 direction)
{
	return direction << 8 | (u32)(a.class < 0 ? -1 - a.class : a.class);
}

static __noinline int sl_trace_frame(struct xdp_md *ctx, u64 now_ns, u32 event, u32 place)
{
	struct sl_headers *h;

	if (sl_watch.fields) {
		h = sl_headers_at_hand(SL_NO_TAG, 0, 0);
		if (!h)
			return 0;
		sl_parse_frame_xdp(ctx, 0, h);
		if (!sl_flow_is_traced(h))
			return 0;
	}
	sl_emit_packet_xdp(ctx, now_ns, event, place);
	return 0;
}

/* XDP drops a packet: reports it if it belongs to the traced flow. */
static __always_inline void sl_emit_dropped(struct xdp_md *ctx, struct sl_admission a, u64 now_ns)
{
	if (sl_unlikely(sl_packet_is_traced(now_ns)))
		sl_trace_frame(ctx, now_ns, sl_event_of(a), sl_place_of(a, SL_INGRESS));
}

/* The XDP program's verdict on a packet. Sets *a: its class, or how it was refused; the class is negative where tc is to find it. */
static __always_inline int sl_arrive_xdp(struct xdp_md *ctx, struct sl_admission *a)
{
	struct sl_request request = { .direction = SL_INGRESS, .bytes = ctx->data_end - ctx->data, .pkts = 1 };
	struct sl_tables *t = sl_live_tables();
	struct sl_xdp_meta *meta;
	struct sl_headers *h;
	int answer;
	u32 queue;

	a->class = -1;
	/* A card may have taken the VLAN tag out of the frame, and a mark comes later: tc sees both. */
	if (!t || t->class_from == SL_FROM_MARK || t->fields & (SL_FIELD_VLAN | SL_FIELD_PCP | SL_FIELD_MARK))
		return XDP_PASS;
	request.now_ns = bpf_ktime_get_ns();
	if (sl_is_wire) {
		queue = ctx->rx_queue_index;
		request.flags = (u8)(sl_min(queue, 15) * SL_RECEIVE_QUEUE);
	}
	if (!sl_admit_plain(a, (void *)(long)ctx->data, (void *)(long)ctx->data_end, &request, SL_MAY_DROP, t)) {
		h = sl_headers_at_hand(SL_NO_TAG, 0, ctx->ingress_ifindex);
		if (!h)
			return XDP_PASS;
		sl_parse_frame_xdp(ctx, t->fields, h);
		*a = sl_admit(h, -1, &request, SL_MAY_DROP, t);
	}
	if (a->class < 0) {
		sl_emit_dropped(ctx, *a, request.now_ns);
		return XDP_DROP;
	}
	meta = bpf_xdp_adjust_meta(ctx, -(int)sizeof(*meta)) ? NULL : (void *)(long)ctx->data_meta;
	if (!meta || (void *)(meta + 1) > (void *)(long)ctx->data) {
		a->class = -1; /* the driver carries no metadata: the next stage classifies by itself */
		return XDP_PASS;
	}
	meta->magic = SL_XDP_MAGIC;
	meta->handed = sl_tag(t, (u32)a->class);
	meta->pad = 0;
	if (!sl_is_wire || sl_goes_ahead(ctx, a->control, &request) || request.bytes > sl_wire_frame_bytes)
		return XDP_PASS;
	answer = sl_to_worker(ctx, &request, *meta);
	if (sl_wire_tree && sl_unlikely(answer == XDP_DROP)) {
		a->class = -1 - a->class;
		a->refusal = SL_LIMITED(SL_LIMIT_EARLY);
		sl_emit_dropped(ctx, *a, request.now_ns);
	}
	return answer;
}

SEC("xdp")
int sl_xdp(struct xdp_md *ctx)
{
	struct sl_admission a = {};
	int answer = sl_arrive_xdp(ctx, &a);

	/* What tc is to classify, tc tells. */
	if (sl_is_observed() && (answer == XDP_DROP || a.class >= 0)) {
		sl_tell_admission(a, (u32)answer);
		bpf_tail_call(ctx, &observer_xdp, 0);
	}
	return answer;
}

static __noinline int sl_trace_packet(struct __sk_buff *skb, u64 now_ns, u32 event, u32 place)
{
	struct sl_headers *h;

	if (sl_watch.fields) {
		h = sl_headers_at_hand(SL_NO_TAG, 0, 0);
		if (!h)
			return 0;
		sl_parse_frame(skb, 0, h);
		if (!sl_flow_is_traced(h))
			return 0;
	}
	sl_emit_packet_skb(skb, now_ns, event, place);
	return 0;
}

/* A hook drops a packet, or gives it to a queue that sends no events: reports it if it belongs to the traced flow. */
static __always_inline void sl_emit_admission(struct __sk_buff *skb, struct sl_admission a, u32 direction)
{
	u64 now_ns = sl_watch.packets_until_ns ? bpf_ktime_get_ns() : 0;

	if (sl_unlikely(now_ns && sl_packet_is_traced(now_ns)))
		sl_trace_packet(skb, now_ns, sl_event_of(a), sl_place_of(a, direction));
}

/* If the packet's flow is owed a mark, and the packet can bear one, it gets it. Does not change what it is parsed as. */
static __noinline int sl_pay(struct __sk_buff *skb, u32 direction)
{
	u64 now = bpf_ktime_get_ns();
	struct sl_flow_key key = {};
	struct sl_headers *h;
	u32 hash;

	if (now > sl_owed.until_ns) {
		sl_owed.until_ns = 0;
		return 0;
	}
	h = sl_headers_at_hand(SL_NO_TAG, 0, 0);
	if (!h)
		return 0;
	sl_parse_frame(skb, 0, h);
	if (!sl_ecn(h))
		return 0;
	sl_flow_key(&key, h, direction);
	hash = sl_flow_hash(&key);
	if (sl_owed_since(hash, now) >= 0 && bpf_skb_ecn_set_ce(skb))
		*sl_at(sl_owed.flow, hash) = 0;
	return 0;
}

static __always_inline void sl_pay_mark(struct __sk_buff *skb, u32 direction)
{
	if (sl_unlikely(sl_owed.until_ns))
		sl_pay(skb, direction);
}

/* On departure, before a queue of ours that may mark, where no splitter does. */
SEC("tc")
int sl_mark(struct __sk_buff *skb)
{
	sl_pay_mark(skb, SL_EGRESS);
	return TC_ACT_UNSPEC;
}

/* Tells the queue of arriving packets between which hosts this one passes, if that is not what its addresses say. */
static __noinline int sl_hand_over_hosts(struct __sk_buff *skb)
{
	struct sl_headers *h = sl_headers_at_hand(SL_NO_TAG, 0, 0);

	if (!h)
		return 0;
	sl_parse_frame(skb, 0, h);
	skb->cb[SL_CB_HOSTS / 4] = sl_hosts_behind_nat(skb, h);
	return 0;
}

/* Where an arriving packet goes after the hook, as in the control block: see SL_CB_FORWARD. */
static __always_inline u32 sl_after_arrival(void)
{
	if (!sl_ingress_ifb && !sl_ingress_by_filter)
		return SL_AFTER_NEXT;
	/* The interface on the other side. */
	if (sl_is_wire)
		return sl_ingress_ifb;
	return sl_unlikely(!sl_queue_is_alive()) ? SL_AFTER_STACK : sl_ingress_ifb;
}

/* On arrival. What XDP has seen is neither parsed nor counted again. */
SEC("tc")
int sl_ingress(struct __sk_buff *skb)
{
	struct sl_xdp_meta *meta = (void *)(long)skb->data_meta;
	struct sl_tables *t = sl_live_tables();
	s32 class = -1;
	u32 after, at_xdp;

	if (!t)
		return TC_ACT_UNSPEC;
	if ((void *)(meta + 1) <= (void *)(long)skb->data && meta->magic == SL_XDP_MAGIC)
		class = sl_handed_class(t, meta->handed);
	at_xdp = class >= 0;
	if (class < 0) {
		struct sl_admission a = sl_admit_skb(skb, -1, SL_INGRESS, SL_MAY_DROP, t);

		class = a.class;
		if (class < 0) {
			sl_emit_admission(skb, a, SL_INGRESS);
			if (sl_is_observed()) {
				sl_tell_admission(a, 0);
				bpf_tail_call(skb, &observer_tc, 0);
			}
			return TC_ACT_SHOT;
		}
	}
	if (sl_ingress_ifb) {
		sl_pay_mark(skb, SL_INGRESS);
		skb->cb[SL_CB_HOSTS / 4] = 0;
		if (sl_look_behind_nat)
			sl_hand_over_hosts(skb);
	}
	skb->tc_index = sl_ingress_ifb || sl_class_lasts(t) ? sl_tag(t, (u32) class) : 0;
	after = sl_after_arrival();
	skb->cb[SL_CB_FORWARD / 4] = after | (sl_l3_type ? SL_FORWARD_L3 : 0);
	if (!at_xdp && sl_is_observed()) {
		sl_tell_observer((u32) class, SL_VERDICT_PASSED, after);
		bpf_tail_call(skb, &observer_tc, 0);
	}
	bpf_tail_call(skb, &forwarder, 0);
	return sl_verdict_after(after);
}

/* The class that an arrival hook has handed on. */
static __always_inline s32 sl_class_before(const struct sl_tables *t, struct __sk_buff *skb)
{
	return sl_forwarded_class(t, skb->tc_index, skb->ingress_ifindex);
}

/* On departure, where no queue of ours follows. */
SEC("tc")
int sl_egress(struct __sk_buff *skb)
{
	struct sl_tables *t = sl_live_tables();
	struct sl_admission a;

	if (!t)
		return TC_ACT_UNSPEC;
	a = sl_admit_skb(skb, sl_class_before(t, skb), SL_EGRESS, SL_MAY_DROP, t);
	sl_emit_admission(skb, a, SL_EGRESS);
	if (a.class < 0)
		return TC_ACT_SHOT;
	skb->tc_index = sl_tag(t, (u32)a.class);
	return TC_ACT_UNSPEC;
}

#include "lib/splitter.h"

/*
 * On departure, before a shaped queue: which packets the mirred action behind this filter sends through the splitter, an
 * ifb without segmentation offloads. -1: that one. Whatever may carry super-packets goes there with all of its flow, so
 * that nothing is reordered; the rest, and so the game, takes the direct way. What comes back from the splitter must not
 * match again: the verdict of a filter that matches puts its classid into tc_index, and the class would be gone.
 * Without a splitter (sl_split_ifb is 0) the program only marks, and writes the class into tc_index.
 */
SEC("tc")
int sl_split(struct __sk_buff *skb)
{
	struct sl_tables *t = sl_live_tables();
	struct sl_admission a;
	u32 segments;

	if (!t)
		return 0;
	if (sl_split_ifb && skb->ingress_ifindex == sl_split_ifb) {
		if (sl_split_since)
			sl_split_since = 0;
		return 0;
	}
	sl_pay_mark(skb, SL_EGRESS);
	a = sl_admit_skb(skb, sl_class_before(t, skb), SL_EGRESS, SL_MAY_NOT_DROP, t);
	/* The queue recognises by itself which packets it drops or polices. */
	skb->tc_index = a.malformed || a.control ? 0 : sl_tag(t, (u32)a.class);
	if (!sl_split_ifb)
		return TC_ACT_UNSPEC;
	if (!a.super_packets) {
		segments = sl_segments(skb);
		if (segments < 2 && !a.handed && !sl_long.until_ns)
			return 0;
		if (!sl_is_of_long_flow(skb, segments))
			return 0;
	}
	return sl_splitter_is_alive() ? -1 : 0;
}

/* Police a frame that the splitter has classified and counted. */
static __always_inline struct sl_admission sl_police_split(struct __sk_buff *skb, s32 class, struct sl_tables *t)
{
	struct sl_request request = { .now_ns = bpf_ktime_get_ns(),
				      .direction = SL_EGRESS,
				      .class = (u8) class,
				      .bytes = skb->len,
				      .pkts = sl_segments(skb) };
	struct sl_admission a = { .class = class };
	struct sl_headers *h;

	if (sl_flows_are_limited(t, (u32) class)) {
		h = sl_headers_at_hand(skb->vlan_present ? skb->vlan_tci : SL_NO_TAG, skb->mark, skb->ingress_ifindex);
		if (!h)
			return a;
		sl_parse_frame(skb, 0, h);
		sl_request_flow(&request, h);
	}
	a.refusal = sl_police(t, &request);
	if (a.refusal)
		a.class = -1 - class;
	return a;
}

/* By the rules alone, without counting. */
static __always_inline s32 sl_class_again(struct __sk_buff *skb, const struct sl_tables *t)
{
	struct sl_headers *h = sl_headers_at_hand(skb->vlan_present ? skb->vlan_tci : SL_NO_TAG, skb->mark, skb->ingress_ifindex);

	if (!h)
		return -1;
	sl_parse_frame(skb, t->fields, h);
	return (s32)sl_choice_of(sl_choose(t, h)).class;
}

/* The classifier of an HTB root: its class 0x10 + n is our class n. */
static __always_inline int sl_htb(struct __sk_buff *skb, u32 direction)
{
	struct sl_tables *t = sl_live_tables();
	struct sl_admission a = {};
	s32 class;

	if (direction == SL_INGRESS)
		sl_queue_answers();
	if (!t)
		return TC_ACT_UNSPEC;
	if (direction == SL_INGRESS) {
		/* The arrival hook has counted and policed; but the policy may have changed since. */
		class = sl_handed_class(t, skb->tc_index);
		a.class = class < 0 ? sl_class_again(skb, t) : class;
	} else {
		class = sl_split_ifb ? sl_handed_class(t, skb->tc_index) : sl_class_before(t, skb);
		a = class >= 0 && sl_split_ifb ? sl_police_split(skb, class, t)
					       : sl_admit_skb(skb, class, direction, SL_MAY_DROP, t);
	}
	sl_emit_admission(skb, a, direction);
	if (a.class < 0)
		return TC_ACT_SHOT;
	skb->tc_classid = 0x10 + ((u32)a.class & (SL_CLASSES - 1));
	return TC_ACT_OK;
}

SEC("tc")
int sl_htb_egress(struct __sk_buff *skb)
{
	return sl_htb(skb, SL_EGRESS);
}

SEC("tc")
int sl_htb_ingress(struct __sk_buff *skb)
{
	return sl_htb(skb, SL_INGRESS);
}

/* The answer of the programs above to a packet, which is not counted. Run by hand (BPF_PROG_TEST_RUN), as XDP: that takes any bytes. */
SEC("xdp")
int sl_explain(struct xdp_md *ctx)
{
	u32 zero = 0;
	struct sl_explanation *e = bpf_map_lookup_elem(&explanation, &zero);
	struct sl_tables *t = sl_live_tables();
	struct sl_request request = {};
	struct sl_flow_set *set;
	struct sl_headers h;
	u32 way;

	if (!e || !t)
		return -1;
	sl_headers_init(&h, e->tag, e->mark, e->interface);
	sl_parse_frame_xdp(ctx, t->fields, &h);
	e->headers = h;
	e->by_rules = sl_choose(t, &h);
	e->by_flow = e->flow_pkts = e->flow_bytes = 0;
	request.direction = e->direction;
	sl_request_flow(&request, &h);
	set = sl_flow_set_of(request.hash);
	way = set ? sl_flow_way(set, &request.flow, request.hash) : SL_FLOW_SET_WAYS;
	if (set && way < SL_FLOW_SET_WAYS) {
		e->by_flow =
			sl_flow_is_alike(t, &h, sl_at(set->detail, way)) ? sl_flow_choice(t, sl_at(set->flow, way)->choice) : 0;
		e->flow_pkts = (u64)sl_at(set->detail, way)->pkts_high << 32 | sl_at(set->flow, way)->pkts;
		e->flow_bytes = sl_at(set->flow, way)->bytes;
	}
	e->by_fragment = h.fragment == SL_LATER_FRAGMENT ? sl_choose_by_fragment(&h, e->direction, t->generation, 0) : 0;
	e->choice = e->by_fragment ? e->by_fragment : e->by_flow ? e->by_flow : e->by_rules;
	request.now_ns = bpf_ktime_get_ns();
	request.class = (u8)sl_choice_of(e->choice).class;
	sl_look_at_buckets(t, &request, e);
	return 0;
}
