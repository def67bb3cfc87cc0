/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Packets of connections, and errors about them, that go on in the other family (RFC 7915). */
#pragma once
#include "forward_errors.h"
#include "forward_packet.h"
#include "forward_route.h"
#include "../../forward/translation.h"

#define SL_IPV4_WORDS         5
#define SL_IPV6_WORDS         (SL_IPV6_BYTES / 4)
#define SL_TTL_SHIFT          24
/* The TTL or hop limit of a quoted packet in its translation: the one with which it arrived is not known. */
#define SL_QUOTED_HOPS        1
#define SL_IPV4_DONT_FRAGMENT 0x4000u

/* A header without options. word: identification << 16 | flags. payload: bytes behind the header. */
static __always_inline void sl_header_ipv4(u32 *h, const struct sl_tuple *t, u32 tos, u32 payload, u32 word, u32 ttl)
{
	h[0] = __builtin_bswap32(0x45000000u | tos << 16 | (payload + 4 * SL_IPV4_WORDS));
	h[1] = __builtin_bswap32(word);
	h[2] = __builtin_bswap32(ttl << SL_TTL_SHIFT | (u32)(u8)t->proto << 16);
	h[3] = t->src.address[3];
	h[4] = t->dst.address[3];
	((u16 *)h)[5] = sl_folded(bpf_csum_diff(NULL, 0, h, 4 * SL_IPV4_WORDS, 0));
}

static __always_inline void sl_header_ipv6(u32 *h, const struct sl_tuple *t, u32 tos, u32 payload, u32 hop_limit)
{
	h[0] = __builtin_bswap32(0x60000000u | tos << 20);
	h[1] = __builtin_bswap32(payload << 16 | (u32)(u8)t->proto << 8 | hop_limit);
	__builtin_memcpy(h + 2, &t->src, 16);
	__builtin_memcpy(h + 6, &t->dst, 16);
}

/*
 * Whether a packet that goes this way can be translated: RFC 7915 would have UDP without a checksum and options of IPv4 translated as well, which is
 * not done here.
 */
static __always_inline int sl_is_translatable(const struct sl_forwardable *f, u32 way, const struct sl_hop *hop)
{
	u32 header = f->ipv6 ? SL_IPV6_BYTES + sl_fragment_bytes(f) : 4 * SL_IPV4_WORDS;

	if (f->l4 - f->l3 != header || f->ip_bytes > SL_LONGEST_PACKET || (f->unsummed && !f->ipv6))
		return 0;
	/* The stack would take no packet from this host's own address; and an IPv6 host sends no shorter ones than its least MTU. */
	return way <= SL_WAY_NEIGHBOUR || (way == SL_WAY_NARROW && (!f->ipv6 || hop->mtu >= SL_IPV6_LEAST_MTU));
}

/* Puts a header of the other family, of which *f tells from then on, in place of the packet's. */
static __always_inline int sl_replace_header(struct __sk_buff *skb, u32 l3, u32 from_ipv6)
{
	u16 type = from_ipv6 ? __builtin_bswap16(SL_ETH_IPV4) : __builtin_bswap16(SL_ETH_IPV6);

	return bpf_skb_change_proto(skb, type, 0) || (l3 && bpf_skb_store_bytes(skb, 12, &type, 2, 0));
}

/*
 * Writes the IPv6 header of a packet, and the one behind it that says that it is a fragment (RFC 7915, 4.1), if it is one. payload: the bytes behind
 * both.
 */
static __always_inline int sl_write_as_ipv6(struct __sk_buff *skb, const struct sl_forwardable *f, const struct sl_tuple *to,
					    u32 payload)
{
	u32 h[SL_IPV6_WORDS], cut[SL_FRAGMENT_BYTES / 4], more = sl_fragment_bytes(f);

	sl_header_ipv6(h, to, f->tos, payload + more, f->ttl - 1u);
	if (more) {
		cut[0] = __builtin_bswap32((u32)(u8)to->proto << 24 | f->cut);
		cut[1] = __builtin_bswap32(f->id);
		((u8 *)h)[6] = SL_IPV6_FRAGMENT;
		if (bpf_skb_adjust_room(skb, SL_FRAGMENT_BYTES, BPF_ADJ_ROOM_NET, 0) ||
		    bpf_skb_store_bytes(skb, f->l3 + SL_IPV6_BYTES, cut, sizeof(cut), BPF_F_RECOMPUTE_CSUM))
			return -1;
	}
	return (int)bpf_skb_store_bytes(skb, f->l3, h, sizeof(h), BPF_F_RECOMPUTE_CSUM);
}

