/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Errors of ICMP (RFC 792) and ICMPv6 (RFC 4443) about packets of connections: those that come from elsewhere are translated as the packets are that
 * they quote, and those that a router would send about a packet are made from it as it arrived.
 */
#pragma once
#include "forward_packet.h"
#include "forward_route.h"
#include "forward_tables.h"
#include "../../abi/classifier.h"

#define SL_ICMP_BYTES 8

/* An error, and where the packet that it quotes begins. */
struct sl_error {
	struct sl_tuple quoted;
	struct sl_end src; /* of the error itself */
	struct sl_end dst;
	u32 l3;
	u32 l4; /* the ICMP header */
	u32 inner_l3;
	u32 inner_l4;
	u8 ipv6;
	u8 ttl;
	u8 hops; /* that this host counts for */
};

static __always_inline int sl_is_error_type(u32 type, u32 ipv6)
{
	/* Destination unreachable, time exceeded, parameter problem; and of ICMPv6 packet too big. */
	return ipv6 ? type >= 1 && type <= 4 : type == 3 || type == 11 || type == 12;
}

/* Reads an error of IPv4. */
static __always_inline int sl_read_error_ipv4(struct __sk_buff *skb, struct sl_error *e)
{
	u32 header;
	const u8 *p;

	/* Without options: nobody sends errors with them. */
	e->l4 = e->l3 + 20;
	e->inner_l3 = e->l4 + SL_ICMP_BYTES;
	if (!sl_reach(skb, e->inner_l3 + 20))
		return 0;
	p = (void *)(long)skb->data + e->l3;
	sl_opaque(p);
	if ((void *)(p + 48) > (void *)(long)skb->data_end || p[0] != 0x45 || p[9] != 1 || sl_be16(p + 6) & 0x3fff ||
	    !sl_is_error_type(p[20], 0))
		return 0;
	e->ttl = p[8];
	sl_end_of_ipv4(&e->src, sl_raw32(p + 12));
	sl_end_of_ipv4(&e->dst, sl_raw32(p + 16));
	p += 28;
	header = (p[0] & 15) * 4;
	if (p[0] >> 4 != 4 || header < 20 || sl_be16(p + 6) & 0x1fff)
		return 0;
	e->quoted.proto = p[9];
	sl_end_of_ipv4(&e->quoted.src, sl_raw32(p + 12));
	sl_end_of_ipv4(&e->quoted.dst, sl_raw32(p + 16));
	e->inner_l4 = e->inner_l3 + header;
	return 1;
}

static __always_inline int sl_read_error_ipv6(struct __sk_buff *skb, struct sl_error *e)
{
	const u8 *p;

	e->ipv6 = 1;
	e->l4 = e->l3 + SL_IPV6_BYTES;
	e->inner_l3 = e->l4 + SL_ICMP_BYTES;
	e->inner_l4 = e->inner_l3 + SL_IPV6_BYTES;
	if (!sl_reach(skb, e->inner_l4))
		return 0;
	p = (void *)(long)skb->data + e->l3;
	sl_opaque(p);
	if ((void *)(p + 88) > (void *)(long)skb->data_end || p[0] >> 4 != 6 || p[6] != 58 || !sl_is_error_type(p[40], 1))
		return 0;
	e->ttl = p[7];
	__builtin_memcpy(&e->src, p + 8, 16);
	__builtin_memcpy(&e->dst, p + 24, 16);
	p += 48;
	e->quoted.proto = p[6];
	__builtin_memcpy(&e->quoted.src, p + 8, 16);
	__builtin_memcpy(&e->quoted.dst, p + 24, 16);
	return 1;
}

/* Whether the packet is an error about a packet of TCP or UDP; sets *e. */
static __always_inline int sl_read_error(struct __sk_buff *skb, u32 l3, struct sl_error *e)
{
	u16 protocol = __builtin_bswap16((u16)skb->protocol);
	u16 ports[2];

	e->l3 = l3;
	if (protocol == SL_ETH_IPV4 ? !sl_read_error_ipv4(skb, e) : protocol != SL_ETH_IPV6 || !sl_read_error_ipv6(skb, e))
		return 0;
	if ((e->quoted.proto != 6 && e->quoted.proto != 17) || bpf_skb_load_bytes(skb, e->inner_l4, ports, 4))
		return 0;
	e->quoted.sport = ports[0];
	e->quoted.dport = ports[1];
	return 1;
}

