/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Reading and rewriting of packets that are forwarded: IPv4 and IPv6, TCP and UDP. */
#pragma once
#include "parse.h"
#include "forward_tables.h"
#include "../../forward/tracking.h"
#include "../../forward/tuple.h"

#define SL_ETH_BYTES      14
#define SL_IPV6_BYTES     40
#define AF_INET           2
#define AF_INET6          10
#define SL_IPV6_FRAGMENT  44
#define SL_FRAGMENT_BYTES 8

/* The packet's parts that matter to a forward. Offsets are from the packet's first byte. */
struct sl_forwardable {
	struct sl_tuple tuple;
	struct sl_segment segment;
	u32 l3; /* where the IP header begins */
	u32 l4;
	u32 ip_bytes; /* of the packet from its IP header on */
	u8 ipv6;
	u8 ttl; /* or hop limit */
	u8 tos;
	u8 fragment; /* enum sl_fragment_kind */
	u8 whole; /* it must not be fragmented on its way */
	u8 unsummed; /* of UDP: it has no checksum (RFC 768) */
	u16 cut; /* of a fragment: its place in eights of bytes << 3 | whether others follow it, as IPv6 has them */
	u32 id; /* of a fragment: what it shares with the others; of IPv6 in network byte order */
	u32 tick; /* of 2^20 ns: when it came */
	u32 hash; /* tuple_hash of its addresses and ports */
};

static __always_inline void sl_end_of_ipv4(struct sl_end *end, u32 address)
{
	end->address[0] = end->address[1] = 0;
	end->address[2] = SL_MAPPED;
	end->address[3] = address;
}

/* Whether the address can be no host's: that of none, of this one, or of several. */
static __always_inline int sl_end_is_martian(const struct sl_end *end)
{
	u32 first = __builtin_bswap32(end->address[3]) >> 24;

	if (sl_end_is_ipv4(end))
		return !first || first == 127 || first >= 224;
	return (!end->address[0] && !end->address[1]) || (__builtin_bswap32(end->address[0]) >> 24) == 0xff;
}

/* Whether a packet goes on in the other family. */
static __always_inline int sl_crosses(const struct sl_forwardable *f, const struct sl_tuple *to)
{
	return f->ipv6 == sl_end_is_ipv4(&to->dst);
}

/* Bytes of the header that says of an IPv6 packet that it is a fragment: that it has, or has in translation. */
static __always_inline u32 sl_fragment_bytes(const struct sl_forwardable *f)
{
	if (f->ipv6)
		return f->l4 - f->l3 == SL_IPV6_BYTES + SL_FRAGMENT_BYTES ? SL_FRAGMENT_BYTES : 0;
	return f->fragment != SL_WHOLE ? SL_FRAGMENT_BYTES : 0;
}

/* Makes the first bytes of the packet linear. Returns 0 if there are fewer. */
static __always_inline int sl_reach(struct __sk_buff *skb, u32 bytes)
{
	return (void *)(long)skb->data + bytes <= (void *)(long)skb->data_end || !bpf_skb_pull_data(skb, bytes);
}

/* Reads ports, and what tracking wants of TCP. payload: bytes from the transport header on. */
static __always_inline int sl_read_transport(struct __sk_buff *skb, struct sl_forwardable *f, u32 l4, u32 payload)
{
	u32 header = f->tuple.proto == 6 ? 20 : 8;
	const u8 *p;

	f->l4 = l4;
	if ((f->tuple.proto != 6 && f->tuple.proto != 17) || f->fragment == SL_LATER_FRAGMENT)
		return 0;
	if (payload < header || !sl_reach(skb, l4 + header))
		return 0;
	p = (void *)(long)skb->data + l4;
	sl_opaque(p); /* one pointer is checked and used */
	if ((void *)(p + 8) > (void *)(long)skb->data_end)
		return 0;
	f->tuple.sport = *(const u16 *)p;
	f->tuple.dport = *(const u16 *)(p + 2);
	if (!f->tuple.dport)
		return 0; /* nobody forwards it: in `listens` it stands for fragments */
	if (f->tuple.proto != 6) {
		f->unsummed = !*(const u16 *)(p + 6);
		return 1;
	}
	if ((void *)(p + 20) > (void *)(long)skb->data_end)
		return 0;
	f->segment.seq = __builtin_bswap32(sl_raw32(p + 4));
	f->segment.ack = __builtin_bswap32(sl_raw32(p + 8));
	f->segment.flags = p[13];
	header = (u32)(p[12] >> 4) * 4;
	if (header < 20 || header > payload)
		return 0;
	f->segment.bytes = payload - header;
	return 1;
}

