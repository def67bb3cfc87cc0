/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The source of a packet before it was translated, of a tc program on any kernel. */
#pragma once
#include "conntrack.h"
#include "ends.h"

/* Reads a word of the kernel's memory; 0 if it cannot be read. */
static __always_inline u64 sl_kernel_word(const void *from)
{
	u64 word = 0;

	bpf_probe_read_kernel(&word, sizeof(word), from);
	return word;
}

/*
 * Sets the source of a packet to the one that it had before it was translated, if it was: as sl_source_before_nat of lib/leaf_packet.h does on kernels
 * whose verifier lets a program read there directly. The context of a tc program is the packet itself.
 */
static __always_inline void sl_set_source_before_nat(struct __sk_buff *skb, u32 *src)
{
	const void *connection;
	u64 nfct;
	u32 at;

	if (!bpf_core_field_exists(struct sk_buff, _nfct) || !bpf_core_field_exists(struct nf_conn, tuplehash))
		return;
	nfct = sl_kernel_word((const void *)skb + bpf_core_field_offset(struct sk_buff, _nfct));
	connection = (const void *)(nfct & ~SL_CT_INFO);
	if (!connection || !(sl_kernel_word(connection + bpf_core_field_offset(struct nf_conn, status)) & SL_CT_NAT))
		return;
	at = sl_source_offset(nfct);
	sl_end_of_conntrack(src, sl_kernel_word(connection + at), sl_kernel_word(connection + at + 8));
}
