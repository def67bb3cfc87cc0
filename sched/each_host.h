/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The leaf of a host that no list names: each host of a group gets one when its first packet comes, and loses it when it has been idle and another
 * host needs it.
 *
 * Places are a set-associative table. A host may have a place of two sets (as in Azar, Broder, Karlin and Upfal, "Balanced allocations", 1999): a
 * newcomer goes to the set with more free places. The sets are chosen by a hash of the address with a seed that the loader draws: strongly
 * universal, then mixed, since the addresses of a network follow each other. If no place is free, it gets the place whose host has been idle for
 * longest. A place is taken from a host only if that costs it nothing: its leaf has no packets, and its ceiling is full. So a host does not escape
 * its ceiling by being forgotten. A host that finds no place shares the group's own leaf with others in that position. So a sender who makes
 * addresses up makes the group share that leaf at worst: hosts that have places keep them while they send, and each place is free again once its
 * leaf has sent what was made up.
 *
 * A host that gets a place while packets of its own wait in the shared leaf may see them overtaken once.
 *
 * A hook that drops early only looks for the place that a host has (host_leaf_if_known).
 *
 * Cost: up to 4 * SL_HOST_PLACE_WAYS places are read.
 */
#pragma once
#include "addresses.h"
#include "leaf_drops.h"
#include "../abi/each_host.h"

/* Whether leaf n would be the same if it were new: it has no packets, and its ceiling owes nothing. */
SL_FN int leaf_owes_nothing(const struct sl_tree *t, u32 n, u64 now_ns)
{
	const struct sl_node_bucket *ceil = &sl_at(t->node, n)->bucket[SL_TURN_SHARED];

	return !sl_at(t->leaf, n)->pkts && (!ceil->cost || ceil->tat_64ths <= now_ns << 6);
}

/* A host comes to a place. */
SL_FN u32 host_enter(struct sl_host_place *place, const struct sl_leaf *leaf, u64 upper, u64 lower, u64 now_ns)
{
	place->upper = upper;
	place->lower = lower;
	place->seen_ns = now_ns;
	place->sent_pkts = leaf->sent_pkts;
	place->sent_bytes = leaf->sent_bytes;
	place->dropped_pkts = leaf_dropped_pkts(leaf) + (u32)leaf->early_pkts;
	place->marked_pkts = leaf->marked_pkts;
	return place->leaf;
}

/* A packet of a host comes that has a place. */
SL_FN u32 host_stays(struct sl_host_place *place, u64 now_ns)
{
	place->seen_ns = now_ns;
	return place->leaf;
}

/* The finalizer of MurmurHash3 (Appleby): each bit of the input changes each bit of the result with a probability of one half. */
SL_FN u64 host_mix(u64 hash)
{
	hash ^= hash >> 33;
	hash *= 0xff51afd7ed558ccdULL;
	hash ^= hash >> 33;
	hash *= 0xc4ceb9fe1a85ec53ULL;
	return hash ^ hash >> 33;
}

/* The first place of a set. */
SL_FN u32 host_set(const struct sl_host_group *group, u32 hash)
{
	return group->first_place + (hash & group->sets_mask) * SL_HOST_PLACE_WAYS;
}

/* The two sets in which a host of a group may have a place, by their first places, and the address by which places know it. */
struct sl_host_sets {
	u64 upper, lower;
	u32 first, second;
};

SL_FN void host_sets(const struct sl_each_host *h, u32 own, const struct sl_address_key *address, struct sl_host_sets *at)
{
	const struct sl_host_group *group = sl_at(h->group, own);
	u64 hash;

	at->upper = address->upper;
	at->lower = address->lower;
	if (at->upper || at->lower >> 32 != 0xffff) {
		at->upper &= group->upper_mask;
		at->lower &= group->lower_mask;
	}
	hash = host_mix(h->seed[0] + address_hash_half(&h->seed[1], at->upper) + address_hash_half(&h->seed[3], at->lower));
	at->first = host_set(group, (u32)hash);
	at->second = host_set(group, (u32)(hash >> 32));
}

/* The place of a host in a set, from its first on; SL_HOST_PLACE_WAYS: it has none there. */
SL_GLOBAL u32 host_way(const struct sl_each_host *h SL_NONNULL, u32 first, u64 upper, u64 lower)
{
	const struct sl_host_place *place;
	u32 way;

	for (way = 0; h && way < SL_HOST_PLACE_WAYS; way++) { /* as below */
		place = sl_at(h->place, first + way);
		if (place->upper == upper && place->lower == lower && place->seen_ns)
			return way;
	}
	return SL_HOST_PLACE_WAYS;
}

