/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Where a packet goes: the routing table of the kernel, asked as the kernel would ask it for a packet that is forwarded. */
#pragma once
#include "forward_packet.h"

enum sl_way {
	SL_WAY_OUT, /* by params->ifindex; its neighbour is known */
	SL_WAY_NEIGHBOUR, /* likewise; the kernel must ask for the neighbour's address */
	SL_WAY_LOCAL, /* it is for this host */
	SL_WAY_NARROW, /* longer than the way takes: params->tot_len is what it takes */
	SL_WAY_UP /* the stack decides, and answers with what errors there are */
};

/* The way of a packet with these addresses and ports, which came in where ifindex says. */
static __always_inline u32 sl_route(struct __sk_buff *skb, const struct sl_forwardable *f, const struct sl_tuple *t, u32 ifindex,
				    struct bpf_fib_lookup *params)
{
	/* Each segment of a super-packet has all headers, with TCP's options. */
	u32 header = f->tuple.proto == 6 ? f->ip_bytes - f->segment.bytes : f->l4 - f->l3 + 8;

	__builtin_memset(params, 0, sizeof(*params));
	params->l4_protocol = (u8)t->proto;
	params->sport = t->sport;
	params->dport = t->dport;
	params->ifindex = ifindex;
	params->tot_len = (u16)(skb->gso_size ? skb->gso_size + header : f->ip_bytes);
	if (f->ipv6) {
		params->family = AF_INET6;
		__builtin_memcpy(params->src, &t->src, 16);
		__builtin_memcpy(params->dst, &t->dst, 16);
	} else {
		params->family = AF_INET;
		params->tos = f->tos;
		params->src[0] = t->src.address[3];
		params->dst[0] = t->dst.address[3];
	}
	switch (bpf_fib_lookup(skb, params, sizeof(*params), 0)) {
	case BPF_FIB_LKUP_RET_SUCCESS:
		return SL_WAY_OUT;
	case BPF_FIB_LKUP_RET_NO_NEIGH:
		return SL_WAY_NEIGHBOUR;
	case BPF_FIB_LKUP_RET_FRAG_NEEDED:
		return SL_WAY_NARROW;
	case BPF_FIB_LKUP_RET_NOT_FWDED:
		return SL_WAY_LOCAL;
	}
	return SL_WAY_UP;
}

/*
 * Whether the client of a packet can be where it came from, as the kernel asks it of packets that it forwards (fib_validate_source): there is a way
 * back to it; and if `strict`, by the same interface. A function of its own for its stack.
 */
SL_GLOBAL int sl_source_is_there(struct __sk_buff *skb, struct sl_forwardable *f SL_NONNULL, u32 strict)
{
	struct bpf_fib_lookup params;
	struct sl_tuple back;
	u32 way;

	if (!f || sl_end_is_martian(&f->tuple.src))
		return 0;
	tuple_reverse(&back, &f->tuple);
	way = sl_route(skb, f, &back, skb->ingress_ifindex, &params);
	return way <= SL_WAY_NEIGHBOUR || way == SL_WAY_NARROW ? !strict || params.ifindex == skb->ingress_ifindex
							       : way == SL_WAY_UP;
}

/* Sends a packet that has been rewritten. Returns the verdict of a tc program. */
static __always_inline int sl_send(struct __sk_buff *skb, const struct sl_forwardable *f, u32 way, struct bpf_fib_lookup *params)
{
	u16 type = f->ipv6 ? __builtin_bswap16(SL_ETH_IPV6) : __builtin_bswap16(SL_ETH_IPV4);
	struct bpf_redir_neigh next = {};
	u8 macs[12];

	/* The kernel takes the header off again where the way out has none. */
	if (!f->l3 && (bpf_skb_change_head(skb, SL_ETH_BYTES, 0) || bpf_skb_store_bytes(skb, 12, &type, 2, 0)))
		return TC_ACT_SHOT;
	if (way == SL_WAY_OUT) {
		__builtin_memcpy(macs, params->dmac, 6);
		__builtin_memcpy(macs + 6, params->smac, 6);
		if (bpf_skb_store_bytes(skb, 0, macs, 12, 0))
			return TC_ACT_SHOT;
		return (int)bpf_redirect(params->ifindex, 0);
	}
	next.nh_family = params->family;
	__builtin_memcpy(next.nh, params->dst, 16);
	return (int)bpf_redirect_neigh(params->ifindex, &next, sizeof(next), 0);
}
