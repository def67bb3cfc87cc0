/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Admission of a packet by a hook before the queues: it is classified (a plain one by its first words, another by its headers), counted,
 * dropped if its queue is full, and policed. For programs of tc and XDP, whose parsers and constants are declared before this is included.
 */
#pragma once
#include "classify.h"
#include "early.h"
#include "frame.h"
#include "headers.h"
#include "marks.h"
#include "plain.h"
#include "police.h"

/* The findings of a hook about a packet. */
struct sl_admission {
	s32 class; /* negative: drop it */
	u32 refusal; /* enum sl_refusal */
	u8 handed; /* by an earlier stage, under the same policy: nothing was parsed here */
	u8 malformed;
	u8 super_packets; /* TCP, or a flow that has sent super-packets */
	u8 control; /* chosen by a built-in rule */
};

enum sl_drop_policy { SL_MAY_DROP, SL_MAY_NOT_DROP };

/*
 * Whether a packet's headers are parsed: it has no class yet, or the flows of its class, which an earlier stage has handed on, are limited. Such a
 * flow needs its entry in this direction.
 */
static __always_inline int sl_must_parse(const struct sl_tables *t, s32 handed)
{
	return handed < 0 || sl_unlikely(sl_flows_are_limited(t, (u32)handed));
}

/* Counts a packet whose class is known, and polices it as drops allows. */
static __always_inline void sl_count_and_police(struct sl_admission *a, struct sl_request *request, enum sl_drop_policy drops,
						const struct sl_tables *t)
{
	struct sl_class_count *count = sl_class_count_at(request->direction, (u32)a->class);

	if (count)
		sl_count_add(&count->seen, request->pkts, request->bytes);
	request->class = (u8)a->class;
	if (drops == SL_MAY_DROP) {
		a->refusal = sl_drop_early(request);
		if (sl_likely(!a->refusal))
			a->refusal = sl_police(t, request);
		if (a->refusal)
			a->class = -1 - a->class;
	}
}

/*
 * Chooses the class of a packet, counts it, and polices it as drops allows. handed: the class that the packet already has, or negative. h has
 * been parsed if sl_must_parse says so.
 */
static __always_inline struct sl_admission sl_admit(struct sl_headers *h, s32 handed, struct sl_request *request,
						    enum sl_drop_policy drops, struct sl_tables *t)
{
	struct sl_choice choice = {};
	struct sl_admission a = {};
	struct sl_class_count *count;

	if (sl_must_parse(t, handed)) {
		if (sl_keep_flows || sl_drops_early || sl_is_wire)
			sl_request_flow(request, h);
		if (sl_is_wire)
			request->ecn = (u8)sl_ecn(h);
		choice = sl_classify(t, h, request);
	}
	if (handed >= 0) {
		a.class = handed;
		a.handed = 1;
	} else {
		a.class = (s32)choice.class;
		a.control = sl_is_control(choice.rule);
		a.malformed = sl_is_malformed(h) && t->drop_malformed;
		a.super_packets = request->super_packets || h->proto == SL_PROTO_TCP;
		if ((a.control || a.malformed) && drops == SL_MAY_NOT_DROP)
			return a; /* the queue classifies it again, counts it, and polices or drops it */
		sl_count_parsed(h, request->direction, choice.rule, request->pkts, request->bytes);
		request->flags = (u8)((request->flags & ~SL_CONTROL) | (a.control ? SL_CONTROL : 0));
		if (a.malformed) {
			count = sl_class_count_at(request->direction, choice.class);
			if (count)
				sl_count_add(&count->malformed, request->pkts, request->bytes);
			a.class = -1 - a.class;
			a.refusal = SL_DROPPED_MALFORMED;
			return a;
		}
	}
	sl_count_and_police(&a, request, drops, t);
	return a;
}

/*
 * As sl_admit, for a plain packet without a class, from its first words alone. Returns 0, and has counted nothing, if sl_admit must look at
 * the headers.
 */
static __always_inline int sl_admit_plain(struct sl_admission *a, const void *data, const void *end, struct sl_request *request,
					  enum sl_drop_policy drops, const struct sl_tables *t)
{
	u32 in_table = sl_keep_flows;
	struct sl_choice choice;
	struct sl_front f;

	if (!sl_plain_method(t, in_table) || !sl_read_plain(&f, data, end))
		return 0;
	if (in_table || sl_drops_early || sl_is_wire)
		sl_request_plain_flow(request, &f);
	if (sl_is_wire)
		request->ecn = (u8)sl_front_ecn(&f);
	if (!sl_choose_plain(t, &f, request, in_table, &choice))
		return 0;
	a->class = (s32)choice.class;
	a->control = request->flags & SL_CONTROL;
	a->super_packets = choice.super_packets || sl_front_proto(&f) == SL_PROTO_TCP;
	if (a->control && drops == SL_MAY_NOT_DROP)
		return 1; /* the queue classifies it again, counts and polices it */
	sl_count_rule_per_cpu(request, choice.rule);
	sl_count_and_police(a, request, drops, t);
	return 1;
}

static __always_inline struct sl_admission sl_admit_skb(struct __sk_buff *skb, s32 handed, u32 direction,
							enum sl_drop_policy drops, struct sl_tables *t)
{
	struct sl_request request = {
		.now_ns = bpf_ktime_get_ns(), .direction = (u8)direction, .bytes = skb->len, .pkts = sl_segments(skb)
	};
	struct sl_admission a = {};
	struct sl_headers *h;

	if (handed < 0 && sl_admit_plain(&a, (void *)(long)skb->data, (void *)(long)skb->data_end, &request, drops, t))
		return a;
	h = sl_headers_before();
	if (!h)
		return a;
	if (sl_must_parse(t, handed)) {
		sl_headers_init(h, skb->vlan_present ? skb->vlan_tci : SL_NO_TAG, skb->mark, skb->ingress_ifindex);
		sl_parse_frame(skb, t->fields, h);
	}
	return sl_admit(h, handed, &request, drops, t);
}
