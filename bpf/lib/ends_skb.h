/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The ends of a packet, of a tc program. Included after parse_skb.h; the includer defines sl_l3_type. */
#pragma once
#include "flow_hash.h"
#include "headers.h"

/* The ends of a packet's flow, and how it is to be routed. Addresses as four words in network order; IPv4 as ::ffff:a.b.c.d. */
struct sl_skb_ends {
	u32 src[4];
	u32 dst[4];
	u32 flow_hash; /* as at the queue */
	u16 sport, dport; /* in network order */
	u8 proto;
	u8 tos;
	u16 pad;
};

/* Sets the ends of a plain packet. Returns 0 if it is not one. */
static __always_inline int sl_plain_ends(struct __sk_buff *skb, struct sl_skb_ends *e)
{
	struct sl_front f;

	if (!sl_read_plain(&f, (void *)(long)skb->data, (void *)(long)skb->data_end))
		return 0;
	e->flow_hash = sl_plain_addresses(&f, e->src, e->dst);
	e->sport = (u16)(f.rest >> 32);
	e->dport = (u16)(f.rest >> 48);
	e->proto = (u8)sl_front_proto(&f);
	e->tos = (u8)(f.head >> 24);
	return 1;
}

/* Sets the ends of a packet of any kind. Returns 0 if it is not IP. */
SL_GLOBAL int sl_any_ends(struct __sk_buff *skb, struct sl_skb_ends *e SL_NONNULL)
{
	struct sl_headers *h = sl_headers_at_hand(SL_NO_TAG, 0, 0);
	struct sl_flow_key key = {};

	if (!e || !h)
		return 0;
	sl_parse_frame(skb, 0, h);
	if (!h->is_ip)
		return 0;
	__builtin_memcpy(e->src, h->src, 16);
	__builtin_memcpy(e->dst, h->dst, 16);
	sl_flow_key(&key, h, SL_EGRESS);
	e->flow_hash = sl_flow_hash(&key);
	e->sport = key.sport;
	e->dport = key.dport;
	e->proto = (u8)h->proto;
	e->tos = (u8)(h->dscp << 2);
	return 1;
}
