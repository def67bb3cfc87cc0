/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Between which hosts a packet passes, as hashes; behind NAT as conntrack knows them. Of programs that read kernel memory untrusted. */
#pragma once
#include "../../abi/classifier.h"

#define SL_CT_INFO     7UL /* of skb->_nfct: enum ip_conntrack_info; the rest is the connection */
#define SL_CT_IS_REPLY 3 /* from this one on (include/uapi/linux/netfilter/nf_conntrack_common.h) */
#define SL_CT_NAT      0x30 /* of nf_conn.status: IPS_NAT_MASK */

void *bpf_rdonly_cast(const void *obj, u32 btf_id) __ksym;

/* A hash of 16 bits, of an address's halves in the order of the packet. */
static __always_inline u16 sl_host_hash(u64 high, u64 low)
{
	u64 hash = high ^ low;

	hash ^= hash >> 32; /* an address differs in its last bytes, which a product moves out */
	return (u16)(hash * 0x9e3779b97f4a7c15ULL >> 48);
}

static __always_inline u16 sl_packet_host(const u8 *address)
{
	const u64 *half = (const u64 *)address;

	return sl_host_hash(half[0], half[1]);
}

/* Likewise of a union nf_inet_addr, which has an IPv4 address in its first word. */
static __always_inline u16 sl_conntrack_host(const u64 *half)
{
	u64 high = half[0], low = half[1];

	return low || high >> 32 ? sl_host_hash(high, low) : sl_host_hash(0, high << 32 | __builtin_bswap32(0xffff));
}

/*
 * The hosts of a packet whose connection is translated, as they were before: the hash of the source << 16 | that of the destination; 0:
 * it is not translated. (As cake_update_flowkeys in sch_cake.c has them.) A global function, so that its stack is its own.
 */
SL_GLOBAL u32 sl_hosts_before_nat(u64 nfct)
{
	const void *connection = bpf_rdonly_cast((void *)(nfct & ~SL_CT_INFO), 0);
	u32 src, dst;

	if (!bpf_core_field_exists(struct nf_conn, tuplehash))
		return 0;
	if (!(*(const u64 *)(connection + bpf_core_field_offset(struct nf_conn, status)) & SL_CT_NAT))
		return 0;
	src = bpf_core_field_offset(struct nf_conn, tuplehash[0].tuple.src.u3);
	dst = bpf_core_field_offset(struct nf_conn, tuplehash[0].tuple.dst.u3);
	if ((nfct & SL_CT_INFO) >= SL_CT_IS_REPLY) {
		src = bpf_core_field_offset(struct nf_conn, tuplehash[1].tuple.src.u3);
		dst = bpf_core_field_offset(struct nf_conn, tuplehash[1].tuple.dst.u3);
	}
	return (u32)sl_conntrack_host(connection + src) << 16 | sl_conntrack_host(connection + dst);
}
