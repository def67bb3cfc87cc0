/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The parser for packets of any kind: see parse.h. Included for each kind of program, which defines
 *
 *	SL_PACKET			the type of its packets
 *	SL_PACKET_ARG			what the verifier must be told of a pointer to one
 *	SL_LOAD(x, off, buffer, size)	copies size bytes from off; not 0: the packet ends before
 *	SL_LENGTH(x)			how many bytes it has
 *	SL_PARSER(name)			the name of a function for them
 *
 * Global functions: the verifier looks at each once, for any offset, instead of following every way through the headers before.
 */

/*
 * The IP header of this type at off, with the extension headers of IPv6, in what ends at end. Returns where the header of h->proto is, and
 * above 16 bits where the packet ends by its own account; or 0 if there is none to be read. What is behind the end pads the frame. A length
 * of 0 stands for all there is: segmentation offload puts it into packets that are longer than the field can say (BIG TCP).
 */
SL_GLOBAL u32 SL_PARSER(sl_parse_ip)(SL_PACKET *x SL_PACKET_ARG, u32 place_and_end, u32 type, struct sl_headers *h SL_NONNULL)
{
	u8 b[40] __attribute__((aligned(8)));
	u32 next, place, header, length, i, off = place_and_end & 0xffff, end = place_and_end >> 16;

	if (!h)
		return 0;
	if (type == SL_ETH_IPV4) {
		if (off + 20 > end || SL_LOAD(x, off, b, 20)) {
			h->kind = SL_PARSE_TRUNCATED_L3;
			return 0;
		}
		header = (b[0] & 0xf) * 4u;
		length = sl_be16(b + 2);
		if (!length)
			length = end - off;
		if (b[0] >> 4 != 4 || header < 20 || length < header) {
			h->kind = SL_PARSE_BAD_IPV4;
			return 0;
		}
		if (!h->is_ip)
			h->is_ip = 1 | (b[1] & 3) << 1;
		h->kind = SL_PARSE_IPV4;
		h->proto = b[9];
		h->dscp = b[1] >> 2;
		h->length = (u16)length;
		h->src[0] = h->src[1] = h->dst[0] = h->dst[1] = 0;
		h->src[2] = h->dst[2] = SL_MAPPED;
		h->src[3] = sl_raw32(b + 12);
		h->dst[3] = sl_raw32(b + 16);
		place = sl_be16(b + 6) & 0x3fff;
		if (place) {
			h->fragment_id = sl_be16(b + 4) | (u32)h->proto << 16;
			h->fragment = place & 0x1fff ? SL_LATER_FRAGMENT : SL_FIRST_FRAGMENT;
			if (h->fragment == SL_LATER_FRAGMENT) {
				h->kind = SL_PARSE_FRAGMENT;
				return 0;
			}
		}
		return sl_min(off + length, end) << 16 | ((off + header) & 0xffff);
	}

	if (off + 40 > end || SL_LOAD(x, off, b, 40)) {
		h->kind = SL_PARSE_TRUNCATED_L3;
		return 0;
	}
	if (b[0] >> 4 != 6) {
		h->kind = SL_PARSE_BAD_IPV6;
		return 0;
	}
	h->hop_limit = h->is_ip ? 0 : b[7]; /* inside a tunnel it says nothing of this link */
	if (!h->is_ip)
		h->is_ip = 1 | (b[1] >> 4 & 3) << 1;
	h->kind = SL_PARSE_IPV6;
	h->dscp = (u8)((b[0] & 0xf) << 2 | b[1] >> 6);
	next = b[6];
	length = sl_be16(b + 4) + 40u;
	if (length == 40 && next != SL_NO_NEXT)
		length = end - off;
	h->length = (u16)sl_min(length, 65535u);
#pragma unroll
	for (i = 0; i < 4; i++) {
		h->src[i] = sl_raw32(b + 8 + 4 * i);
		h->dst[i] = sl_raw32(b + 24 + 4 * i);
	}
	sl_unmap(h->src);
	sl_unmap(h->dst);
	end = sl_min(off + length, end);
	off += 40;
	/* Unrolled: before 6.2 the verifier refuses loops that fall through to their beginning. */
#pragma unroll
	for (i = 0; i <= SL_EXTENSION_HEADERS; i++) {
		/* hop-by-hop, routing, fragment, authentication, destination options, mobility */
		if (next != 0 && next != 43 && next != 44 && next != 51 && next != 60 && next != 135) {
			h->proto = (u16)next;
			return end << 16 | (off & 0xffff);
		}
		h->proto = (u16)next;
		if (i == SL_EXTENSION_HEADERS)
			break;
		if (off + 8 > end || SL_LOAD(x, off, b, 8)) {
			h->kind = SL_PARSE_TRUNCATED_L3;
			return 0;
		}
		if (next == 44 && sl_be16(b + 2) & 0xfff9) {
			h->fragment_id = sl_raw32(b + 4);
			h->fragment = sl_be16(b + 2) >> 3 ? SL_LATER_FRAGMENT : SL_FIRST_FRAGMENT;
			if (h->fragment == SL_LATER_FRAGMENT) {
				h->proto = b[0];
				h->kind = SL_PARSE_FRAGMENT;
				return 0;
			}
		}
		off += next == 44 ? 8 : next == 51 ? (b[1] + 2) * 4 : (b[1] + 1) * 8;
		next = b[0];
	}
	h->kind = SL_PARSE_DEEP_IPV6;
	return 0;
}