static __always_inline int sl_read_ipv4(struct __sk_buff *skb, u32 l3, struct sl_forwardable *f)
{
	u32 header, fragment;
	const u8 *p;

	if (!sl_reach(skb, l3 + 20))
		return 0;
	p = (void *)(long)skb->data + l3;
	sl_opaque(p);
	if ((void *)(p + 20) > (void *)(long)skb->data_end || p[0] >> 4 != 4)
		return 0;
	header = (p[0] & 15) * 4;
	f->ip_bytes = sl_be16(p + 2);
	fragment = sl_be16(p + 6);
	f->fragment = fragment & 0x1fff ? SL_LATER_FRAGMENT : fragment & 0x2000 ? SL_FIRST_FRAGMENT : SL_WHOLE;
	f->cut = (u16)(fragment << 3 | (fragment >> 13 & 1));
	f->id = sl_be16(p + 4);
	f->whole = (fragment & 0x4000) != 0;
	f->tos = p[1];
	f->ttl = p[8];
	f->tuple.proto = p[9];
	sl_end_of_ipv4(&f->tuple.src, sl_raw32(p + 12));
	sl_end_of_ipv4(&f->tuple.dst, sl_raw32(p + 16));
	if (!f->ip_bytes)
		f->ip_bytes = skb->len - l3; /* BIG TCP */
	if (header < 20 || f->ip_bytes < header || f->ip_bytes > skb->len - l3)
		return 0;
	return sl_read_transport(skb, f, l3 + header, f->ip_bytes - header);
}

/* Reads the header of a fragment, which the IPv6 header ends with. Other extension headers are not read: such a packet is no forward's. */
static __always_inline int sl_read_fragment(struct __sk_buff *skb, u32 l3, struct sl_forwardable *f)
{
	u32 fragment;
	const u8 *p;

	if (f->ip_bytes < SL_IPV6_BYTES + SL_FRAGMENT_BYTES || !sl_reach(skb, l3 + SL_IPV6_BYTES + SL_FRAGMENT_BYTES))
		return 0;
	p = (void *)(long)skb->data + l3 + SL_IPV6_BYTES;
	sl_opaque(p);
	if ((void *)(p + SL_FRAGMENT_BYTES) > (void *)(long)skb->data_end)
		return 0;
	fragment = sl_be16(p + 2);
	f->tuple.proto = p[0];
	f->fragment = fragment >> 3 ? SL_LATER_FRAGMENT : fragment & 1 ? SL_FIRST_FRAGMENT : SL_WHOLE;
	f->cut = (u16)(fragment & ~6u);
	f->id = sl_raw32(p + 4);
	return 1;
}

