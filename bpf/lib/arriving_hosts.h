/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Between which hosts an arriving packet passes, behind NAT. Conntrack has not seen it yet, so its connection is looked up, as
 * cake_update_flowkeys in sch_cake.c does.
 */
#pragma once
#include "hosts.h"

/* The start of struct bpf_ct_opts (net/netfilter/nf_conntrack_bpf.c), which every kernel takes. */
struct sl_ct_opts {
	s32 netns_id; /* -1: that of the packet */
	s32 error;
	u8 l4proto;
	u8 dir; /* out: which of the connection's two directions the packet has */
	u8 reserved[2];
};

/* Of the module nf_conntrack: there or not when the program is loaded. (Types must match for libbpf to find them.) */
struct nf_conn *bpf_skb_ct_lookup(struct __sk_buff *skb, struct bpf_sock_tuple *tuple, u32 tuple_bytes, struct sl_ct_opts *opts,
				  u32 opts_bytes) __ksym __weak;
void bpf_ct_release(struct nf_conn *connection) __ksym __weak;

static __always_inline u16 sl_tuple_host(const union nf_inet_addr *a)
{
	return sl_conntrack_host((u64)a->all[1] << 32 | a->all[0], (u64)a->all[3] << 32 | a->all[2]);
}

/* The connection of a TCP or UDP packet; NULL: conntrack knows none. */
static __always_inline struct nf_conn *sl_connection(struct __sk_buff *skb, const struct sl_headers *h, struct sl_ct_opts *opts)
{
	struct bpf_sock_tuple tuple;

	opts->l4proto = (u8)h->proto;
	if (!h->src[0] && !h->src[1] && h->src[2] == __builtin_bswap32(0xffff)) {
		tuple.ipv4.saddr = h->src[3];
		tuple.ipv4.daddr = h->dst[3];
		tuple.ipv4.sport = __builtin_bswap16(h->sport);
		tuple.ipv4.dport = __builtin_bswap16(h->dport);
		return bpf_skb_ct_lookup(skb, &tuple, sizeof(tuple.ipv4), opts, sizeof(*opts));
	}
	__builtin_memcpy(tuple.ipv6.saddr, h->src, sizeof(h->src));
	__builtin_memcpy(tuple.ipv6.daddr, h->dst, sizeof(h->dst));
	tuple.ipv6.sport = __builtin_bswap16(h->sport);
	tuple.ipv6.dport = __builtin_bswap16(h->dport);
	return bpf_skb_ct_lookup(skb, &tuple, sizeof(tuple.ipv6), opts, sizeof(*opts));
}

/* The hash of the source << 16 | that of the destination, as they are behind NAT; 0: conntrack does not know the packet's connection. */
static __always_inline u32 sl_hosts_behind_nat(struct __sk_buff *skb, const struct sl_headers *h)
{
	struct sl_ct_opts opts = { .netns_id = -1 };
	struct nf_conn *connection;
	u32 src, dst;

	if (!h->has_ports || (h->proto != SL_PROTO_TCP && h->proto != 17))
		return 0;
	connection = sl_connection(skb, h, &opts);
	if (!connection)
		return 0;
	/* The other direction's packets go from where this one goes to where this one comes from, and have the addresses there. */
	if (opts.dir) {
		src = sl_tuple_host(&connection->tuplehash[0].tuple.dst.u3);
		dst = sl_tuple_host(&connection->tuplehash[0].tuple.src.u3);
	} else {
		src = sl_tuple_host(&connection->tuplehash[1].tuple.dst.u3);
		dst = sl_tuple_host(&connection->tuplehash[1].tuple.src.u3);
	}
	bpf_ct_release(connection);
	return src << 16 | dst;
}
