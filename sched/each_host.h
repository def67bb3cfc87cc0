/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The leaf of a host that no list names: each host of a group gets one when its first packet comes, and loses it when it has been idle and another
 * host needs it.
 *
 * Places are a set-associative table, by a strongly universal hash of the address with a seed that the loader draws. A host may have one of
 * SL_HOST_PLACE_WAYS places; if all are taken, it gets the place whose host has been idle for longest. A place is taken from a host only if that
 * costs it nothing: its leaf has no packets, and its ceiling is full. So a host does not escape its ceiling by being forgotten. A host that finds
 * no place shares the group's own leaf with others in that position. So a sender who makes addresses up makes the group share that leaf at worst:
 * hosts that have places keep them while they send, and each place is free again once its leaf has sent what was made up.
 *
 * A host that gets a place while packets of its own wait in the shared leaf may see them overtaken once.
 *
 * Cost: up to 2 * SL_HOST_PLACE_WAYS places are read.
 */
#pragma once
#include "addresses.h"
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
	u32 reason, dropped = 0;

	place->upper = upper;
	place->lower = lower;
	place->seen_ns = place->since_ns = now_ns;
	place->sent_pkts = leaf->sent_pkts;
	place->sent_bytes = leaf->sent_bytes;
	SL_UNROLLED
	for (reason = 0; reason < SL_DROPS; reason++)
		dropped += leaf->dropped_pkts[reason];
	place->dropped_pkts = dropped;
	place->marked_pkts = leaf->marked_pkts;
	return place->leaf;
}

/*
 * The leaf of a packet whose address leads to this leaf. now_ns is not 0. It is the same leaf unless that is a group's.
 */
SL_GLOBAL u32 host_leaf(struct sl_each_host *h SL_NONNULL, const struct sl_tree *t SL_NONNULL, u32 leaf,
			const struct sl_address_key *address SL_NONNULL, u64 now_ns)
{
	u32 own, first, way, found = SL_HOST_PLACE_WAYS;
	u64 upper, lower, hash, oldest = ~0ULL;
	struct sl_host_group *group;
	struct sl_host_place *place;

	if (!h || !t || !address) /* before Linux 6.8, the verifier takes them for NULL or not */
		return leaf;
	own = *sl_at(h->group_of, leaf);
	if (!own)
		return leaf;
	group = sl_at(h->group, own - 1);
	upper = address->upper;
	lower = address->lower;
	if (upper || lower >> 32 != 0xffff) {
		upper &= group->upper_mask;
		lower &= group->lower_mask;
	}
	hash = h->seed[0] + address_hash_half(&h->seed[1], upper) + address_hash_half(&h->seed[3], lower);
	first = group->first_place + ((u32)(hash >> 32) & group->sets_mask) * SL_HOST_PLACE_WAYS;
	for (way = 0; way < SL_HOST_PLACE_WAYS; way++) {
		place = sl_at(h->place, first + way);
		if (place->upper == upper && place->lower == lower && place->seen_ns) {
			place->seen_ns = now_ns;
			return place->leaf;
		}
	}
	for (way = 0; way < SL_HOST_PLACE_WAYS; way++) {
		place = sl_at(h->place, first + way);
		if (place->seen_ns >= oldest)
			continue;
		if (place->seen_ns && (place->seen_ns + h->idle_ns > now_ns || !leaf_owes_nothing(t, place->leaf, now_ns)))
			continue;
		oldest = place->seen_ns;
		found = way;
	}
	if (found == SL_HOST_PLACE_WAYS)
		return leaf;
	place = sl_at(h->place, first + found);
	return host_enter(place, sl_at(t->leaf, place->leaf), upper, lower, now_ns);
}