/*
 * Writes an error anew: from and to these addresses, about a packet with `quoted`. Of the quoted packet's own checksums, that of its IPv4 header is
 * kept right.
 */
SL_GLOBAL int sl_rewrite_error(struct __sk_buff *skb, struct sl_error *e SL_NONNULL, struct sl_tuple *quoted SL_NONNULL,
			       struct sl_tuple *outer SL_NONNULL)
{
	u32 old_ports, ports;
	s64 inner, header;
	u8 ttl;

	if (!e || !quoted || !outer || e->l3 > 64 || e->inner_l4 > 256)
		return -1;
	ports = quoted->sport | (u32)quoted->dport << 16;
	old_ports = e->quoted.sport | (u32)e->quoted.dport << 16;
	ttl = e->ttl - e->hops;
	if (e->ipv6) {
		inner = bpf_csum_diff((u32 *)&e->quoted.src, 32, (u32 *)&quoted->src, 32, 0);
		header = bpf_csum_diff((u32 *)&e->src, 32, (u32 *)&outer->src, 32, 0);
		/* The sum of ICMPv6 has the addresses of the packet, and those that it quotes. */
		if (inner < 0 || header < 0 || bpf_l4_csum_replace(skb, e->l4 + 2, 0, (u64)header, BPF_F_PSEUDO_HDR) ||
		    bpf_l4_csum_replace(skb, e->l4 + 2, 0, (u64)inner, 0) ||
		    bpf_l4_csum_replace(skb, e->l4 + 2, old_ports, ports, 4) || sl_write_ipv6(skb, e->l3, outer, ttl) ||
		    bpf_skb_store_bytes(skb, e->inner_l3 + 8, &quoted->src, 32, 0))
			return -1;
	} else {
		u32 was[2] = { e->src.address[3], e->dst.address[3] }, is[2] = { outer->src.address[3], outer->dst.address[3] };
		u32 old[2] = { e->quoted.src.address[3], e->quoted.dst.address[3] };
		u32 new[2] = { quoted->src.address[3], quoted->dst.address[3] };
		u32 hops = e->ttl | 1 << 8, new_hops = ttl | 1 << 8;

		inner = bpf_csum_diff(old, 8, new, 8, 0);
		header = bpf_csum_diff(was, 8, is, 8, 0);
		header = header < 0 ? header : bpf_csum_diff(&hops, 4, &new_hops, 4, (u32)header);
		/* The sum of ICMP has the quoted addresses and the checksum of their header, whose changes cancel out. */
		if (inner < 0 || header < 0 || bpf_l3_csum_replace(skb, e->inner_l3 + 10, 0, (u64)inner, 0) ||
		    bpf_l4_csum_replace(skb, e->l4 + 2, old_ports, ports, 4) ||
		    bpf_l3_csum_replace(skb, e->l3 + 10, 0, (u64)header, 0) || bpf_skb_store_bytes(skb, e->l3 + 12, is, 8, 0) ||
		    bpf_skb_store_bytes(skb, e->l3 + 8, &ttl, 1, 0) || bpf_skb_store_bytes(skb, e->inner_l3 + 12, new, 8, 0))
			return -1;
	}
	return (int)bpf_skb_store_bytes(skb, e->inner_l4, &ports, 4, 0);
}

/* The fault of a packet, in the part of the control block that the hook's parts share. */
#define SL_CB_FAULT       0 /* bytes into the control block that programs may write: SL_FAULT_OLD, or the MTU of the way */
#define SL_FAULT_OLD      0u
#define SL_QUOTED         8u /* bytes of the transport header in an error */
#define SL_QUOTED_PARTIAL 20u
#define SL_ERROR_NS       1000000ULL /* errors that a CPU sends: one in this time, and so many at once */
#define SL_ERROR_BURST_NS (50 * SL_ERROR_NS)

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, u32);
	__type(value, struct sl_ration);
	__uint(max_entries, 1);
} error_ration SEC(".maps");

