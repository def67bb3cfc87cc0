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
const volatile u32 sl_split_ifb = 0; /* ifindex: super-packets that depart are split there */

/* A packet's bytes, as XDP and tc give them: XDP directly, tc by copying, since they need not lie in the linear part. */
struct sl_source {
	void *data;
	void *end;
	struct __sk_buff *skb; /* NULL: XDP */
};

static __always_inline void *sl_pull(struct sl_source *x, u32 off, u32 size, void *buffer)
{
	void *p = x->data + off;

	/* One way for all of an skb: with direct reads as well, the verifier walks every mixture of the two. */
	if (x->skb)
		return bpf_skb_load_bytes(x->skb, off, buffer, size) ? NULL : buffer;
	return p + size <= x->end ? p : NULL;
}

#include "lib/parse.h"
#include "lib/classify.h"
#include "lib/police.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

static __always_inline u16 sl_tag(const struct sl_tables *t, u32 class)
{
	return (u16)(t->tag << SL_CLASS_BITS | (class & (SL_CLASSES - 1)));
}

/* What a hook learns of a packet. */
struct sl_admission {
	s32 class;  /* negative: drop it */
	u8 handed;  /* by an earlier stage, under the same policy: nothing was parsed here */
	u8 malformed;
	u8 super_packets; /* TCP, or a flow that has sent super-packets */
};

enum sl_drop_policy { SL_MAY_DROP, SL_MAY_NOT_DROP };

static __always_inline struct sl_class_count *sl_class_count_at(u32 direction, u32 class)
{
	u32 key = direction * SL_CLASSES + class;

	return bpf_map_lookup_elem(&class_counts, &key);
}

/* Parse, choose, count, and as drops allows, police. handed: the class that the packet already has, or negative. */
static __always_inline struct sl_admission sl_admit(struct sl_source *x, u16 type, u16 vlan, u32 mark, s32 handed, u32 direction,
						    u32 pkts, u32 bytes, enum sl_drop_policy drops, struct sl_tables *t,
						    u32 buffer)
{
	struct sl_admission a = {};
	struct sl_class_count *count;
	u64 now = bpf_ktime_get_ns();

	if (handed >= 0) {
		a.class = handed;
		a.handed = 1;
	} else {
		struct sl_choice choice;
		struct sl_headers h;

		sl_headers_init(&h, vlan);
		sl_parse(x, type, &h);
		choice = sl_classify(t, buffer, &h, mark);
		sl_count_parsed(&h, direction, choice.rule, pkts, bytes);
		a.class = (s32)choice.class;
		a.malformed = sl_is_malformed(&h) && t->drop_malformed;
		if (a.malformed && drops == SL_MAY_DROP) {
			count = sl_class_count_at(direction, choice.class);
			if (count)
				sl_count_add(&count->malformed, pkts, bytes);
			a.class = -1;
			return a;
		}
		a.super_packets = sl_count_flow(&h, direction, choice, pkts, bytes, now) || h.proto == SL_PROTO_TCP;
	}
	count = sl_class_count_at(direction, (u32)a.class & (SL_CLASSES - 1));
	if (count)
		sl_count_add(&count->seen, pkts, bytes);
	if (drops == SL_MAY_DROP && !sl_police(t, direction, (u32)a.class, bytes, now)) {
		if (count)
			sl_count_add(&count->policed, pkts, bytes);
		a.class = -1;
	}
	return a;
}

static __always_inline u32 sl_segments(struct __sk_buff *skb)
{
	return skb->gso_segs > 1 ? skb->gso_segs : 1;
}

static __always_inline struct sl_admission sl_admit_skb(struct __sk_buff *skb, s32 handed, u32 direction,
							enum sl_drop_policy drops, struct sl_tables *t, u32 buffer)
{
	struct sl_source x = { (void *)(long)skb->data, (void *)(long)skb->data_end, skb };
	u16 vlan = skb->vlan_present ? skb->vlan_tci & 0xfff : SL_NO_VLAN;
	u16 type = sl_l3_type ? __builtin_bswap16((u16)skb->protocol) : 0;

	return sl_admit(&x, type, vlan, skb->mark, handed, direction, sl_segments(skb), skb->len, drops, t, buffer);
}

SEC("xdp")
int sl_xdp(struct xdp_md *ctx)
{
	struct sl_source x = { (void *)(long)ctx->data, (void *)(long)ctx->data_end, NULL };
	u32 bytes = (u32)(x.end - x.data), buffer;
	struct sl_tables *t = sl_live_tables(&buffer);
	struct sl_xdp_meta *meta;
	struct sl_admission a;

	if (!t)
		return XDP_PASS;
	a = sl_admit(&x, 0, SL_NO_VLAN, 0, -1, SL_INGRESS, 1, bytes, SL_MAY_DROP, t, buffer);
	if (a.class < 0)
		return XDP_DROP;
	if (bpf_xdp_adjust_meta(ctx, -(int)sizeof(*meta)))
		return XDP_PASS; /* the driver carries no metadata: the next stage classifies by itself */
	meta = (void *)(long)ctx->data_meta;
	if ((void *)(meta + 1) > (void *)(long)ctx->data)
		return XDP_PASS;
	meta->magic = SL_XDP_MAGIC;
	meta->handed = sl_tag(t, (u32)a.class);
	meta->pad = 0;
	return XDP_PASS;
}