/* The place that a host has in one of its sets; SL_HOST_PLACES: it has none. */
SL_FN u32 host_place(const struct sl_each_host *h, const struct sl_host_sets *at)
{
	u32 way = host_way(h, at->first, at->upper, at->lower);

	if (way < SL_HOST_PLACE_WAYS)
		return at->first + way;
	way = host_way(h, at->second, at->upper, at->lower);
	return way < SL_HOST_PLACE_WAYS ? at->second + way : SL_HOST_PLACES;
}

/*
 * The place of a set that a newcomer may have: a free one, else that of the host that has been idle for longest. In the lowest bits, the place,
 * from the set's first on; above them, how bad it is: less than SL_HOST_PLACE_WAYS if it is free, and the less the more are free. SL_NO_ROOM: none.
 */
#define SL_NO_ROOM ~0ULL
SL_GLOBAL u64 host_room(const struct sl_each_host *h SL_NONNULL, const struct sl_tree *t SL_NONNULL, u32 first, u64 now_ns)
{
	const struct sl_host_place *place;
	u64 best = SL_NO_ROOM, seen_ns;
	u32 way, taken = 0;

	if (!h || !t) /* as below */
		return SL_NO_ROOM;
	for (way = 0; way < SL_HOST_PLACE_WAYS; way++) {
		place = sl_at(h->place, first + way);
		seen_ns = place->seen_ns;
		taken += seen_ns != 0;
		if (seen_ns && (seen_ns + h->idle_ns > now_ns || !leaf_owes_nothing(t, place->leaf, now_ns)))
			continue;
		seen_ns = seen_ns ? sl_max(seen_ns, SL_HOST_PLACE_WAYS) : 0;
		best = sl_min(best, seen_ns * SL_HOST_PLACE_WAYS + way);
	}
	return best < SL_HOST_PLACE_WAYS ? best + taken * SL_HOST_PLACE_WAYS : best;
}

/*
 * The leaf of a packet whose address leads to this leaf. now_ns is not 0. It is the same leaf unless that is a group's.
 */
SL_GLOBAL u32 host_leaf(struct sl_each_host *h SL_NONNULL, const struct sl_tree *t SL_NONNULL, u32 leaf,
			const struct sl_address_key *address SL_NONNULL, u64 now_ns)
{
	struct sl_host_place *place;
	struct sl_host_sets at;
	u64 room, other_room;
	u32 own, n;

	if (!h || !t || !address) /* before Linux 6.8, the verifier takes them for NULL or not */
		return leaf;
	own = *sl_at(h->group_of, leaf);
	if (!own)
		return leaf;
	host_sets(h, own - 1, address, &at);
	n = host_place(h, &at);
	if (n < SL_HOST_PLACES)
		return host_stays(sl_at(h->place, n), now_ns);
	room = host_room(h, t, at.first, now_ns);
	other_room = host_room(h, t, at.second, now_ns);
	if (other_room / SL_HOST_PLACE_WAYS < room / SL_HOST_PLACE_WAYS) {
		at.first = at.second;
		room = other_room;
	}
	if (room == SL_NO_ROOM)
		return leaf;
	place = sl_at(h->place, at.first + (u32)(room % SL_HOST_PLACE_WAYS));
	return host_enter(place, sl_at(t->leaf, place->leaf), at.upper, at.lower, now_ns);
}

/*
 * The same leaf, if the host has a place already or the leaf is no group's; SL_ADDRESS_NO_LEAF: the host has none. The table stays as it is.
 */
SL_GLOBAL u32 host_leaf_if_known(const struct sl_each_host *h SL_NONNULL, u32 leaf,
				 const struct sl_address_key *address SL_NONNULL)
{
	struct sl_host_sets at;
	u32 own, n;

	if (!h || !address) /* as above */
		return SL_ADDRESS_NO_LEAF;
	own = *sl_at(h->group_of, leaf);
	if (!own)
		return leaf;
	host_sets(h, own - 1, address, &at);
	n = host_place(h, &at);
	return n < SL_HOST_PLACES ? sl_at(h->place, n)->leaf : SL_ADDRESS_NO_LEAF;
}
