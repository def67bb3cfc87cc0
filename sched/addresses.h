/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * From an address to its subscriber's leaf: the longest prefix that holds it. Or from a firewall mark or a VLAN, which go before addresses.
 *
 * The whole address is looked for first, then its prefix of each length that occurs, the longest first: a table of customers has few lengths. Each
 * look-up reads one bucket of four slots, or two where keys had no room in their first one (Pagh and Rodler, "Cuckoo hashing", 2004). The hash is
 * strongly universal, multilinear as in bpf/lib/keyed_hash.h, by a seed that userspace draws. So a packet costs 1 + SL_ADDRESS_LENGTHS
 * look-ups at most, whatever its sender chooses and however many prefixes there are.
 *
 * Userspace changes the table meanwhile (crates/tables/src/addresses.rs). A reader needs no barrier:
 * - A word has the leaf and the tag of one key. Of IPv4 the tag is the key. Of IPv6 it is 46 bits of the hash, beside the halves of the
 *   key, which may be of another time than the word. No two keys that stand or have just stood in a bucket have one tag, so all three agree for one key alone.
 * - A key that moves to its other bucket stands in both until every look-up that began before has ended.
 */
#pragma once
#include "world.h"
#include "../abi/addresses.h"

#define ADDRESS_FOUND 0x10000u /* a word without the tag looked for is below this, if that is its tag */

SL_FN u32 address_leaf_of(u64 rest)
{
	return (u32)rest & (SL_ADDRESS_LEAVES - 1);
}

/* The buckets of a key. A hash has 16 bits for each, so they lie within the table. */
SL_FN u32 address_first(u64 hash)
{
	return (u32)(hash >> 48);
}

SL_FN u32 address_second(u64 hash)
{
	return (u32)(hash >> 32) & (SL_ADDRESS_BUCKETS - 1);
}

/* The way of a bucket that has this tag; SL_ADDRESS_WAYS: none. rest: what is beside the tag, of the last way if none has it. */
SL_FN u32 address_way(const struct sl_address_bucket *bucket, u64 tag, u64 *rest)
{
	u32 way;

	SL_UNROLLED
	for (way = 0; way < SL_ADDRESS_WAYS; way++) {
		*rest = *(const volatile u64 *)&bucket->word[way] ^ tag;
		if (*rest < ADDRESS_FOUND)
			break;
	}
	return way;
}

SL_FN u32 address_find_v4(const struct sl_addresses *t, u64 key)
{
	u64 hash = t->seed[0] + t->seed[1] * key, tag = key << (SL_ADDRESS_TAG_SHIFT + SL_ADDRESS_KIND_BITS), rest;

	if (address_way(&t->bucket[address_first(hash)], tag, &rest) < SL_ADDRESS_WAYS)
		return address_leaf_of(rest);
	if (sl_likely(!(rest & SL_ADDRESS_SPILLED)))
		return SL_ADDRESS_NO_LEAF;
	if (address_way(&t->bucket[address_second(hash)], tag, &rest) < SL_ADDRESS_WAYS)
		return address_leaf_of(rest);
	return SL_ADDRESS_NO_LEAF;
}

/* The part of the hash of an IPv6 key that one half of it adds. */
SL_FN u64 address_hash_half(const u64 *seed, u64 half)
{
	return (seed[0] + (u32)half) * (seed[1] + (half >> 32));
}

SL_FN int address_equal(const struct sl_address_key *key, u64 upper, u64 lower)
{
	return *(const volatile u64 *)&key->upper == upper && *(const volatile u64 *)&key->lower == lower;
}

/*
 * The look-up of a prefix of IPv6 is inlined, as each packet of a queue pays for it. A program that is to be verified fast defines it as SL_GLOBAL: then
 * the verifier follows it once, and not for each length.
 */
#ifndef SL_ADDRESS_FIND_V6
#define SL_ADDRESS_FIND_V6 SL_FN
#endif

SL_ADDRESS_FIND_V6 u32 address_find_v6(const struct sl_addresses *t SL_NONNULL, u64 hash, u32 kind, u64 upper, u64 lower)
{
	u64 tag = (hash << SL_ADDRESS_KIND_BITS | kind) << SL_ADDRESS_TAG_SHIFT, rest;
	u32 bucket = address_first(hash), way;

	if (!t) /* before Linux 6.8, the verifier takes it for NULL or not */
		return SL_ADDRESS_NO_LEAF;
	way = address_way(&t->bucket[bucket], tag, &rest);
	if (way < SL_ADDRESS_WAYS) {
		if (sl_likely(address_equal(sl_at(t->keys[bucket].way, way), upper, lower)))
			return address_leaf_of(rest);
		/* The key has just moved to its other bucket, or the address has the tag of another one. */
		rest = *(const volatile u64 *)&t->bucket[bucket].word[SL_ADDRESS_WAYS - 1];
	}
	if (sl_likely(!(rest & SL_ADDRESS_SPILLED)))
		return SL_ADDRESS_NO_LEAF;
	bucket = address_second(hash);
	way = address_way(&t->bucket[bucket], tag, &rest);
	if (way < SL_ADDRESS_WAYS && address_equal(sl_at(t->keys[bucket].way, way), upper, lower))
		return address_leaf_of(rest);
	return SL_ADDRESS_NO_LEAF;
}

