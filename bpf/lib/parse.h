/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The packet parser: Ethernet, up to two VLAN tags (of more, the packet is not IP), PPPoE, IPv4 with options, IPv6 with extension headers, IP in IP (one level:
 * 4in4, 6in4, 4in6, 6in6), ports, TCP flags, ICMP types. A tunnel inside IP is known by what it carries; others (GRE, VXLAN, WireGuard, MPLS) by
 * their outer header.
 *
 * The common kinds of packets are recognised here, inlined, in a few words; the rest is parsed by parse_any.h, which is included once for
 * each kind of program. Nothing outside the packet is ever read. What cannot be parsed is named in kind; what was parsed before stays
 * valid.
 */
#pragma once
#include "../../abi/classifier.h"

#define SL_NO_VLAN           0xffffu
#define SL_NO_DSCP           0xffu
#define SL_NO_PCP            0xffu
#define SL_NO_TCP_FLAGS      0xffffu
#define SL_NO_ICMP           0xffffu
#define SL_EXTENSION_HEADERS 6
#define SL_FRONT             6 /* bytes 6 to 38: EtherType, IPv4 header without options, ports, as four words */
#define SL_FRONT_BYTES       32
#define SL_FRONT_HEAD        12 /* offsets of the words of struct sl_front, in bytes from the Ethernet header */
#define SL_FRONT_MIDDLE      20
#define SL_FRONT_ADDRESSES   22
#define SL_FRONT_REST        30
#define SL_FRONT_TRANSPORT   34 /* where the transport header of such a packet begins */

#define SL_CUT_OFF      0x10000u /* no EtherType: the packet ends before it */
#define SL_ETH_IPV4     0x0800
#define SL_ETH_ARP      0x0806
#define SL_ETH_IPV6     0x86dd
#define SL_ETH_VLAN     0x8100
#define SL_ETH_QINQ     0x88a8
#define SL_ETH_QINQ_OLD 0x9100
#define SL_ETH_PPPOE    0x8864 /* session, RFC 2516 */
#define SL_PPP_IPV4     0x0021
#define SL_PPP_IPV6     0x0057
#define SL_NO_NEXT      59 /* IPv6: nothing follows (RFC 8200, 4.7) */
/* The second word of an address ::ffff:a.b.c.d (RFC 4291, 2.5.5.2). IPv4 is kept that way, so a packet of IPv6 with one has another. */
#define SL_MAPPED       __builtin_bswap32(0xffff)
#define SL_MAPPED_IPV6  __builtin_bswap32(0xfffe)

static __always_inline u16 sl_be16(const u8 *p)
{
	return (u16)(p[0] << 8 | p[1]);
}

static __always_inline u32 sl_raw32(const u8 *p)
{
	return *(const u32 *)p; /* of packet data, or aligned on the stack */
}

static __always_inline void sl_tagged(struct sl_headers *h, u32 tag)
{
	h->vlan = tag & 0xfff;
	h->pcp = tag >> 13 & 7;
}

/* tag: what the host has taken out of the packet, or SL_NO_TAG. */
static __always_inline void sl_headers_init(struct sl_headers *h, u32 tag, u32 mark, u32 interface)
{
	__builtin_memset(h, 0, sizeof(*h));
	h->proto = SL_PROTO_OTHER;
	h->kind = SL_PARSE_OTHER;
	h->vlan = SL_NO_VLAN;
	h->tcp_flags = SL_NO_TCP_FLAGS;
	h->icmp = SL_NO_ICMP;
	h->dscp = SL_NO_DSCP;
	h->pcp = SL_NO_PCP;
	if (tag != SL_NO_TAG)
		sl_tagged(h, tag);
	h->mark = mark;
	h->interface = interface;
}

/*
 * Frames that a packet of this length becomes if each carries gso_size bytes of it, and 0 stands for all; headers take 78 bytes or so. At most
 * as many as the kernel can say.
 */
