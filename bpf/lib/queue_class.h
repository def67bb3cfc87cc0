/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The class of a packet at its queue: the one that was handed on, else from its first words, else by parsing it. */
#pragma once
#include "departing_hosts.h"
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

/* The classes in which a packet that comes now must have its flow told. One that comes alone need not. */
static __always_inline u64 sl_flow_classes_now(const struct sl_sched *s)
{
	return s->backlog_pkts ? s->flow_classes_set : 0;
}

/*
 * Whether a departing packet whose class was handed on is looked at all the same: where flows of its class are limited, the flow needs its entry
 * in this direction. The splitter's hook has made it where there is one.
 */
static __always_inline int sl_needs_entry(const struct sl_tables *t, u32 direction, s32 before)
{
	return before >= 0 && !sl_split_ifb && direction == SL_EGRESS && sl_unlikely(sl_flows_are_limited(t, (u32)before));
}

/* Reads a word of the linear part. The kernel checks the address of each such read, so it costs about eight instructions. */
static __always_inline u64 sl_word_at(const struct sk_buff *skb, u32 off)
{
	return *(const volatile u64 *)(skb->data + off);
}

/* Whether a packet is plain. If it is, sets *f except f->addresses. */
static __always_inline int sl_read_plain(struct sl_front *f, const struct sk_buff *skb)
{
	if (sl_l3_type || SL_FRONT + SL_FRONT_BYTES > skb->len - skb->data_len)
		return 0;
	f->head = sl_word_at(skb, SL_FRONT_HEAD);
	f->middle = sl_word_at(skb, SL_FRONT_MIDDLE);
	f->rest = sl_word_at(skb, SL_FRONT_REST);
	return sl_is_plain(f);
}

/* Parses the headers of a packet at its queue. */
static __always_inline void sl_parse_queued(struct sk_buff *skb, u32 fields, struct sl_headers *h)
{
	u16 type = sl_l3_type ? __builtin_bswap16(skb->protocol) : 0;
	/* The front is read where it is. */
	int has_front = !type && SL_FRONT + SL_FRONT_BYTES <= skb->len - skb->data_len;

	sl_headers_init(h, skb->vlan_proto ? skb->vlan_tci : SL_NO_TAG, skb->mark, (u32)skb->skb_iif);
	sl_parse(skb, has_front ? skb->data + SL_FRONT : NULL, type, fields, h);
}

/* Sets the flow of a packet and what it says of congestion. */
static __always_inline void sl_request_queued_flow(struct sl_request *d, const struct sl_headers *h)
{
	d->ecn = (u8)sl_ecn(h);
	d->flags |= SL_FLOW_IS_SET;
	sl_request_flow(d, h);
}

/* The same of a plain packet, of which all but f->addresses is known. */
static __always_inline void sl_request_queued_plain_flow(struct sk_buff *skb, struct sl_request *d, struct sl_front *f)
{
	f->addresses = sl_word_at(skb, SL_FRONT_ADDRESSES);
	d->ecn = (u8)sl_front_ecn(f);
	d->flags |= SL_FLOW_IS_SET;
	sl_request_plain_flow(d, f);
}

/*
 * The class of a packet whose headers must be parsed: it has none yet (d->class is SL_CLASS_UNKNOWN), or its flow must be known. Sets
 * what the packet itself says in *d. -1 - class: the packet is to be dropped.
 */
SL_GLOBAL s32 sl_class_by_headers(struct sk_buff *skb __arg_trusted, const struct sl_sched *s SL_NONNULL,
				  const struct sl_tables *t SL_NONNULL, struct sl_request *d SL_NONNULL)
{
	struct sl_choice choice = { .class = d->class, .rule = SL_RULE_NONE };
	struct sl_headers h;

	sl_parse_queued(skb, t->fields, &h);
	if (sl_keep_flows || s->flow_classes_set)
		sl_request_queued_flow(d, &h);
	if (d->class == SL_CLASS_UNKNOWN) {
		choice = sl_classify(t, &h, d);
		sl_count_parsed(&h, d->direction, choice.rule, d->pkts, d->bytes);
		if (sl_is_control(choice.rule))
			d->flags |= SL_CONTROL;
		if (sl_is_malformed(&h) && t->drop_malformed)
			return -1 - (s32)choice.class;
	} else if (sl_needs_entry(t, d->direction, d->class)) {
		sl_classify(t, &h, d);
	}
	return (s32)choice.class;
}

/* Counts a packet as one that this rule has chosen, under the queue's lock. s: of an instance. */
static __always_inline void sl_count_rule_here(struct sl_sched *s, const struct sl_request *d, u32 rule)
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

	if (before >= 0 && !sl_needs_entry(t, d->direction, before))
		return before;
	d->class = (u8)before;
	if (before >= 0 || !sl_way_of_plain(t, in_table) || !sl_read_plain(&f, skb))
		return sl_class_by_headers(skb, s, t, d);
	if (in_table || sl_flow_classes_now(s))
		sl_request_queued_plain_flow(skb, d, &f);
	if (!sl_choose_plain(t, &f, d, in_table, &choice))
		return sl_class_by_headers(skb, s, t, d);
	sl_count_rule_here(s, d, choice.rule);
	return (s32)choice.class;
}

/* Finds the flow and hosts of a packet, for classes that queue by flow. */
SL_GLOBAL int sl_identify(struct sk_buff *skb __arg_trusted, struct sl_request *d SL_NONNULL, struct sl_packet *p SL_NONNULL)
{
	struct sl_headers h;
	struct sl_front f;
	u32 hosts = 0;
	u64 nfct;

	if (!(d->flags & SL_FLOW_IS_SET)) {
		if (sl_read_plain(&f, skb)) {
			sl_request_queued_plain_flow(skb, d, &f);
		} else {
			sl_parse_queued(skb, 0, &h);
			sl_request_queued_flow(d, &h);
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
	struct sl_headers h;

	d->bytes = skb->len;
	d->flags = 0;
	if (!sl_flows_are_limited(t, d->class))
		return 0;
	sl_headers_init(&h, SL_NO_TAG, 0, 0);
	sl_parse_any(skb, sl_l3_type ? __builtin_bswap16(skb->protocol) : 0, 0, &h);
	sl_request_flow(d, &h);
	return 0;
}
