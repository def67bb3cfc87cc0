// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Engine qdisc, for trees of classes below mq: a filter on departure with the action skbedit, which chooses the tx queue by the packet's hash
 * (queue_mapping and skbhash; net/sched/act_skbedit.c). The program sets the hash to one of the flow that leaves the home of the packet's leaf as its
 * remainder by the number of trees. It finds the leaf by the qdisc's table of addresses, and its home in a map that the loader writes
 * (abi/shared_tree.h).
 */
#include "lib/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "../sched/shared_tree.h"

/* Set before load, as in tree.bpf.c. */
const volatile u32 sl_leaf_by_source = 0;
const volatile u32 sl_default_leaf = SL_FIRST_INNER - 1;
const volatile u32 sl_l3_type = 0;
const volatile u32 sl_trees = 1;

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#include "lib/parse_skb.h"
#include "lib/ends_skb.h"
#include "lib/source_skb.h"
#include "lib/leaf_of.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, struct sl_tree_homes);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
} homes SEC(".maps");

/* The leaf of a packet's subscriber, as the table of addresses has it. */
static __always_inline u32 sl_leaf_of_ends(struct __sk_buff *skb, struct sl_skb_ends *ends, u32 vlan)
{
	u32 zero = 0, leaf;
	struct sl_tree *t = bpf_map_lookup_elem(&tree, &zero);

	if (!t)
		return sl_default_leaf;
	if (sl_leaf_by_source)
		sl_set_source_before_nat(skb, ends->src);
	leaf = sl_leaf_of_address(t, sl_leaf_by_source ? ends->src : ends->dst, skb->mark, vlan);
	return leaf == SL_ADDRESS_NO_LEAF ? sl_default_leaf : leaf;
}

SEC("tc")
int sl_steer(struct __sk_buff *skb)
{
	struct sl_skb_ends ends = {};
	struct sl_headers *h = sl_headers_before();
	u32 zero = 0, vlan = 0, home, hash, trees = sl_max(sl_trees, 1);
	struct sl_tree_homes *all = bpf_map_lookup_elem(&homes, &zero);

	if (!all || !h)
		return 0; /* the filter does not match: the kernel chooses the queue */
	if (!sl_plain_ends(skb, &ends)) {
		sl_any_ends(skb, &ends);
		vlan = h->vlan == SL_NO_VLAN ? 0 : h->vlan;
	}
	if (skb->vlan_present)
		vlan = skb->vlan_tci & 0xfff;
	if (all->by_class)
		home = *sl_at(all->of_class, sl_class_in_tree(skb->tc_index));
	else
		home = *sl_at(all->of_leaf, sl_leaf_of_ends(skb, &ends, vlan));
	hash = ends.flow_hash - ends.flow_hash % trees;
	bpf_set_hash(skb, hash > ~0U - trees ? hash - trees + home : hash + home);
	return -1; /* it matches: the action follows */
}