static __always_inline int sl_read_ipv6(struct __sk_buff *skb, u32 l3, struct sl_forwardable *f)
{
	const u8 *p;

	if (!sl_reach(skb, l3 + SL_IPV6_BYTES))
		return 0;
	p = (void *)(long)skb->data + l3;
	sl_opaque(p);
	if ((void *)(p + SL_IPV6_BYTES) > (void *)(long)skb->data_end || p[0] >> 4 != 6)
		return 0;
	f->ipv6 = 1;
	f->whole = 1;
	f->tos = (u8)(sl_be16(p) >> 4);
	f->ip_bytes = SL_IPV6_BYTES + sl_be16(p + 4);
	f->ttl = p[7];
	f->tuple.proto = p[6];
	__builtin_memcpy(&f->tuple.src, p + 8, 16);
	__builtin_memcpy(&f->tuple.dst, p + 24, 16);
	if (f->ip_bytes == SL_IPV6_BYTES)
		f->ip_bytes = skb->len - l3;
	if (f->ip_bytes > skb->len - l3)
		return 0;
	if (f->tuple.proto != SL_IPV6_FRAGMENT)
		return sl_read_transport(skb, f, l3 + SL_IPV6_BYTES, f->ip_bytes - SL_IPV6_BYTES);
	return sl_read_fragment(skb, l3, f) &&
	       sl_read_transport(skb, f, l3 + SL_IPV6_BYTES + SL_FRAGMENT_BYTES, f->ip_bytes - SL_IPV6_BYTES - SL_FRAGMENT_BYTES);
}

/* Whether a packet of this EtherType is one that a forward can take; sets *f, which is 0. l3: where its IP header begins. */
static __always_inline int sl_read_of_type(struct __sk_buff *skb, u32 l3, u32 type, struct sl_forwardable *f)
{
	f->l3 = l3;
	return type == SL_ETH_IPV4 ? sl_read_ipv4(skb, l3, f) : type == SL_ETH_IPV6 && sl_read_ipv6(skb, l3, f);
}

static __always_inline u32 sl_ethertype(struct __sk_buff *skb)
{
	return __builtin_bswap16((u16)skb->protocol);
}

/* Whether a packet is one that a forward can take. As sl_read_of_type; a function of its own for the verifier. */
SL_GLOBAL int sl_read_forwardable(struct __sk_buff *skb, u32 l3, struct sl_forwardable *f SL_NONNULL)
{
	return f && l3 <= SL_ETH_BYTES && sl_read_of_type(skb, l3, sl_ethertype(skb), f);
}

/* Whether the packet is of ICMP in IPv4, or of ICMPv6 in IPv6, without extension headers. */
static __always_inline int sl_is_icmp(const struct sl_forwardable *f)
{
	return f->tuple.proto == (f->ipv6 ? 58 : 1) && f->fragment == SL_WHOLE;
}

/* A sum of 16-bit words with ends carried around (RFC 1071), in 32 bits as the kernel's checksum helpers take it. */
static __always_inline u32 sl_carried(u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	return (u32)((sum & 0xffffffff) + (sum >> 32));
}

/* The difference that other addresses make to a checksum that counts them (RFC 1624): the new ones less the old ones. */
static __always_inline u32 sl_address_change(const struct sl_forwardable *f, const struct sl_tuple *to)
{
	u32 i, both_ipv4 = !f->ipv6 && sl_end_is_ipv4(&to->dst);
	u64 sum = 0;

#pragma unroll
	for (i = 0; i < 4; i++) {
		/* Of IPv4, the other words are the same in all addresses; and their sum is 0, so that it does not matter to IPv6. */
		if (i < 3 && both_ipv4)
			continue;
		sum += (u64)to->src.address[i] + (u32)~f->tuple.src.address[i];
		sum += (u64)to->dst.address[i] + (u32)~f->tuple.dst.address[i];
	}
	return sl_carried(sum);
}

/* The IPv4 header's checksum after its sum has changed. */
static __always_inline u16 sl_changed_sum(u16 check, u32 change)
{
	u64 sum = (u64)(u16)~check + change;

	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (u16) ~((sum & 0xffff) + (sum >> 16));
}

