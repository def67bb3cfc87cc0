/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The class of a packet at its queue: the one that was handed on, else from its first words, else by parsing it. */
#pragma once
#include "departing_hosts.h"
#include "headers.h"
#include "plain.h"
#include "police.h"

#define SL_CLASS_UNKNOWN 0xff

/*
 * The class that was handed on. Negative: the packet is to be classified here. A class that our own hook has just handed to this queue is
 * believed; a packet that departs without such a hook is believed a class from an arrival hook of ours alone.
 */
static __always_inline s32 sl_class_before(const struct sl_tables *t, const struct sk_buff *skb, u32 direction)
{
	if (direction == SL_INGRESS || sl_split_ifb)
		return sl_handed_class(t, skb->tc_index);
	return sl_forwarded_class(t, skb->tc_index, (u32)skb->skb_iif);
}

/*
 * Whether the flow of a plain packet is read together with its class: another packet waits, and some class queues by flow. Otherwise
 * sl_identify reads the flow when it is needed.
 */
static __always_inline int sl_flow_is_read_now(const struct sl_sched *s)
{
	return s->backlog_pkts && s->flow_classes_set;
}

/*
 * Whether a departing packet whose class was handed on is looked at all the same: where flows of its class are limited, the flow needs its entry
 * in this direction. The splitter's hook has made it where there is one.
 */
static __always_inline int sl_needs_entry(const struct sl_tables *t, u32 direction, s32 before)
{
	return before >= 0 && !sl_split_ifb && direction == SL_EGRESS && sl_unlikely(sl_flows_are_limited(t, (u32)before));
}

/* The headers of a packet at its queue, parsed. */
static __always_inline struct sl_headers *sl_parse_queued(struct sk_buff *skb, u32 fields)
{
	struct sl_headers *h = sl_headers_at_hand(skb->vlan_proto ? skb->vlan_tci : SL_NO_TAG, skb->mark, (u32)skb->skb_iif);
	u16 type = sl_l3_type ? __builtin_bswap16(skb->protocol) : 0;
	/* sl_parse reads the front in place. */
	int has_front = !type && SL_FRONT + SL_FRONT_BYTES <= skb->len - skb->data_len;

	if (h)
		sl_parse(skb, has_front ? skb->data + SL_FRONT : NULL, type, fields, h);
	return h;
}

/* Sets the flow and the ECN of a packet at its queue. */
static __always_inline void sl_request_queued_flow(struct sl_request *d, const struct sl_headers *h)
{
	d->ecn = (u8)sl_ecn(h);
	d->flags |= SL_FLOW_IS_SET;
	sl_request_flow(d, h);
}

/* Sets the flow and the ECN of a plain packet; reads f->addresses, which sl_read_plain leaves out. */
static __always_inline void sl_request_queued_plain_flow(struct sk_buff *skb, struct sl_request *d, struct sl_front *f)
{
	f->addresses = sl_word_at(skb, SL_FRONT_ADDRESSES);
	d->ecn = (u8)sl_front_ecn(f);
	d->flags |= SL_FLOW_IS_SET;
	sl_request_plain_flow(d, f);
}

/*
 * Parses a packet and returns its class; -1 - class: the packet is to be dropped. The packet has no class yet (d->class is SL_CLASS_UNKNOWN), or
 * its flow needs an entry (sl_needs_entry).
 */
SL_GLOBAL s32 sl_class_by_headers(struct sk_buff *skb __arg_trusted, const struct sl_sched *s SL_NONNULL,
				  const struct sl_tables *t SL_NONNULL, struct sl_request *d SL_NONNULL)
{
	s32 known = d->class == SL_CLASS_UNKNOWN ? -1 : d->class;
	struct sl_headers *h = sl_parse_queued(skb, t->fields);
	struct sl_choice choice;

	if (!h)
		return 0;
	if (sl_keep_flows || s->flow_classes_set)
		sl_request_queued_flow(d, h);
	if (known >= 0 && !sl_needs_entry(t, d->direction, known))
		return known;
	choice = sl_classify(t, h, d);
	if (known >= 0)
		return known;
	sl_count_parsed(h, d->direction, choice.rule, d->pkts, d->bytes);
	if (sl_is_control(choice.rule))
		d->flags |= SL_CONTROL;
	return sl_is_malformed(h) && t->drop_malformed ? -1 - (s32)choice.class : (s32)choice.class;
}