/* Writes the IPv4 header of a packet (RFC 7915, 5.1). sent: bytes of it as it came, or of each of its segments. */
static __always_inline int sl_write_as_ipv4(struct __sk_buff *skb, const struct sl_forwardable *f, const struct sl_tuple *to,
					    u32 payload, u32 sent)
{
	u32 h[SL_IPV4_WORDS], word = SL_IPV4_DONT_FRAGMENT;

	if (sl_fragment_bytes(f))
		word = __builtin_bswap32(f->id) << 16 | (f->cut & 1u) << 13 | f->cut >> 3;
	else if (sent <= SL_IPV6_LEAST_MTU) /* routers may cut it: its sender would not send a shorter one */
		word = bpf_get_prandom_u32() << 16;
	sl_header_ipv4(h, to, f->tos, payload, word, f->ttl - 1u);
	return (int)bpf_skb_store_bytes(skb, f->l3, h, sizeof(h), BPF_F_RECOMPUTE_CSUM);
}

/*
 * Makes a packet one of the other family, with these addresses and ports, one hop older. change: sl_address_change. Checksums are right afterwards,
 * whatever the device was to do of them: both pseudo-headers have the same length and protocol, and who has summed the whole packet
 * (CHECKSUM_COMPLETE) is told of each change. A function of its own for its stack.
 */
SL_GLOBAL int sl_translate(struct __sk_buff *skb, struct sl_forwardable *f SL_NONNULL, struct sl_tuple *to SL_NONNULL, u32 change)
{
	u32 ports, old_ports, sum, payload, sent, first;
	u64 zero;

	if (!f || !to)
		return -1;
	zero = f->tuple.proto == 6 ? 0 : BPF_F_MARK_MANGLED_0;
	sum = f->l4 + (f->tuple.proto == 6 ? 16 : 6);
	ports = to->sport | (u32)to->dport << 16;
	old_ports = f->tuple.sport | (u32)f->tuple.dport << 16;
	payload = f->ip_bytes - (f->l4 - f->l3);
	sent = sl_bytes_sent(skb, f);
	first = f->fragment != SL_LATER_FRAGMENT;
	if (first && !f->unsummed &&
	    (bpf_l4_csum_replace(skb, sum, 0, change, zero | BPF_F_PSEUDO_HDR) ||
	     (ports != old_ports && bpf_l4_csum_replace(skb, sum, old_ports, ports, zero | 4))))
		return -1;
	if (first && bpf_skb_store_bytes(skb, f->l4, &ports, 4, 0))
		return -1;
	if (f->ipv6 && sl_fragment_bytes(f) && bpf_skb_adjust_room(skb, -SL_FRAGMENT_BYTES, BPF_ADJ_ROOM_NET, 0))
		return -1;
	if (sl_replace_header(skb, f->l3, f->ipv6))
		return -1;
	if (f->ipv6 ? sl_write_as_ipv4(skb, f, to, payload, sent) : sl_write_as_ipv6(skb, f, to, payload))
		return -1;
	f->l4 = f->l3 + (f->ipv6 ? 4 * SL_IPV4_WORDS : SL_IPV6_BYTES + sl_fragment_bytes(f));
	f->ipv6 = !f->ipv6;
	return 0;
}

#define SL_ICMP_WORDS   (SL_ICMP_BYTES / 4)
/* Bytes of an error about eight bytes of a transport header, before the headers of one family are replaced by those of the other. */
#define SL_UNTRANSLATED (4 * SL_IPV4_WORDS + SL_ICMP_BYTES + SL_IPV6_BYTES + SL_QUOTED)

/* An error that is translated, and what it quotes. */
struct sl_error_ipv4 {
	u32 ip[SL_IPV4_WORDS];
	u32 icmp[SL_ICMP_WORDS];
	u32 quoted[SL_IPV4_WORDS];
	u32 transport[SL_QUOTED / 4];
};

struct sl_error_ipv6 {
	u32 ip[SL_IPV6_WORDS];
	u32 icmp[SL_ICMP_WORDS];
	u32 quoted[SL_IPV6_WORDS];
	u32 transport[SL_QUOTED / 4];
};

/* Reads what an error says. transport: the first bytes of the quoted one. Returns the bytes behind the quoted IP header, or -1. */
static __always_inline int sl_read_said(struct __sk_buff *skb, const struct sl_error *e, struct sl_icmp *said, u32 *transport)
{
	u8 icmp[SL_ICMP_BYTES];
	u16 bytes;

	if (bpf_skb_load_bytes(skb, e->l4, icmp, sizeof(icmp)) || bpf_skb_load_bytes(skb, e->inner_l4, transport, SL_QUOTED) ||
	    bpf_skb_load_bytes(skb, e->inner_l3 + (e->ipv6 ? 4 : 2), &bytes, 2))
		return -1;
	said->type = icmp[0];
	said->code = icmp[1];
	said->mtu = 0;
	if (e->ipv6 && said->type == 2)
		said->mtu = __builtin_bswap32(sl_raw32(icmp + 4));
	else if (!e->ipv6 && said->type == 3 && said->code == 4)
		said->mtu = sl_be16(icmp + 6);
	bytes = __builtin_bswap16(bytes);
	return e->ipv6 ? bytes : (u16)(bytes - (e->inner_l4 - e->inner_l3));
}

