/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Where a packet goes: the routing table of the kernel, asked as the kernel would ask it for a packet that is forwarded. */
#pragma once
#include "forward_packet.h"
#include "forward_tables.h"
#include "../../forward/translation.h"

enum sl_way {
	SL_WAY_OUT, /* by hop->ifindex; its neighbour is known */
	SL_WAY_NEIGHBOUR, /* likewise; the kernel must ask for the neighbour's address */
	SL_WAY_LOCAL, /* it is for this host */
	SL_WAY_NARROW, /* longer than the way takes: hop->mtu is what it takes */
	SL_WAY_UP /* the stack decides, and answers with what errors there are */
};

/* Bytes of a packet as it leaves, or of each segment of a super-packet, which has all headers, with TCP's options. */
static __always_inline u32 sl_bytes_sent(struct __sk_buff *skb, const struct sl_forwardable *f)
{
	u32 header = f->tuple.proto == 6 ? f->ip_bytes - f->segment.bytes : f->l4 - f->l3 + 8;

	return skb->gso_size ? skb->gso_size + header : f->ip_bytes;
}

/* The next hop of a packet. */
struct sl_hop {
	u32 ifindex; /* of the way out */
	u16 mtu; /* the longest packet that may arrive for this way */
	u16 family; /* SL_WAY_NEIGHBOUR: of its address */
	union {
		u32 address[4];
		struct {
			u32 macs[3]; /* SL_WAY_OUT: destination and source, as a frame has them */
			u32 short_cut; /* nothing is scheduled there, and the packet may go into the veth's peer at once */
		};
	};
};

/* The way of a packet with these addresses and ports, which came in where ifindex says. */
static __always_inline u32 sl_route(struct __sk_buff *skb, const struct sl_forwardable *f, const struct sl_tuple *t, u32 ifindex,
				    struct sl_hop *hop)
{
	/* What translation adds. */
	s32 longer = (s32)(SL_FAMILY_BYTES + sl_fragment_bytes(f)), more = !sl_crosses(f, t) ? 0 : f->ipv6 ? -longer : longer;
	struct bpf_fib_lookup params = {};
	long found;

	params.l4_protocol = (u8)t->proto;
	params.sport = t->sport;
	params.dport = t->dport;
	params.ifindex = ifindex;
	params.tot_len = (u16)(sl_bytes_sent(skb, f) + more);
	if (!sl_end_is_ipv4(&t->dst)) {
		params.family = AF_INET6;
		__builtin_memcpy(params.src, &t->src, 16);
		__builtin_memcpy(params.dst, &t->dst, 16);
	} else {
		params.family = AF_INET;
		params.tos = f->tos;
		params.src[0] = t->src.address[3];
		params.dst[0] = t->dst.address[3];
	}
	found = bpf_fib_lookup(skb, &params, sizeof(params), 0);
	hop->ifindex = params.ifindex;
	more = params.tot_len - more; /* the kernel has put the MTU there */
	hop->mtu = (u16)sl_max(sl_min(more, (s32)SL_LONGEST_PACKET), 0);
	hop->family = params.family;
	switch (found) {
	case BPF_FIB_LKUP_RET_SUCCESS:
		__builtin_memcpy(hop->macs, params.dmac, 6);
		__builtin_memcpy((u8 *)hop->macs + 6, params.smac, 6);
		hop->short_cut = 0;
		return SL_WAY_OUT;
	case BPF_FIB_LKUP_RET_NO_NEIGH:
		__builtin_memcpy(hop->address, params.dst, 16);
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
	struct sl_tuple back;
	struct sl_hop hop;
	u32 way;

	if (!f || sl_end_is_martian(&f->tuple.src))
		return 0;
	tuple_reverse(&back, &f->tuple);
	way = sl_route(skb, f, &back, skb->ingress_ifindex, &hop);
	return way <= SL_WAY_NEIGHBOUR || way == SL_WAY_NARROW ? !strict || hop.ifindex == skb->ingress_ifindex
							       : way == SL_WAY_UP;
}

/*
 * Ways that a CPU remembers, by a keyed hash of addresses and ports, and for how long: so much later a change of routes or neighbours counts. No
 * connection is over after so short a silence.
 */
#define SL_KNOWN_WAYS 1024u
#define SL_WAY_TICKS  64u

/* The way of the packets from a side of a connection, as of one that was sent on at once. Two cache lines. */
struct sl_known_way {
	struct sl_tuple from; /* addresses and ports as the packets arrive */
	struct sl_tuple to; /* and as they leave */
	u32 change; /* sl_address_change from these to those */
	u32 number; /* of the connection */
	u32 state; /* its state's word: another connection has another serial */
	u32 tick; /* when the routes said so */
	u32 ingress; /* ifindex */
	u8 side; /* enum sl_side */
	u8 dscp; /* routes know no ECN */
	u8 crosses; /* into the other family: sl_pass_on sends them */
	u8 pad;
	struct sl_hop hop;
};

/* Interfaces with a hook on departure, where packets get the source that they did not get on arrival. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, u32); /* ifindex */
	__type(value, u32); /* enum sl_departure */
	__uint(max_entries, SL_ARRIVALS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
} departures SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, u32);
	__type(value, struct sl_known_way);
	__uint(max_entries, SL_KNOWN_WAYS);
} known_ways SEC(".maps");

