/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The connection of a packet: how skb->_nfct names it, and where its addresses stand. */
#pragma once
#include "kernel.h"

#define SL_CT_INFO     7UL /* of skb->_nfct: enum ip_conntrack_info; the rest is the connection */
#define SL_CT_IS_REPLY 3 /* from this one on (include/uapi/linux/netfilter/nf_conntrack_common.h) */
#define SL_CT_NAT      0x30 /* of nf_conn.status: IPS_NAT_MASK */

/* Where a connection has the source that a packet of this direction had before it was translated. */
static __always_inline u32 sl_source_offset(u64 nfct)
{
	return (nfct & SL_CT_INFO) >= SL_CT_IS_REPLY ? bpf_core_field_offset(struct nf_conn, tuplehash[1].tuple.src.u3)
						     : bpf_core_field_offset(struct nf_conn, tuplehash[0].tuple.src.u3);
}
