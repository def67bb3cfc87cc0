/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The packet parser: Ethernet, up to two VLAN tags, IPv4 with options, IPv6 with extension headers, ports.
 *
 * The including program defines sl_pull(source, offset, size, buffer): a pointer to size readable bytes at offset, or
 * NULL if the packet ends before; buffer, aligned to 8 bytes, may be used to hold them. Everything else is the same for XDP, tc and qdisc.
 * Nothing outside the packet is ever read. What cannot be parsed is named in kind; what was parsed before stays valid.
 */
#pragma once
#include "../../abi/classifier.h"

#define SL_NO_VLAN           0xffffu
#define SL_NO_DSCP           0xffu
#define SL_EXTENSION_HEADERS 6
#define SL_FRONT             6 /* bytes 6 to 38: EtherType, IPv4 header without options, ports, as four words */
#define SL_FRONT_BYTES       32

#define SL_ETH_IPV4     0x0800
#define SL_ETH_ARP      0x0806
#define SL_ETH_IPV6     0x86dd
#define SL_ETH_VLAN     0x8100
#define SL_ETH_QINQ     0x88a8
#define SL_ETH_QINQ_OLD 0x9100

struct sl_headers {
	u32 src[4]; /* network order; IPv4 as ::ffff:a.b.c.d; zeroes where the packet is not IP */
	u32 dst[4];
	u16 proto; /* enum sl_proto_index */
	u16 sport;
	u16 dport;
	u16 vlan; /* the outer tag's, or SL_NO_VLAN */
	u8 dscp; /* or SL_NO_DSCP */
	u8 has_ports;
	u8 kind; /* enum sl_parse_kind */
	u8 is_ip;
};

static __always_inline u16 sl_be16(const u8 *p)
{
	return (u16)(p[0] << 8 | p[1]);
}

static __always_inline u32 sl_raw32(const u8 *p)
{
	return *(const u32 *)p; /* of packet data, or aligned on the stack */
}

static __always_inline void sl_headers_init(struct sl_headers *h, u16 vlan)
{
	__builtin_memset(h, 0, sizeof(*h));
	h->proto = SL_PROTO_OTHER;
	h->vlan = vlan;
	h->dscp = SL_NO_DSCP;
	h->kind = SL_PARSE_OTHER;
}

static __always_inline int sl_is_vlan(u16 type)
{
	return type == SL_ETH_VLAN || type == SL_ETH_QINQ || type == SL_ETH_QINQ_OLD;
}

static __always_inline int sl_has_ports(u32 proto)
{
	/* TCP, UDP, DCCP, SCTP, UDP-Lite */
	return proto == 6 || proto == 17 || proto == 33 || proto == 132 || proto == 136;
}

/*
 * Most packets: Ethernet without tags, IPv4 without options, not a fragment, with ports. w: the words from SL_FRONT on, bytes in
 * the order of the packet (little endian). Whether it is one; if not, h is as before.
 */
static __always_inline int sl_parse_plain(const u64 *w, struct sl_headers *h)
{
	u64 type = w[0] >> 48, ip = w[1], addresses = w[2], rest = w[3];
	u32 proto = addresses >> 8 & 0xff;

	if (type != __builtin_bswap16(SL_ETH_IPV4) || (ip & 0xff) != 0x45 || ip >> 48 & __builtin_bswap16(0x1fff) ||
	    (proto != 6 && proto != 17))
		return 0;
	h->kind = SL_PARSE_IPV4;
	h->is_ip = 1;
	h->has_ports = 1;
	h->proto = (u16)proto;
	h->dscp = ip >> 10 & 0x3f;
	h->src[2] = h->dst[2] = __builtin_bswap32(0xffff);
	h->src[3] = (u32)(addresses >> 32);
	h->dst[3] = (u32)rest;
	h->sport = __builtin_bswap16((u16)(rest >> 32));
	h->dport = __builtin_bswap16((u16)(rest >> 48));
	return 1;
}

