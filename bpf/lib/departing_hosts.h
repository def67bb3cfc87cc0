/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Between which hosts a departing packet passes, behind NAT, as conntrack knows them. Of programs that read kernel memory untrusted. */
#pragma once
#include "conntrack.h"
#include "hosts.h"

void *bpf_rdonly_cast(const void *obj, u32 btf_id) __ksym;

/* The connection of a packet, if its addresses are translated; else NULL. */
static __always_inline const void *sl_translated_connection(u64 nfct)
{
	const void *connection = bpf_rdonly_cast((void *)(nfct & ~SL_CT_INFO), 0);

	if (!bpf_core_field_exists(struct nf_conn, tuplehash) ||
	    !(*(const u64 *)(connection + bpf_core_field_offset(struct nf_conn, status)) & SL_CT_NAT))
		return NULL;
	return connection;
}

/*
 * The hosts of a packet whose connection is translated, as they were before: the hash of the source << 16 | that of the destination; 0:
 * it is not translated. (As cake_update_flowkeys in sch_cake.c has them.) A global function, so that its stack is its own.
 */
SL_GLOBAL u32 sl_hosts_before_nat(u64 nfct)
{
	const void *connection = sl_translated_connection(nfct);
	u32 src = sl_source_offset(nfct), dst;

	if (!connection)
		return 0;
	dst = (nfct & SL_CT_INFO) >= SL_CT_IS_REPLY ? bpf_core_field_offset(struct nf_conn, tuplehash[1].tuple.dst.u3)
						    : bpf_core_field_offset(struct nf_conn, tuplehash[0].tuple.dst.u3);
	return (u32)sl_conntrack_host(*(const u64 *)(connection + src), *(const u64 *)(connection + src + 8)) << 16 |
	       sl_conntrack_host(*(const u64 *)(connection + dst), *(const u64 *)(connection + dst + 8));
}