static __always_inline u16 sl_segments_of_length(u32 len_bytes, u32 gso_size)
{
	if (sl_likely(!gso_size) || len_bytes <= 78)
		return 1;
	return (u16)sl_min((len_bytes - 78 + gso_size - 1) / gso_size, 0xffffu);
}

static __always_inline int sl_is_vlan(u16 type)
{
	return type == SL_ETH_VLAN || type == SL_ETH_QINQ || type == SL_ETH_QINQ_OLD;
}

/* An address of a packet of IPv6 that rules for IPv4 must not match. */
static __always_inline void sl_unmap(u32 *addr)
{
	if (!addr[0] && !addr[1] && addr[2] == SL_MAPPED)
		addr[2] = SL_MAPPED_IPV6;
}

static __always_inline int sl_has_ports(u32 proto)
{
	/* TCP, UDP, DCCP, SCTP, UDP-Lite */
	return proto == 6 || proto == 17 || proto == 33 || proto == 132 || proto == 136;
}

/* The first words of a plain packet, bytes in the order of the packet (little endian). */
struct sl_front {
	u64 head; /* EtherType, version, TOS, total length, identification */
	u64 middle; /* fragment offset, TTL, protocol, checksum, half of the source */
	u64 addresses; /* TTL, protocol, checksum, source; the queue reads it only for the flow */
	u64 rest; /* destination and ports */
};

/* Makes the front from the four words from SL_FRONT on. */
static __always_inline void sl_front_of_words(struct sl_front *f, const volatile u64 *w)
{
	u64 ip = w[1];

	f->addresses = w[2];
	f->rest = w[3];
	f->head = w[0] >> 48 | ip << 16;
	f->middle = ip >> 48 | f->addresses << 16;
}

static __always_inline u32 sl_front_proto(const struct sl_front *f)
{
	return (u32)f->middle >> 24;
}

static __always_inline u32 sl_front_length(const struct sl_front *f)
{
	return __builtin_bswap16((u16)(f->head >> 32));
}

/*
 * Whether a packet is plain, as most are: Ethernet without tags, IPv4 without options, not a fragment, TCP or UDP. A total length that does not
 * hold the ports is looked at more closely, by the parser.
 */
static __always_inline int sl_is_plain(const struct sl_front *f)
{
	u32 proto = sl_front_proto(f);

	return (f->head & 0xffffff) == (__builtin_bswap16(SL_ETH_IPV4) | 0x45 << 16) &&
	       !(f->middle & __builtin_bswap16(0x3fff)) && sl_front_length(f) >= 24 && (proto == 6 || proto == 17);
}

static __always_inline u32 sl_front_sport(const struct sl_front *f)
{
	return __builtin_bswap16((u16)(f->rest >> 32));
}

static __always_inline u32 sl_front_dport(const struct sl_front *f)
{
	return __builtin_bswap16((u16)(f->rest >> 48));
}

static __always_inline u32 sl_front_ecn(const struct sl_front *f)
{
	return f->head >> 24 & 3;
}

/* Parses a plain packet. If it is not one, h is as before. */
static __always_inline int sl_parse_plain(const volatile u64 *w, struct sl_headers *h)
{
	struct sl_front f;

	sl_front_of_words(&f, w);
	if (!sl_is_plain(&f))
		return 0;
	h->kind = SL_PARSE_IPV4;
	h->is_ip = 1 | (f.head >> 23 & 6);
	h->has_ports = 1;
	h->proto = (u16)sl_front_proto(&f);
	h->dscp = f.head >> 26 & 0x3f;
	h->length = (u16)sl_front_length(&f);
	h->src[2] = h->dst[2] = SL_MAPPED;
	h->src[3] = (u32)(f.addresses >> 32);
	h->dst[3] = (u32)f.rest;
	h->sport = (u16)sl_front_sport(&f);
	h->dport = (u16)sl_front_dport(&f);
	return 1;
}