/* type: the network protocol if the packet starts with its header, else 0: it starts with Ethernet. */
static __always_inline void sl_parse(struct sl_source *x, u16 type, struct sl_headers *h)
{
	u8 buffer[40] __attribute__((aligned(8)));
	u8 *p;
	u32 off = 0, i;

	if (!type) {
		p = sl_pull(x, SL_FRONT, SL_FRONT_BYTES, buffer);
		if (p && sl_parse_plain((const u64 *)p, h))
			return;
		p = sl_pull(x, 0, 14, buffer);
		if (!p) {
			h->kind = SL_PARSE_TRUNCATED_L2;
			return;
		}
		type = sl_be16(p + 12);
		off = 14;
#pragma unroll
		for (i = 0; i < 2; i++) {
			if (!sl_is_vlan(type))
				break;
			p = sl_pull(x, off, 4, buffer);
			if (!p) {
				h->kind = SL_PARSE_TRUNCATED_L2;
				return;
			}
			if (h->vlan == SL_NO_VLAN)
				h->vlan = sl_be16(p) & 0xfff;
			type = sl_be16(p + 2);
			off += 4;
		}
	}

	if (type == SL_ETH_IPV4) {
		u32 header, fragment;

		p = sl_pull(x, off, 20, buffer);
		if (!p) {
			h->kind = SL_PARSE_TRUNCATED_L3;
			return;
		}
		header = (p[0] & 0xf) * 4u;
		if (p[0] >> 4 != 4 || header < 20) {
			h->kind = SL_PARSE_BAD_IPV4;
			return;
		}
		h->is_ip = 1;
		h->kind = SL_PARSE_IPV4;
		h->proto = p[9];
		h->dscp = p[1] >> 2;
		h->src[2] = h->dst[2] = __builtin_bswap32(0xffff);
		h->src[3] = sl_raw32(p + 12);
		h->dst[3] = sl_raw32(p + 16);
		fragment = sl_be16(p + 6) & 0x1fff;
		if (fragment) {
			h->kind = SL_PARSE_FRAGMENT;
			return;
		}
		off += header;
	} else if (type == SL_ETH_IPV6) {
		u32 next;

		p = sl_pull(x, off, 40, buffer);
		if (!p) {
			h->kind = SL_PARSE_TRUNCATED_L3;
			return;
		}
		if (p[0] >> 4 != 6) {
			h->kind = SL_PARSE_BAD_IPV6;
			return;
		}
		h->is_ip = 1;
		h->kind = SL_PARSE_IPV6;
		h->dscp = (u8)((p[0] & 0xf) << 2 | p[1] >> 6);
		next = p[6];
#pragma unroll
		for (i = 0; i < 4; i++) {
			h->src[i] = sl_raw32(p + 8 + 4 * i);
			h->dst[i] = sl_raw32(p + 24 + 4 * i);
		}
		off += 40;
#pragma unroll
		for (i = 0; i <= SL_EXTENSION_HEADERS; i++) {
			/* hop-by-hop, routing, fragment, authentication, destination options, mobility */
			if (next != 0 && next != 43 && next != 44 && next != 51 && next != 60 && next != 135)
				break;
			h->proto = (u16)next;
			if (i == SL_EXTENSION_HEADERS) {
				h->kind = SL_PARSE_DEEP_IPV6;
				return;
			}
			p = sl_pull(x, off, 8, buffer);
			if (!p) {
				h->kind = SL_PARSE_TRUNCATED_L3;
				return;
			}
			if (next == 44 && sl_be16(p + 2) >> 3) {
				h->proto = p[0];
				h->kind = SL_PARSE_FRAGMENT;
				return;
			}
			off += next == 44 ? 8 : next == 51 ? (p[1] + 2) * 4 : (p[1] + 1) * 8;
			next = p[0];
		}
		h->proto = (u16)next;
	} else {
		if (type == SL_ETH_ARP) {
			h->proto = SL_PROTO_ARP;
			h->kind = SL_PARSE_ARP;
		}
		return;
	}

	if (sl_has_ports(h->proto)) {
		p = sl_pull(x, off, 4, buffer);
		if (!p) {
			h->kind = SL_PARSE_TRUNCATED_L4;
			return;
		}
		h->sport = sl_be16(p);
		h->dport = sl_be16(p + 2);
		h->has_ports = 1;
	} else if (h->proto == 58 && h->kind == SL_PARSE_IPV6) {
		p = sl_pull(x, off, 4, buffer);
		if (!p) {
			h->kind = SL_PARSE_TRUNCATED_L4;
			return;
		}
		if (p[0] >= 133 && p[0] <= 137)
			h->proto = SL_PROTO_ND;
	}
}
