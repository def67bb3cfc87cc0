/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The filter knows the flows that the table may have; a flow outside it is not looked up. A look-up that finds nothing costs more than the
 * rules do, and a flood of new flows makes one for each packet. Bloom's filter (1970) with one bit for a flow, in two generations of
 * 4.3 s each: a flow that sends stays in, one that pauses may fall out and then asks for its entry anew, like a new one.
 * No atomic operations: a bit that is lost in a race is set again likewise.
 */
#pragma once
#include "keyed_hash.h"
#include "maps.h"

#define SL_BLOOM_BITS 48 /* of a word; the rest is its generation */

static __always_inline u32 sl_flow_hash(const struct sl_flow_key *key)
{
	_Static_assert(sizeof(*key) == 8 * SL_HASH_WORDS, "five words");
	return sl_keyed_hash((const u64 *)key, SL_HASH_WORDS);
}

static __always_inline struct sl_bloom *sl_bloom_of(u32 hash)
{
	u32 slot = hash & sl_bloom_mask;

	return bpf_map_lookup_elem(&bloom, &slot);
}

/* By the upper bits of the hash; the lower ones have chosen the word. */
static __always_inline u64 sl_bloom_bit(u32 hash)
{
	return 1ull << ((hash >> 20) * SL_BLOOM_BITS >> 12);
}

static __always_inline void sl_bloom_add(struct sl_bloom *bloom, u64 bit, u64 now_ns)
{
	u64 generation = now_ns >> 32 & 0xffff, *word = &bloom->word[generation & 1];

	*word = *word >> SL_BLOOM_BITS == generation ? *word | bit : generation << SL_BLOOM_BITS | bit;
}

/* Whether a flow may be in the table. */
static __always_inline int sl_bloom_has(struct sl_bloom *bloom, u64 bit, u64 now_ns)
{
	u64 generation = now_ns >> 32 & 0xffff, before = (generation - 1) & 0xffff;
	u64 now = bloom->word[generation & 1], then = bloom->word[before & 1];

	if (now & bit && now >> SL_BLOOM_BITS == generation)
		return 1;
	if (!(then & bit) || then >> SL_BLOOM_BITS != before)
		return 0;
	sl_bloom_add(bloom, bit, now_ns);
	return 1;
}
