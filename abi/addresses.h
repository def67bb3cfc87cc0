/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The address table: from prefixes of addresses, and from firewall marks and VLANs, to leaves of a tree of classes. Userspace changes it while
 * programs look addresses up, so each word is read and written at once. All zeroes is an empty table.
 */
#pragma once
#include "hierarchy.h"

#define SL_ADDRESSES         131072u /* prefixes, marks and VLANs at most: half of the slots */
/* Lengths of prefixes at most, of each family; whole addresses (/32, /128) do not count. */
#define SL_ADDRESS_LENGTHS   16u
#define SL_ADDRESS_BUCKETS   65536u
#define SL_ADDRESS_WAYS      4u /* slots of a bucket, half a cache line of words */
#define SL_ADDRESS_SLOTS     (SL_ADDRESS_BUCKETS * SL_ADDRESS_WAYS)
#define SL_ADDRESS_LEAVES    SL_FIRST_INNER
#define SL_ADDRESS_NO_LEAF   0xffffu /* what an address has that is in no prefix */
/*
 * A slot's word: the tag of its key above SL_ADDRESS_TAG_SHIFT, and its leaf. 0 but for SL_ADDRESS_SPILLED: the slot is free. A key stands in
 * one of two buckets. If a key stands in its second bucket, the last word of its first one has SL_ADDRESS_SPILLED.
 */
#define SL_ADDRESS_TAG_SHIFT 16
#define SL_ADDRESS_SPILLED   0x8000u

/* Kinds of keys, the lowest bits of a tag. The tag of IPv4 is the key itself, that of IPv6 a part of its hash. */
enum sl_address_kind { SL_ADDRESS_V4, SL_ADDRESS_V6_PREFIX, SL_ADDRESS_V6_WHOLE };
#define SL_ADDRESS_KIND_BITS 2

/* The key of an IPv4 address that is looked for as a whole has this bit above it. */
#define SL_ADDRESS_V4_WHOLE (1ULL << 32)

/* A firewall mark and a VLAN have keys like those of IPv4: the number, with one of these bits above it. Neither number is 0. */
#define SL_ADDRESS_MARK      (1ULL << 33)
#define SL_ADDRESS_VLAN      (1ULL << 34)
/* Bits of the last word of lengths: the table has keys of this kind. */
#define SL_ADDRESS_HAS_MARKS 1
#define SL_ADDRESS_HAS_VLANS 2

/*
 * Lengths that occur, the longest lowest: bit 31 - length of IPv4; of IPv6, bit 127 - length from /64 to /127 and bit 63 - length up to /63. So
 * the lowest bit marks the end of a prefix: the key of a prefix is the address with this bit set and the bits below it 0 (of IPv6, in the lower or
 * in the upper half). Keys of different lengths differ.
 */
enum sl_address_lengths {
	SL_LENGTHS_V4,
	SL_LENGTHS_V6_LOWER,
	SL_LENGTHS_V6_UPPER,
	SL_LENGTHS_NONE, /* of keys that have no length: SL_ADDRESS_HAS_MARKS, SL_ADDRESS_HAS_VLANS */
	SL_ADDRESS_LENGTH_WORDS
};

/* A key of IPv6, its halves as numbers. */
struct sl_address_key {
	u64 upper, lower;
};

struct sl_address_bucket {
	u64 word[SL_ADDRESS_WAYS];
};

struct sl_address_keys {
	struct sl_address_key way[SL_ADDRESS_WAYS];
};

struct sl_addresses {
	u64 seed[5]; /* of the hash: random, and unknown to senders of packets */
	u64 lengths[SL_ADDRESS_LENGTH_WORDS];
	struct sl_address_bucket bucket[SL_ADDRESS_BUCKETS];
	struct sl_address_keys keys[SL_ADDRESS_BUCKETS]; /* of slots of IPv6; where one was, until another comes */
};
