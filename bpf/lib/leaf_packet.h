/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* A packet at the queue of a tree: the addresses that tell its leaf, its flow and its hosts. */
#pragma once
#include "departing_hosts.h"
#include "ends.h"
#include "flow_hash.h"
#include "headers.h"
#include "marks.h"
#include "queue.h"
#include "../../sched/packet.h"

/* Source and destination of a packet, as four words in network order (IPv4 as ::ffff:a.b.c.d), and what does not change with the source. */
struct sl_ends {
	u32 src[4];
	u32 dst[4];
	u32 flow_hash; /* as the hook before the queue has it, which pays marks */
	u32 ecn;
	u32 vlan; /* of a tag in the packet; 0: there is none */
};

/* Sets the ends of a plain packet. Returns 0 if it is not one. */
static __always_inline int sl_read_plain_ends(const struct sk_buff *skb, struct sl_ends *e)
{
	struct sl_front f;

	if (!sl_read_plain(&f, skb))
		return 0;
	f.addresses = sl_word_at(skb, SL_FRONT_ADDRESSES);
	e->flow_hash = sl_plain_addresses(&f, e->src, e->dst);
	e->ecn = sl_front_ecn(&f);
	e->vlan = 0;
	return 1;
}

/* Sets the ends of a packet of any kind. A packet that is not IP has addresses of zeroes. */
SL_GLOBAL int sl_read_ends(struct sk_buff *skb __arg_trusted, struct sl_ends *e SL_NONNULL)
{
	u16 type = sl_l3_type ? __builtin_bswap16(skb->protocol) : 0;
	int has_front = !type && SL_FRONT + SL_FRONT_BYTES <= skb->len - skb->data_len;
	struct sl_headers *h = sl_headers_at_hand(SL_NO_TAG, 0, 0);
	struct sl_flow_key key = {};

	if (!h)
		return 0;
	sl_parse(skb, has_front ? skb->data + SL_FRONT : NULL, type, 0, h);
	__builtin_memcpy(e->src, h->src, 16);
	__builtin_memcpy(e->dst, h->dst, 16);
	sl_flow_key(&key, h, SL_EGRESS);
	e->flow_hash = sl_flow_hash(&key);
	e->ecn = sl_ecn(h);
	e->vlan = h->vlan == SL_NO_VLAN ? 0 : h->vlan;
	return 0;
}

/*
 * Sets the source of a packet to the one that it had before it was translated, if it was. So a packet that departs towards the internet tells its
 * subscriber. One that departs towards the subscriber has the subscriber's own address as its destination already.
 */
SL_GLOBAL int sl_source_before_nat(u64 nfct, struct sl_ends *e SL_NONNULL)
{
	const void *connection = sl_translated_connection(nfct);
	u32 src = sl_source_offset(nfct);
	u64 high, low;

	if (!e || !connection)
		return 0;
	high = *(const u64 *)(connection + src);
	low = *(const u64 *)(connection + src + 8);
	sl_end_of_conntrack(e->src, high, low);
	return 0;
}

/* The hash of an address by the key of the interface. */
static __always_inline u16 sl_end_hash(const u32 *address)
{
	return sl_host_hash(address[0] | (u64)address[1] << 32, address[2] | (u64)address[3] << 32);
}

/* Sets flow and hosts of a packet between these ends. */
static __always_inline void sl_identify_ends(const struct sl_ends *e, struct sl_packet *p)
{
	p->flow_hash = e->flow_hash;
	if (!e->src[0] && !e->src[1] && !e->dst[0] && !e->dst[1] && e->src[2] == SL_MAPPED && e->dst[2] == SL_MAPPED) {
		p->src_host = sl_ipv4_host_hash(e->src[3]);
		p->dst_host = sl_ipv4_host_hash(e->dst[3]);
		return;
	}
	p->src_host = sl_end_hash(e->src);
	p->dst_host = sl_end_hash(e->dst);
}