/* On arrival. What XDP has seen is neither parsed nor counted again. */
SEC("tc")
int sl_ingress(struct __sk_buff *skb)
{
	struct sl_xdp_meta *meta = (void *)(long)skb->data_meta;
	u32 buffer;
	struct sl_tables *t = sl_live_tables(&buffer);
	s32 class = -1;

	if (!t)
		return TC_ACT_UNSPEC;
	if ((void *)(meta + 1) <= (void *)(long)skb->data && meta->magic == SL_XDP_MAGIC)
		class = sl_handed_class(t, meta->handed);
	if (class < 0) {
		class = sl_admit_skb(skb, -1, SL_INGRESS, SL_MAY_DROP, t, buffer).class;
		if (class < 0)
			return TC_ACT_SHOT;
	}
	if (sl_ingress_ifb || t->class_from == SL_FROM_RULES)
		skb->tc_index = sl_tag(t, (u32) class);
	return sl_ingress_ifb ? bpf_redirect(sl_ingress_ifb, 0) : TC_ACT_UNSPEC;
}

/* The class that an arrival hook has handed on. A mark or a DSCP may have been set since: then the packet tells. */
static __always_inline s32 sl_forwarded_class(const struct sl_tables *t, u32 handed)
{
	return t->class_from == SL_FROM_RULES ? sl_handed_class(t, handed) : -1;
}

/* On departure, where no queue of ours follows. */
SEC("tc")
int sl_egress(struct __sk_buff *skb)
{
	u32 buffer;
	struct sl_tables *t = sl_live_tables(&buffer);
	struct sl_admission a;

	if (!t)
		return TC_ACT_UNSPEC;
	a = sl_admit_skb(skb, sl_forwarded_class(t, skb->tc_index), SL_EGRESS, SL_MAY_DROP, t, buffer);
	if (a.class < 0)
		return TC_ACT_SHOT;
	skb->tc_index = sl_tag(t, (u32)a.class);
	return TC_ACT_UNSPEC;
}

/* Of a packet that was classified elsewhere, nothing has been parsed here. */
static __always_inline int sl_is_tcp(struct __sk_buff *skb)
{
	struct sl_source x = { (void *)(long)skb->data, (void *)(long)skb->data_end, skb };
	struct sl_headers h;

	sl_headers_init(&h, SL_NO_VLAN);
	sl_parse(&x, sl_l3_type ? __builtin_bswap16((u16)skb->protocol) : 0, &h);
	return h.proto == SL_PROTO_TCP;
}

/*
 * On departure, before a shaped queue: which packets the mirred action behind this filter sends through the splitter, an
 * ifb without segmentation offloads. -1: that one. Whatever may carry super-packets goes there with all of its flow, so
 * that nothing is reordered; the rest, and so the game, takes the direct way. What comes back from the splitter must not
 * match again: the verdict of a filter that matches puts its classid into tc_index, and the class would be gone.
 */
SEC("tc")
int sl_split(struct __sk_buff *skb)
{
	u32 buffer;
	struct sl_tables *t = sl_live_tables(&buffer);
	struct sl_admission a;

	if (!t)
		return 0;
	if (skb->ingress_ifindex == sl_split_ifb)
		return 0;
	a = sl_admit_skb(skb, sl_forwarded_class(t, skb->tc_index), SL_EGRESS, SL_MAY_NOT_DROP, t, buffer);
	if (!a.malformed) /* else the queue decides */
		skb->tc_index = sl_tag(t, (u32)a.class);
	return a.super_packets || skb->gso_segs > 1 || (a.handed && sl_is_tcp(skb)) ? -1 : 0;
}

/* The classifier of an HTB root: its class 0x10 + n is our class n. */
static __always_inline int sl_htb(struct __sk_buff *skb, u32 direction)
{
	u32 buffer;
	struct sl_tables *t = sl_live_tables(&buffer);
	s32 class;

	if (!t)
		return TC_ACT_UNSPEC;
	class = sl_handed_class(t, skb->tc_index);
	if (direction == SL_INGRESS) {
		/* The arrival hook has counted and policed. */
		if (class < 0)
			class = t->default_class;
	} else if (class < 0 || !sl_split_ifb) {
		class = sl_admit_skb(skb, class, direction, SL_MAY_DROP, t, buffer).class;
	} else if (!sl_police(t, direction, (u32) class, skb->len, bpf_ktime_get_ns())) {
		struct sl_class_count *count = sl_class_count_at(direction, (u32) class);

		if (count)
			sl_count_add(&count->policed, sl_segments(skb), skb->len);
		class = -1;
	}
	if (class < 0)
		return TC_ACT_SHOT;
	skb->tc_classid = 0x10 + ((u32) class & (SL_CLASSES - 1));
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