/* Whether this CPU may send an error. */
static __always_inline int sl_may_complain(u64 now_ns)
{
	u32 zero = 0;
	struct sl_ration *r = bpf_map_lookup_elem(&error_ration, &zero);

	if (!r || r->tat_ns > now_ns + SL_ERROR_BURST_NS)
		return 0;
	r->tat_ns = sl_max(r->tat_ns, now_ns) + SL_ERROR_NS;
	return 1;
}

static __always_inline u16 sl_folded(s64 sum)
{
	u32 s = (u32)sum;

	s = (s & 0xffff) + (s >> 16);
	return (u16) ~((s & 0xffff) + (s >> 16));
}

/* Headers of an error, and what it quotes. */
struct sl_complaint_ipv4 {
	u8 ip[20];
	u8 icmp[SL_ICMP_BYTES];
	u8 quoted[20 + SL_QUOTED_PARTIAL];
};

struct sl_complaint_ipv6 {
	u8 ip[SL_IPV6_BYTES];
	u8 icmp[SL_ICMP_BYTES];
	u8 quoted[SL_IPV6_BYTES + SL_QUOTED_PARTIAL];
};

/*
 * The checksum of TCP or UDP at this place of a quoted packet, as the device will have finished it: what an error says of its own sum must count
 * that.
 */
static __always_inline u16 sl_finished_sum(u8 *transport)
{
	return sl_folded(bpf_csum_diff(NULL, 0, (u32 *)transport, SL_QUOTED_PARTIAL, 0));
}

/*
 * Cuts a packet to what an error quotes. Returns how much of its transport header that is: more if its checksum is not finished, and no error may end
 * before it; 0 if that fails.
 */
static __always_inline u32 sl_cut(struct __sk_buff *skb, u32 l4)
{
	/* The kernel does not cut a checksum off that is to be finished. */
	if (bpf_skb_change_tail(skb, l4 + 6, 0))
		return bpf_skb_change_tail(skb, l4 + SL_QUOTED_PARTIAL, 0) ? 0 : SL_QUOTED_PARTIAL;
	return bpf_skb_change_tail(skb, l4 + SL_QUOTED, 0) ? 0 : SL_QUOTED;
}

/* Makes the packet an error about itself, from `from` to its sender. Returns 0 if it has become nothing of use. */
static __always_inline int sl_complain_ipv4(struct __sk_buff *skb, const struct sl_forwardable *f, u32 from, u32 mtu)
{
	struct sl_complaint_ipv4 c = {};
	u32 place = f->tuple.proto == 6 ? 36 : 26, quoted, bytes;
	u16 sum = 0, finished;

	if (f->l4 - f->l3 != 20 || bpf_skb_load_bytes(skb, f->l3, c.quoted, 28))
		return 0;
	quoted = sl_cut(skb, f->l4);
	if (!quoted || (quoted == SL_QUOTED_PARTIAL && bpf_skb_load_bytes(skb, f->l3, c.quoted, sizeof(c.quoted))) ||
	    bpf_skb_adjust_room(skb, 28, BPF_ADJ_ROOM_MAC, 0))
		return 0;
	bytes = 48 + quoted;
	c.ip[0] = 0x45;
	c.ip[1] = 0xc0; /* as Linux sends errors: internetwork control */
	c.ip[3] = (u8)bytes;
	c.ip[8] = 64;
	c.ip[9] = 1;
	__builtin_memcpy(c.ip + 12, &from, 4);
	__builtin_memcpy(c.ip + 16, &f->tuple.src.address[3], 4);
	c.icmp[0] = mtu ? 3 : 11;
	c.icmp[1] = mtu ? 4 : 0;
	c.icmp[6] = (u8)(mtu >> 8);
	c.icmp[7] = (u8)mtu;
	*(u16 *)(c.ip + 10) = sl_folded(bpf_csum_diff(NULL, 0, (u32 *)c.ip, 20, 0));
	if (quoted == SL_QUOTED_PARTIAL) {
		finished = sl_finished_sum(c.quoted + 20);
		__builtin_memcpy(&sum, c.quoted + place, 2);
		__builtin_memcpy(c.quoted + place, &finished, 2);
	}
	*(u16 *)(c.icmp + 2) = sl_folded(bpf_csum_diff(NULL, 0, (u32 *)c.icmp, sizeof(c.icmp) + sizeof(c.quoted), 0));
	if (quoted == SL_QUOTED_PARTIAL)
		__builtin_memcpy(c.quoted + place, &sum, 2);
	else
		return !bpf_skb_store_bytes(skb, f->l3, &c, sizeof(c) - SL_QUOTED_PARTIAL + SL_QUOTED, 0);
	return !bpf_skb_store_bytes(skb, f->l3, &c, sizeof(c), 0);
}

