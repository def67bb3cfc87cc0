// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Engine tc, for a tree of classes: the classifier of an HTB root. It finds the leaf of a packet by its mark, VLAN or
 * address; HTB has the tree itself, node n as its class n + 1. Runs from Linux 6.1.
 */
#include "lib/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "../sched/world.h"
#include "../abi/hierarchy.h"

/* Set before load, as in tree.bpf.c. */
const volatile u32 sl_leaf_by_source = 0;
const volatile u32 sl_default_leaf = SL_FIRST_INNER - 1;
const volatile u32 sl_l3_type = 0;

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#include "lib/parse_skb.h"
#include "lib/headers.h"
#include "lib/source_skb.h"
#include "lib/leaf_of.h"

SEC("tc")
int sl_htb_tree(struct __sk_buff *skb)
{
	struct sl_headers *h = sl_headers_at_hand(skb->vlan_present ? skb->vlan_tci : SL_NO_TAG, 0, 0);
	u32 leaf, vlan, zero = 0;
	struct sl_tree *t = bpf_map_lookup_elem(&tree, &zero);

	if (!h || !t)
		return TC_ACT_UNSPEC;
	sl_parse_frame(skb, 0, h);
	if (sl_leaf_by_source)
		sl_set_source_before_nat(skb, h->src);
	vlan = h->vlan == SL_NO_VLAN ? 0 : h->vlan;
	leaf = sl_leaf_of_packet(t, sl_leaf_by_source ? h->src : h->dst, skb->tc_index, skb->mark, vlan);
	if (leaf == SL_NO_NODE)
		leaf = sl_default_leaf;
	skb->tc_classid = leaf + 1;
	return TC_ACT_OK;
}
