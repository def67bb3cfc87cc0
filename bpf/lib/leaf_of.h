/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The leaf of a packet, by its firewall mark or its VLAN, else by its subscriber's address: as listed, or that of a host of a group; and by its class,
 * where that leaf has classes. In a class tree, by its class alone.
 */
#pragma once
#include "tree_maps.h"
#include "../../sched/each_host.h"
#include "../../sched/leaf_class.h"

/* The class of a packet in a divided leaf, from its tc_index, where each packet passes a hook before the queue that sets it; 0: it found none. */
static __always_inline u32 sl_class_in_leaf(u32 tc_index)
{
	u32 class = tc_index & (SL_CLASSES - 1);

	return tc_index >> SL_CLASS_BITS && class < SL_PART_CLASSES - 1 ? class : SL_PART_CLASSES - 1;
}

/* The class of a packet in a class tree, from its tc_index as above. */
static __always_inline u32 sl_class_in_tree(u32 tc_index)
{
	return tc_index >> SL_CLASS_BITS ? tc_index & (SL_CLASSES - 1) : SL_TREE_CLASSES - 1;
}

/*
 * The leaf of an address, four words in network order, unless mark or VLAN have one; 0: the packet has no mark, or is on no VLAN. SL_ADDRESS_NO_LEAF: it
 * is nobody's.
 */
static __always_inline u32 sl_leaf_of_address(const struct sl_tree *t, const u32 *word, u32 mark, u32 vlan)
{
	u32 zero = 0, leaf = SL_ADDRESS_NO_LEAF;
	struct sl_addresses *table = bpf_map_lookup_elem(&addresses, &zero);
	struct sl_each_host *all = bpf_map_lookup_elem(&hosts, &zero);
	struct sl_address_key address;

	if (table && sl_unlikely(*(volatile u64 *)&table->lengths[SL_LENGTHS_NONE]))
		leaf = addresses_leaf_marked(table, mark, vlan);
	/* Packets that are not IP have zeroes. */
	if (leaf != SL_ADDRESS_NO_LEAF || !(word[0] | word[1] | word[2] | word[3]))
		return leaf;
	if (table)
		leaf = addresses_leaf(table, word);
	if (!all || !all->groups || leaf == SL_ADDRESS_NO_LEAF)
		return leaf;
	address.upper = address_half(word[0], word[1]);
	address.lower = address_half(word[2], word[3]);
	return host_leaf(all, t, leaf, &address, bpf_ktime_get_ns());
}

/*
 * The leaf of this tree that queues a packet with this address, tc_index, mark and VLAN. SL_NO_NODE: no subscriber has one of them, no leaf the class,
 * or the leaf is not configured yet.
 */
static __always_inline u32 sl_leaf_of_packet(struct sl_tree *t, const u32 *word, u32 tc_index, u32 mark, u32 vlan)
{
	u32 leaf;

	if (is_class_tree(t))
		return leaf_by_class(t, sl_class_in_tree(tc_index));
	leaf = sl_leaf_of_address(t, word, mark, vlan);
	return leaf == SL_ADDRESS_NO_LEAF ? SL_NO_NODE : leaf_of_class(t, leaf, sl_class_in_leaf(tc_index));
}
