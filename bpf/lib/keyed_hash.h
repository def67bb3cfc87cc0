/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Hashes that no sender of packets can predict. Multilinear-HM of Lemire and Kaser, "Strongly universal string hashing is fast" (The Computer
 * Journal, 2014), with keys that the loader draws for each interface: whatever two inputs an attacker chooses, their hashes are equal with a
 * probability of 2^-32, and equally so in any of their bits.
 */
#pragma once
#include "../../abi/classifier.h"
#include "../../abi/types.h"

/* Set before load. A map of its own (`hash`), which all programs of an interface share: they find the same flow in the same place. */
volatile struct sl_hash sl_hash SEC(".data.hash") = { .flow_mask = SL_DEFAULT_FLOW_SETS - 1 };

/* Returns &sl_hash through a register, so that the compiler does not load the address again for each key. */
static __always_inline const volatile struct sl_hash *sl_hash_keys(void)
{
	const volatile struct sl_hash *keys = &sl_hash;

	asm("" : "+r"(keys));
	return keys;
}

/* The hash of an input of this many words: a constant, at most SL_HASH_WORDS. */
static __always_inline u32 sl_keyed_hash(const u64 *word, u32 words)
{
	const volatile struct sl_hash *h = sl_hash_keys();
	u64 sum = h->key[0];
	u32 i;

#pragma unroll
	for (i = 0; i < words; i++)
		sum += (h->key[2 * i + 1] + (u32)word[i]) * (h->key[2 * i + 2] + (word[i] >> 32));
	return (u32)(sum >> 32);
}