/* The header of h->proto at off, in what ends at end. */
static __always_inline void SL_PARSER(sl_parse_transport)(SL_PACKET *x, u32 off, u32 end, u32 fields, struct sl_headers *h, u8 *b)
{
	if (sl_has_ports(h->proto)) {
		if (off + 4 > end || SL_LOAD(x, off, b, 4)) {
			h->kind = SL_PARSE_TRUNCATED_L4;
			return;
		}
		h->sport = sl_be16(b);
		h->dport = sl_be16(b + 2);
		h->has_ports = 1;
		if (fields & SL_FIELD_TCP_FLAGS && h->proto == SL_PROTO_TCP && off + 14 <= end && !SL_LOAD(x, off + 12, b, 2))
			h->tcp_flags = b[1];
	} else if ((h->proto == 58 && h->kind == SL_PARSE_IPV6) || (h->proto == 1 && h->kind == SL_PARSE_IPV4)) {
		if (off + 4 > end || SL_LOAD(x, off, b, 4)) {
			h->kind = SL_PARSE_TRUNCATED_L4;
			return;
		}
		h->icmp = b[0];
		if (h->proto == 58) {
			h->icmp |= 256;
			/* RFC 4861, 6.1 and 7.1: what a router has passed on is not neighbour discovery. */
			if (b[0] >= 133 && b[0] <= 137 && !b[1] && h->hop_limit == 255)
				h->proto = SL_PROTO_ND;
		}
	}
}

/* The Ethernet header, tags and PPPoE. Returns the EtherType of what follows at *off, or SL_CUT_OFF. */
static __always_inline u32 SL_PARSER(sl_parse_link)(SL_PACKET *x, u32 *off, struct sl_headers *h, u8 *b)
{
	u32 type, i;

	if (SL_LOAD(x, 0, b, 14))
		return SL_CUT_OFF;
	type = sl_be16(b + 12);
	*off = 14;
#pragma unroll
	for (i = 0; i < 2; i++) {
		if (!sl_is_vlan((u16)type))
			break;
		if (SL_LOAD(x, *off, b, 4))
			return SL_CUT_OFF;
		if (h->vlan == SL_NO_VLAN)
			sl_tagged(h, sl_be16(b));
		type = sl_be16(b + 2);
		*off += 4;
	}
	if (type == SL_ETH_PPPOE) {
		if (SL_LOAD(x, *off, b, 8))
			return SL_CUT_OFF;
		/* The protocol in two bytes, or in one (RFC 1661, 6.5), which is odd. */
		i = b[6] & 1 ? b[6] : sl_be16(b + 6);
		*off += b[6] & 1 ? 7 : 8;
		if (i == SL_PPP_IPV4)
			type = SL_ETH_IPV4;
		else if (i == SL_PPP_IPV6)
			type = SL_ETH_IPV6;
	}
	return type;
}

/* type: the network protocol if the packet starts with its header, else 0: it starts with Ethernet. fields: those that decide. */
SL_GLOBAL int SL_PARSER(sl_parse_any)(SL_PACKET *x SL_PACKET_ARG, u32 type, u32 fields, struct sl_headers *h SL_NONNULL)
{
	u8 b[16] __attribute__((aligned(8)));
	u32 off = 0, end = SL_LENGTH(x), level;

	if (!h)
		return 0;
	if (end > 0xffff)
		end = 0xffff;
	if (!type) {
		type = SL_PARSER(sl_parse_link)(x, &off, h, b);
		if (type == SL_CUT_OFF) {
			h->kind = SL_PARSE_TRUNCATED_L2;
			return 0;
		}
	}
	/* The verifier of Linux 7.3 analyses a function anew for each call with a pointer to the stack. */
#pragma clang loop unroll(disable)
	for (level = 0; level < 2; level++) {
		if (type != SL_ETH_IPV4 && type != SL_ETH_IPV6) {
			if (type == SL_ETH_ARP) {
				h->proto = SL_PROTO_ARP;
				h->kind = SL_PARSE_ARP;
			}
			return 0;
		}
		off = SL_PARSER(sl_parse_ip)(x, end << 16 | (off & 0xffff), type, h);
		if (!off)
			return 0;
		end = off >> 16;
		off &= 0xffff;
		/* IP in IP (RFC 2003), IPv6 in either (RFC 4213, RFC 2473). A fragmented one goes by its outer header, as its later fragments must. */
		if ((h->proto != 4 && h->proto != 41) || h->fragment)
			break;
		type = h->proto == 4 ? SL_ETH_IPV4 : SL_ETH_IPV6;
	}
	SL_PARSER(sl_parse_transport)(x, off, end, fields, h, b);
	return 0;
}

/* front: the bytes from SL_FRONT on, or NULL where the packet is shorter or starts with another header. */
static __always_inline void SL_PARSER(sl_parse)(SL_PACKET *x, const void *front, u16 type, u32 fields, struct sl_headers *h)
{
	u8 b[2];

	if (!front || !sl_parse_plain(front, h))
		SL_PARSER(sl_parse_any)(x, type, fields, h);
	else if (fields & SL_FIELD_TCP_FLAGS && h->proto == SL_PROTO_TCP && h->length >= 34 &&
		 !SL_LOAD(x, SL_FRONT_TRANSPORT + 12, b, 2))
		h->tcp_flags = b[1];
}