/* The IPv6 header has no checksum: who has summed the whole packet (CHECKSUM_COMPLETE) is told of each change. */
static __always_inline int sl_write_ipv6(struct __sk_buff *skb, u32 l3, const struct sl_tuple *to, u8 hop_limit)
{
	return bpf_skb_store_bytes(skb, l3 + 8, &to->src, 32, BPF_F_RECOMPUTE_CSUM) ||
	       bpf_skb_store_bytes(skb, l3 + 7, &hop_limit, 1, BPF_F_RECOMPUTE_CSUM);
}

/* The parts of IPv4 headers that are written. */
struct sl_rewritten {
	u32 src;
	u32 dst;
	u32 ports;
	u32 change; /* of the header's sum */
	u8 ttl;
	u8 has_ports; /* and the header has no options */
};

/* Writes into the packet itself; l3 is a constant, so that every verifier follows. The sum of an IPv4 header stays the same for who has summed it all. */
static __always_inline int sl_write_ipv4_at(struct __sk_buff *skb, const u32 l3, const struct sl_rewritten *r)
{
	u8 *p;

	/* A last fragment may have a byte. */
	if (!sl_reach(skb, l3 + (r->has_ports ? 24 : 20)))
		return -1;
	p = (void *)(long)skb->data;
	if ((void *)(p + l3 + 20) > (void *)(long)skb->data_end)
		return -1;
	*(u16 *)(p + l3 + 10) = sl_changed_sum(*(const u16 *)(p + l3 + 10), r->change);
	p[l3 + 8] = r->ttl;
	*(u32 *)(p + l3 + 12) = r->src;
	*(u32 *)(p + l3 + 16) = r->dst;
	if (!r->has_ports)
		return 0;
	if ((void *)(p + l3 + 24) > (void *)(long)skb->data_end)
		return -1;
	*(u32 *)(p + l3 + 20) = r->ports;
	return 0;
}

static __always_inline int sl_write_ipv4(struct __sk_buff *skb, u32 l3, const struct sl_rewritten *r)
{
	return l3 ? sl_write_ipv4_at(skb, SL_ETH_BYTES, r) : sl_write_ipv4_at(skb, 0, r);
}

/*
 * Writes addresses and ports, and lowers the TTL by `hops`. change: sl_address_change. Checksums are right afterwards, whatever the device was to do of
 * them.
 */
static __always_inline int sl_rewrite(struct __sk_buff *skb, const struct sl_forwardable *f, const struct sl_tuple *to,
				      u32 change, u32 hops)
{
	u32 sum = f->l4 + (f->tuple.proto == 6 ? 16 : 6);
	u32 hop_word = f->ttl | f->tuple.proto << 8, new_hop_word = hop_word - hops;
	u64 zero = f->tuple.proto == 6 ? 0 : BPF_F_MARK_MANGLED_0;
	u32 ports = to->sport | (u32)to->dport << 16, old_ports = f->tuple.sport | (u32)f->tuple.dport << 16;
	struct sl_rewritten r = { .src = to->src.address[3], .dst = to->dst.address[3], .ports = ports };

	r.has_ports = f->fragment != SL_LATER_FRAGMENT && f->l4 - f->l3 == 20 && !f->ipv6;
	/* Of a packet whose checksum the device is to finish, only the pseudo-header is summed: its addresses, not its ports. */
	if (f->fragment != SL_LATER_FRAGMENT && !f->unsummed &&
	    (bpf_l4_csum_replace(skb, sum, 0, change, zero | BPF_F_PSEUDO_HDR) ||
	     (ports != old_ports && bpf_l4_csum_replace(skb, sum, old_ports, ports, zero | 4))))
		return -1;
	if (f->fragment != SL_LATER_FRAGMENT && !r.has_ports && bpf_skb_store_bytes(skb, f->l4, &ports, 4, 0))
		return -1;
	if (f->ipv6)
		return sl_write_ipv6(skb, f->l3, to, (u8)new_hop_word);
	r.ttl = (u8)new_hop_word;
	r.change = sl_carried((u64)change + (u16)new_hop_word + (u16)~hop_word);
	return sl_write_ipv4(skb, f->l3, &r);
}
