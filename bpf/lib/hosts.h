/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Between which hosts a packet passes: hashes of their addresses. */
#pragma once
#include "../../abi/classifier.h"
#include "keyed_hash.h"
#include "parse.h"

/* The 16-bit hash of an IPv4 address. */
static __always_inline u16 sl_ipv4_host_hash(u32 address)
{
	u64 word = (u64)address << 32;

	return (u16)(sl_keyed_hash(&word, 1) >> 16);
}

/* The 16-bit hash of an address, given as halves in the order of the packet. */
static __always_inline u16 sl_host_hash(u64 high, u64 low)
{
	u64 word[2] = { high, low };

	if (!high && (u32)low == SL_MAPPED)
		return sl_ipv4_host_hash((u32)(low >> 32));
	return (u16)(sl_keyed_hash(word, 2) >> 16);
}

static __always_inline u16 sl_packet_host(const u8 *address)
{
	const u64 *half = (const u64 *)address;

	return sl_host_hash(half[0], half[1]);
}

/* The hash of the halves of a union nf_inet_addr, which has an IPv4 address in its first word. */
static __always_inline u16 sl_conntrack_host(u64 high, u64 low)
{
	return low || high >> 32 ? sl_host_hash(high, low) : sl_ipv4_host_hash((u32)high);
}
