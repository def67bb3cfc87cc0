/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The flow of a packet and its hash, which are the same in all programs of an interface. */
#pragma once
#include "keyed_hash.h"
#include "parse.h"

static __always_inline void sl_flow_key(struct sl_flow_key *key, const struct sl_headers *h, u32 direction)
{
	__builtin_memcpy(key->src, h->src, 16);
	__builtin_memcpy(key->dst, h->dst, 16);
	key->sport = __builtin_bswap16(h->sport);
	key->dport = __builtin_bswap16(h->dport);
	key->proto = h->proto;
	key->direction = direction & 1;
	key->has_ports = h->has_ports;
}

/* The hash of a flow between two IPv4 addresses; last is the fifth word of its key. */
static __always_inline u32 sl_ipv4_flow_hash(u32 src, u32 dst, u64 last)
{
	u64 word[2] = { src | (u64)dst << 32, last };

	return sl_keyed_hash(word, 2);
}

/* The fifth word of the key of a plain packet's flow. */
static __always_inline u64 sl_plain_flow_last(const struct sl_front *f, u32 direction)
{
	return f->rest >> 32 | (u64)(sl_front_proto(f) | (direction & 1) << 16 | 1 << 24) << 32;
}

static __always_inline u32 sl_flow_hash(const struct sl_flow_key *flow)
{
	const u64 *key = (const u64 *)flow;

	_Static_assert(sizeof(*flow) == 8 * SL_HASH_WORDS, "five words");
	if (!key[0] && !key[2] && (u32)key[1] == SL_MAPPED && (u32)key[3] == SL_MAPPED)
		return sl_ipv4_flow_hash((u32)(key[1] >> 32), (u32)(key[3] >> 32), key[4]);
	return sl_keyed_hash(key, SL_HASH_WORDS);
}

/* Sets the addresses of a plain packet, as four words each in network order. The hash of its flow when it departs. */
static __always_inline u32 sl_plain_addresses(const struct sl_front *f, u32 *src, u32 *dst)
{
	src[0] = src[1] = dst[0] = dst[1] = 0;
	src[2] = dst[2] = SL_MAPPED;
	src[3] = (u32)(f->addresses >> 32);
	dst[3] = (u32)f->rest;
	return sl_ipv4_flow_hash(src[3], dst[3], sl_plain_flow_last(f, SL_EGRESS));
}
