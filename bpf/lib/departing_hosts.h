/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Between which hosts a departing packet passes, behind NAT, as conntrack knows them. Of programs that read kernel memory untrusted. */
#pragma once
#include "hosts.h"

#define SL_CT_INFO     7UL /* of skb->_nfct: enum ip_conntrack_info; the rest is the connection */
#define SL_CT_IS_REPLY 3 /* from this one on (include/uapi/linux/netfilter/nf_conntrack_common.h) */
#define SL_CT_NAT      0x30 /* of nf_conn.status: IPS_NAT_MASK */

void *bpf_rdonly_cast(const void *obj, u32 btf_id) __ksym;

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
	return (u32)sl_conntrack_host(*(const u64 *)(connection + src), *(const u64 *)(connection + src + 8)) << 16 |
	       sl_conntrack_host(*(const u64 *)(connection + dst), *(const u64 *)(connection + dst + 8));
}