/* The place where the way of packets with these addresses and ports is remembered. */
static __always_inline struct sl_known_way *sl_known_way(const struct sl_forwardable *f)
{
	u32 place = f->hash & (SL_KNOWN_WAYS - 1);

	return bpf_map_lookup_elem(&known_ways, &place);
}

/* Whether a remembered way is that of a packet, and was a moment ago. Its connection may have changed since. */
static __always_inline int sl_is_way_of(struct __sk_buff *skb, const struct sl_known_way *known, const struct sl_forwardable *f)
{
	return tuples_are_equal(&known->from, &f->tuple) && f->tick - known->tick < SL_WAY_TICKS &&
	       known->ingress == skb->ingress_ifindex && known->dscp == f->tos >> 2 && sl_bytes_sent(skb, f) <= known->hop.mtu;
}

/*
 * The way of a packet from a side of a connection, which leaves as `to`: of the last one, if that was a moment ago, else of the routes. state: the word
 * of the connection's state.
 */
static __always_inline u32 sl_route_of_side(struct __sk_buff *skb, const struct sl_forwardable *f, const struct sl_tuple *to,
					    u32 number, u32 state, u32 side, struct sl_hop *hop)
{
	struct sl_known_way *known = sl_known_way(f);
	/* A fragment takes another length in translation than its connection's packets do, so it is no model for them. */
	u32 way, *departure, alike = !sl_crosses(f, to) || !sl_fragment_bytes(f);

	if (!known)
		return SL_WAY_UP;
	if (alike && known->number == number && known->state == state && sl_is_way_of(skb, known, f)) {
		*hop = known->hop;
		return SL_WAY_OUT;
	}
	way = sl_route(skb, f, to, skb->ingress_ifindex, hop);
	if (way != SL_WAY_OUT)
		return way;
	departure = bpf_map_lookup_elem(&departures, &hop->ifindex);
	hop->short_cut = f->l3 && departure && *departure == SL_DEPARTS_BY_PEER;
	if (!alike)
		return way;
	known->from = f->tuple;
	known->to = *to;
	known->change = sl_address_change(f, to);
	known->number = number;
	known->state = state;
	known->side = (u8)side;
	known->tick = f->tick;
	known->ingress = skb->ingress_ifindex;
	known->dscp = f->tos >> 2;
	known->crosses = (u8)sl_crosses(f, to);
	known->hop = *hop;
	return SL_WAY_OUT;
}

static __always_inline void sl_copy_macs(u32 *to, const u32 *from)
{
	to[0] = from[0];
	to[1] = from[1];
	to[2] = from[2];
}

/* Sends a packet that has been rewritten. Returns the verdict of a tc program. */
static __always_inline int sl_send(struct __sk_buff *skb, const struct sl_forwardable *f, u32 way, const struct sl_hop *hop)
{
	u16 type = f->ipv6 ? __builtin_bswap16(SL_ETH_IPV6) : __builtin_bswap16(SL_ETH_IPV4);
	struct bpf_redir_neigh next = {};
	u8 *p;

	/* The kernel takes the header off again where the way out has none. */
	if (!f->l3 && (bpf_skb_change_head(skb, SL_ETH_BYTES, 0) || bpf_skb_store_bytes(skb, 12, &type, 2, 0)))
		return TC_ACT_SHOT;
	if (way == SL_WAY_OUT) {
		p = (void *)(long)skb->data;
		if ((void *)(p + SL_ETH_BYTES) > (void *)(long)skb->data_end)
			return TC_ACT_SHOT;
		sl_copy_macs((u32 *)p, hop->macs);
		if (!hop->short_cut)
			return (int)bpf_redirect(hop->ifindex, 0);
		skb->mark = skb->priority = skb->tc_index = 0; /* as a veth clears them on the way */
		return (int)bpf_redirect_peer(hop->ifindex, 0);
	}
	next.nh_family = hop->family;
	__builtin_memcpy(next.nh, hop->address, 16);
	return (int)bpf_redirect_neigh(hop->ifindex, &next, sizeof(next), 0);
}