/* Whether the queue charges the flow of a packet of this class, and so must know it. */
static __always_inline int sl_flow_is_limited_here(const struct sl_tables *t, u32 direction, s32 class)
{
	return direction == SL_EGRESS && sl_flows_are_limited(t, (u32) class);
}

/* Sets the flow of a packet whose class was handed on, and which the queue charges to its flow. The class, as sl_class_by_headers returns it. */
static __always_inline s32 sl_find_limited_flow(struct sk_buff *skb, const struct sl_sched *s, const struct sl_tables *t,
						struct sl_request *d, s32 class)
{
	struct sl_front f;

	d->class = (u8) class;
	if (sl_needs_entry(t, d->direction, class) || !sl_read_plain(&f, skb))
		return sl_class_by_headers(skb, s, t, d);
	sl_request_queued_plain_flow(skb, d, &f);
	return class;
}

/* Counts a hit of a rule in the instance that contains s, under the queue's lock. */
static __always_inline void sl_count_rule_at_queue(struct sl_sched *s, const struct sl_request *d, u32 rule)
{
	struct sl_instance *instance = (struct sl_instance *)s;

	if (rule < SL_RULE_COUNTS)
		sl_count_add(&instance->rule_counts[d->direction & 1][rule], d->pkts, d->bytes);
}

/* The class of a packet at its queue; -1 - class: it is to be dropped. */
static __always_inline s32 sl_class_at_queue(struct sk_buff *skb, struct sl_sched *s, const struct sl_tables *t,
					     struct sl_request *d)
{
	s32 before = sl_class_before(t, skb, d->direction);
	u32 in_table = sl_keep_flows;
	struct sl_choice choice;
	struct sl_front f;

	if (before >= 0)
		return sl_unlikely(sl_flow_is_limited_here(t, d->direction, before)) ? sl_find_limited_flow(skb, s, t, d, before)
										     : before;
	d->class = SL_CLASS_UNKNOWN;
	if (!sl_plain_method(t, in_table) || !sl_read_plain(&f, skb))
		return sl_class_by_headers(skb, s, t, d);
	if (in_table || sl_flow_is_read_now(s))
		sl_request_queued_plain_flow(skb, d, &f);
	if (!sl_choose_plain(t, &f, d, in_table, &choice))
		return sl_class_by_headers(skb, s, t, d);
	sl_count_rule_at_queue(s, d, choice.rule);
	return (s32)choice.class;
}

/* Sets flow, hosts and ECN in *p, for a class that queues by flow. Reads them from the packet unless *d has them. */
SL_GLOBAL int sl_identify(struct sk_buff *skb __arg_trusted, struct sl_request *d SL_NONNULL, struct sl_packet *p SL_NONNULL)
{
	struct sl_headers *h;
	struct sl_front f;
	u32 hosts = 0;
	u64 nfct;

	if (!(d->flags & SL_FLOW_IS_SET)) {
		if (sl_read_plain(&f, skb)) {
			sl_request_queued_plain_flow(skb, d, &f);
		} else {
			h = sl_parse_queued(skb, 0);
			if (!h)
				return 0;
			sl_request_queued_flow(d, h);
		}
	}
	nfct = skb->_nfct;
	if (d->direction == SL_INGRESS)
		hosts = *(u32 *)&((struct qdisc_skb_cb *)skb->cb)->data[SL_CB_HOSTS];
	else if (nfct & ~SL_CT_INFO)
		hosts = sl_hosts_before_nat(nfct);

	p->flow_hash = d->hash;
	p->src_host = hosts ? hosts >> 16 : sl_packet_host(d->flow.src);
	p->dst_host = hosts ? hosts & 0xffff : sl_packet_host(d->flow.dst);
	p->ecn = d->ecn && sl_marks >> d->direction & 1 && sl_takes_marks(p->flow_hash, d->now_ns);
	return 0;
}

/* Makes of a packet that has arrived the request with which its hook has charged it to buckets. */
SL_GLOBAL int sl_request_on_arrival(struct sk_buff *skb __arg_trusted, const struct sl_tables *t SL_NONNULL,
				    struct sl_request *d SL_NONNULL)
{
	struct sl_headers *h;

	d->bytes = skb->len;
	d->flags = 0;
	if (!sl_flows_are_limited(t, d->class))
		return 0;
	h = sl_headers_at_hand(SL_NO_TAG, 0, 0);
	if (!h)
		return 0;
	sl_parse_any(skb, sl_l3_type ? __builtin_bswap16(skb->protocol) : 0, 0, h);
	sl_request_flow(d, h);
	return 0;
}
