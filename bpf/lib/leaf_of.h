/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The leaf of a packet, by its subscriber's address: as listed, or that of a host of a group. */
#pragma once
#include "tree_maps.h"
#include "../../sched/each_host.h"

/* The leaf of an address, four words in network order; SL_ADDRESS_NO_LEAF: it is nobody's. */
static __always_inline u32 sl_leaf_of(const u32 *word)
{
	u32 zero = 0, leaf = SL_ADDRESS_NO_LEAF;
	struct sl_addresses *table = bpf_map_lookup_elem(&addresses, &zero);
	struct sl_each_host *all = bpf_map_lookup_elem(&hosts, &zero);
	struct sl_tree *t = bpf_map_lookup_elem(&tree, &zero);
	struct sl_address_key address;

	/* Of a packet that is not IP, or whose source is not known yet. */
	if (!(word[0] | word[1] | word[2] | word[3]))
		return SL_ADDRESS_NO_LEAF;
	if (table)
		leaf = addresses_leaf(table, word);
	if (!all || !t || !all->groups || leaf == SL_ADDRESS_NO_LEAF)
		return leaf;
	address.upper = address_half(word[0], word[1]);
	address.lower = address_half(word[2], word[3]);
	return host_leaf(all, t, leaf, &address, bpf_ktime_get_ns());
}