static __always_inline int sl_write_error_ipv4(struct __sk_buff *skb, const struct sl_error *e, const struct sl_icmp *said,
					       const struct sl_tuple *quoted, const struct sl_tuple *outer, u32 bytes,
					       const u32 *transport)
{
	struct sl_error_ipv4 made = {};

	sl_header_ipv4(made.ip, outer, 0xc0, sizeof(made) - sizeof(made.ip), 0, e->ttl - 1u);
	sl_header_ipv4(made.quoted, quoted, 0, bytes, SL_IPV4_DONT_FRAGMENT, SL_QUOTED_HOPS);
	made.transport[0] = quoted->sport | (u32)quoted->dport << 16;
	made.transport[1] = transport[1];
	made.icmp[0] = __builtin_bswap32(said->type << 24 | said->code << 16);
	made.icmp[1] = __builtin_bswap32(said->mtu);
	((u16 *)made.icmp)[1] = sl_folded(bpf_csum_diff(NULL, 0, made.icmp, sizeof(made) - sizeof(made.ip), 0));
	return (int)bpf_skb_store_bytes(skb, e->l3, &made, sizeof(made), BPF_F_RECOMPUTE_CSUM);
}

static __always_inline int sl_write_error_ipv6(struct __sk_buff *skb, const struct sl_error *e, const struct sl_icmp *said,
					       const struct sl_tuple *quoted, const struct sl_tuple *outer, u32 bytes,
					       const u32 *transport)
{
	struct sl_error_ipv6 made = {};
	u32 pseudo[2] = { __builtin_bswap32(sizeof(made) - sizeof(made.ip)), __builtin_bswap32(58) };
	s64 sum;

	sl_header_ipv6(made.ip, outer, 0, sizeof(made) - sizeof(made.ip), e->ttl - 1u);
	sl_header_ipv6(made.quoted, quoted, 0, bytes, SL_QUOTED_HOPS);
	made.transport[0] = quoted->sport | (u32)quoted->dport << 16;
	made.transport[1] = transport[1];
	made.icmp[0] = __builtin_bswap32(said->type << 24 | said->code << 16);
	made.icmp[1] = __builtin_bswap32(said->mtu);
	sum = bpf_csum_diff(NULL, 0, made.ip + 2, 32, 0);
	sum = bpf_csum_diff(NULL, 0, pseudo, sizeof(pseudo), (u32)sum);
	sum = bpf_csum_diff(NULL, 0, made.icmp, sizeof(made) - sizeof(made.ip), (u32)sum);
	((u16 *)made.icmp)[1] = sl_folded(sum);
	return (int)bpf_skb_store_bytes(skb, e->l3, &made, sizeof(made), BPF_F_RECOMPUTE_CSUM);
}

/*
 * Makes an error one of the other family: from and to the addresses of *outer, about a packet with those of *quoted. Returns 0 if there is none that says
 * the same. A function of its own for its stack.
 */
SL_GLOBAL int sl_translate_error(struct __sk_buff *skb, struct sl_error *e SL_NONNULL, struct sl_tuple *quoted SL_NONNULL,
				 struct sl_tuple *outer SL_NONNULL)
{
	u32 transport[SL_QUOTED / 4];
	struct sl_icmp said;
	int bytes, failed;

	if (!e || !quoted || !outer || e->ttl <= 1)
		return 0;
	bytes = sl_read_said(skb, e, &said, transport);
	if (bytes < 0 || !(e->ipv6 ? icmp_to_ipv4(&said) : icmp_to_ipv6(&said)))
		return 0;
	if (bpf_skb_change_tail(skb, e->l3 + SL_UNTRANSLATED, 0) || sl_replace_header(skb, e->l3, e->ipv6))
		return 0;
	outer->proto = e->ipv6 ? 1 : 58;
	failed = e->ipv6 ? sl_write_error_ipv4(skb, e, &said, quoted, outer, (u32)bytes, transport)
			 : sl_write_error_ipv6(skb, e, &said, quoted, outer, (u32)bytes, transport);
	e->ipv6 = !e->ipv6;
	e->l4 = e->l3 + (e->ipv6 ? SL_IPV6_BYTES : 4 * SL_IPV4_WORDS);
	return !failed;
}