/*
 * The end of the longest prefix among these lengths, which loses it. mask: the bits of the prefix and its end.
 */
SL_FN u64 address_next_end(u64 *lengths, u64 *mask)
{
	u64 end = *lengths & -*lengths;

	*mask = *lengths | -*lengths;
	*lengths ^= end;
	return end;
}

/* Loops are plain ones: the calls of bpf_for would cost as much as a turn. */

/* The leaf of an IPv4 address, a number; SL_ADDRESS_NO_LEAF: none. */
SL_GLOBAL u32 addresses_leaf_v4(const struct sl_addresses *t SL_NONNULL, u32 address)
{
	u64 lengths, end, mask;
	u32 leaf, i;

	if (!t) /* as above */
		return SL_ADDRESS_NO_LEAF;
	leaf = address_find_v4(t, SL_ADDRESS_V4_WHOLE | address);
	if (leaf != SL_ADDRESS_NO_LEAF)
		return leaf;
	lengths = *(const volatile u64 *)&t->lengths[SL_LENGTHS_V4];
	for (i = 0; i < SL_ADDRESS_LENGTHS && lengths; i++) {
		end = address_next_end(&lengths, &mask);
		leaf = address_find_v4(t, (address | end) & mask);
		if (leaf != SL_ADDRESS_NO_LEAF)
			return leaf;
	}
	return SL_ADDRESS_NO_LEAF;
}

/* The leaf of an IPv6 address, whose halves are numbers; SL_ADDRESS_NO_LEAF: none. */
SL_GLOBAL u32 addresses_leaf_v6(const struct sl_addresses *t SL_NONNULL, u64 upper, u64 lower)
{
	u64 of_upper, hash, lengths, end, mask, half;
	u32 leaf, i;

	if (!t) /* as above */
		return SL_ADDRESS_NO_LEAF;
	of_upper = t->seed[0] + address_hash_half(&t->seed[1], upper);
	hash = of_upper + address_hash_half(&t->seed[3], lower);
	leaf = address_find_v6(t, hash, SL_ADDRESS_V6_WHOLE, upper, lower);
	if (leaf != SL_ADDRESS_NO_LEAF)
		return leaf;
	lengths = *(const volatile u64 *)&t->lengths[SL_LENGTHS_V6_LOWER];
	for (i = 0; i < SL_ADDRESS_LENGTHS && lengths; i++) {
		end = address_next_end(&lengths, &mask);
		half = (lower | end) & mask;
		hash = of_upper + address_hash_half(&t->seed[3], half);
		leaf = address_find_v6(t, hash, SL_ADDRESS_V6_PREFIX, upper, half);
		if (leaf != SL_ADDRESS_NO_LEAF)
			return leaf;
	}
	lengths = *(const volatile u64 *)&t->lengths[SL_LENGTHS_V6_UPPER];
	for (i = 0; i < SL_ADDRESS_LENGTHS && lengths; i++) {
		end = address_next_end(&lengths, &mask);
		half = (upper | end) & mask;
		hash = t->seed[0] + address_hash_half(&t->seed[1], half) + address_hash_half(&t->seed[3], 0);
		leaf = address_find_v6(t, hash, SL_ADDRESS_V6_PREFIX, half, 0);
		if (leaf != SL_ADDRESS_NO_LEAF)
			return leaf;
	}
	return SL_ADDRESS_NO_LEAF;
}

/*
 * The leaf of packets with this firewall mark, else of those on this VLAN; SL_ADDRESS_NO_LEAF: none. 0: the packet has no mark, or is on no VLAN.
 */
SL_GLOBAL u32 addresses_leaf_marked(const struct sl_addresses *t SL_NONNULL, u32 mark, u32 vlan)
{
	u32 leaf = SL_ADDRESS_NO_LEAF;
	u64 has;

	if (!t) /* as above */
		return SL_ADDRESS_NO_LEAF;
	has = *(const volatile u64 *)&t->lengths[SL_LENGTHS_NONE];
	if (mark && has & SL_ADDRESS_HAS_MARKS)
		leaf = address_find_v4(t, SL_ADDRESS_MARK | mark);
	if (leaf == SL_ADDRESS_NO_LEAF && vlan && has & SL_ADDRESS_HAS_VLANS)
		leaf = address_find_v4(t, SL_ADDRESS_VLAN | vlan);
	return leaf;
}

/* Half of an address as a number, of two words in network order. */
SL_FN u64 address_half(u32 first, u32 second)
{
	return (u64)__builtin_bswap32(first) << 32 | __builtin_bswap32(second);
}

/* The leaf of an address as programs keep it: four words in network order, IPv4 as ::ffff:a.b.c.d. */
SL_FN u32 addresses_leaf(const struct sl_addresses *t, const u32 *word)
{
	if (!word[0] && !word[1] && word[2] == __builtin_bswap32(0xffff))
		return addresses_leaf_v4(t, __builtin_bswap32(word[3]));
	return addresses_leaf_v6(t, address_half(word[0], word[1]), address_half(word[2], word[3]));
}
