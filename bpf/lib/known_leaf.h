/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The leaf of an address, for a hook before the queue: the table of hosts that no list names stays the queue's. To be verified fast. */
#pragma once
#include "tree_maps.h"
#include <bpf/bpf_helpers.h>
#define SL_ADDRESS_FIND_V6 SL_GLOBAL
#include "../../sched/each_host.h"

/*
 * The leaf of an address, four words in network order: a subscriber's, or the one that stands for all hosts of a group. SL_ADDRESS_NO_LEAF: it is
 * nobody's, or the table has marks or VLANs, which may lead elsewhere.
 */
static __always_inline u32 sl_leaf_of_list(const u32 *word)
{
	u32 zero = 0;
	struct sl_addresses *table = bpf_map_lookup_elem(&addresses, &zero);

	/* Packets that are not IP have zeroes. */
	if (!table || *(volatile u64 *)&table->lengths[SL_LENGTHS_NONE] || !(word[0] | word[1] | word[2] | word[3]))
		return SL_ADDRESS_NO_LEAF;
	return addresses_leaf(table, word);
}

/* The leaf of an address that leads to this one, which may be a group's; SL_ADDRESS_NO_LEAF: its host has none yet. */
static __always_inline u32 sl_host_of_leaf(u32 leaf, const u32 *word)
{
	u32 zero = 0;
	struct sl_each_host *all = bpf_map_lookup_elem(&hosts, &zero);
	struct sl_address_key address;

	if (leaf == SL_ADDRESS_NO_LEAF || !all || !all->groups)
		return leaf;
	address.upper = address_half(word[0], word[1]);
	address.lower = address_half(word[2], word[3]);
	return host_leaf_if_known(all, leaf, &address);
}