static __always_inline int sl_complain_ipv6(struct __sk_buff *skb, const struct sl_forwardable *f, const struct sl_end *from,
					    u32 mtu)
{
	struct sl_complaint_ipv6 c = {};
	u32 place = SL_IPV6_BYTES + (f->tuple.proto == 6 ? 16 : 6), quoted, bytes, pseudo[2];
	/* Of a first fragment, what says so is quoted as well. */
	u32 more = f->fragment == SL_FIRST_FRAGMENT ? SL_FRAGMENT_BYTES : 0;
	u16 sum = 0, finished;
	s64 all;

	if (bpf_skb_load_bytes(skb, f->l3, c.quoted, SL_IPV6_BYTES + SL_QUOTED) ||
	    (more && bpf_skb_load_bytes(skb, f->l4, c.quoted + SL_IPV6_BYTES + SL_FRAGMENT_BYTES, SL_QUOTED)))
		return 0;
	quoted = sl_cut(skb, f->l4);
	if (!quoted || (more && quoted != SL_QUOTED) ||
	    (quoted == SL_QUOTED_PARTIAL && bpf_skb_load_bytes(skb, f->l3, c.quoted, sizeof(c.quoted))) ||
	    bpf_skb_adjust_room(skb, SL_IPV6_BYTES + SL_ICMP_BYTES, BPF_ADJ_ROOM_MAC, 0))
		return 0;
	bytes = SL_ICMP_BYTES + SL_IPV6_BYTES + more + quoted;
	c.ip[0] = 0x60;
	c.ip[5] = (u8)bytes;
	c.ip[6] = 58;
	c.ip[7] = 64;
	__builtin_memcpy(c.ip + 8, from, 16);
	__builtin_memcpy(c.ip + 24, &f->tuple.src, 16);
	c.icmp[0] = mtu ? 2 : 3;
	c.icmp[6] = (u8)(mtu >> 8);
	c.icmp[7] = (u8)mtu;
	if (quoted == SL_QUOTED_PARTIAL) {
		finished = sl_finished_sum(c.quoted + SL_IPV6_BYTES);
		__builtin_memcpy(&sum, c.quoted + place, 2);
		__builtin_memcpy(c.quoted + place, &finished, 2);
	}
	pseudo[0] = __builtin_bswap32(bytes);
	pseudo[1] = __builtin_bswap32(58);
	all = bpf_csum_diff(NULL, 0, (u32 *)(c.ip + 8), 32, 0);
	all = bpf_csum_diff(NULL, 0, pseudo, 8, (u32)all);
	all = bpf_csum_diff(NULL, 0, (u32 *)c.icmp, sizeof(c.icmp) + sizeof(c.quoted), (u32)all);
	*(u16 *)(c.icmp + 2) = sl_folded(all);
	if (quoted == SL_QUOTED_PARTIAL)
		__builtin_memcpy(c.quoted + place, &sum, 2);
	else if (more)
		return !bpf_skb_store_bytes(skb, f->l3, &c, sizeof(c) - SL_QUOTED_PARTIAL + SL_FRAGMENT_BYTES + SL_QUOTED, 0);
	else
		return !bpf_skb_store_bytes(skb, f->l3, &c, sizeof(c) - SL_QUOTED_PARTIAL + SL_QUOTED, 0);
	return !bpf_skb_store_bytes(skb, f->l3, &c, sizeof(c), 0);
}
