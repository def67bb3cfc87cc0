// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Early drop for subscribers: a hook on arrivals at one interface that looks into the tree of classes of another, and drops what the queue of a
 * subscriber there has no room for (sched/early_leaf.h), before the packet is routed. Engine qdisc only: it shares the maps of tree.bpf.c.
 *
 * The tree of the interface towards the subscribers finds a leaf by the destination, the other one by the source. The hook finds the same leaf,
 * since routing changes neither; where addresses are translated, those of the subscriber are not in the packet, and it passes. A mark or
 * a VLAN may be another one at departure, so where the policy knows subscribers by those, each packet passes.
 *
 * Where a flow's own packets wait in the leaf, the next one would come there too. Of other packets the hook asks the routing table: packets for this
 * host, and those that leave by another interface, pass.
 */
#include "lib/kernel.h"
#include <bpf/bpf_helpers.h>
#include "../sched/world.h"
#include "../abi/hierarchy.h"

/* Set before load. Those of the interface that has the tree: */
const volatile u32 sl_leaf_by_source = 0; /* as in tree.bpf.c */
const volatile u32 sl_tree_ifindex = 0;
const volatile u32 sl_splits = 0; /* super-packets come to its queue as frames */
const volatile u32 sl_l3_type = 0; /* the hook is for interfaces with an Ethernet header */

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#include "lib/parse_skb.h"
#include "lib/headers.h"
#include "lib/ends_skb.h"
#include "lib/known_leaf.h"
#include "lib/leaf_underway.h"
#include "../sched/leaf_class.h"

#define AF_INET                   2
#define AF_INET6                  10
#define BPF_FIB_LOOKUP_SKIP_NEIGH (1U << 2)

/* Whether the routing table sends a packet out by the interface that has the tree. */
SL_GLOBAL int sl_is_routed_there(struct __sk_buff *skb, const struct sl_skb_ends *e SL_NONNULL)
{
	struct bpf_fib_lookup params = {};

	if (!e)
		return 0;
	params.ifindex = skb->ifindex;
	params.l4_protocol = e->proto;
	params.sport = e->sport;
	params.dport = e->dport;
	if (e->dst[0] || e->dst[1] || e->dst[2] != SL_MAPPED) {
		params.family = AF_INET6;
		__builtin_memcpy(params.src, e->src, 16);
		__builtin_memcpy(params.dst, e->dst, 16);
	} else {
		params.family = AF_INET;
		params.tos = e->tos;
		params.src[0] = e->src[3];
		params.dst[0] = e->dst[3];
	}
	return bpf_fib_lookup(skb, &params, sizeof(params), BPF_FIB_LOOKUP_SKIP_NEIGH) == BPF_FIB_LKUP_RET_SUCCESS &&
	       params.ifindex == sl_tree_ifindex;
}

SEC("tc")
int sl_early_leaf(struct __sk_buff *skb)
{
	struct sl_packet packet = {};
	struct sl_skb_ends ends;
	struct sl_underway *u;
	u32 zero = 0, leaf, early, *word;
	struct sl_tree *t;

	t = bpf_map_lookup_elem(&tree, &zero);
	/* While nothing is queued there, no leaf is full. A frame for another host is bridged, not routed. */
	if (!t || !*(volatile u32 *)&t->pkts || skb->pkt_type != PACKET_HOST)
		return TC_ACT_UNSPEC;
	if (!sl_plain_ends(skb, &ends) && !sl_any_ends(skb, &ends))
		return TC_ACT_UNSPEC;
	word = sl_leaf_by_source ? ends.src : ends.dst;
	leaf = sl_host_of_leaf(sl_leaf_of_list(word), word);
	if (leaf == SL_ADDRESS_NO_LEAF)
		return TC_ACT_UNSPEC;
	u = sl_underway_to(leaf);
	if (!u)
		return TC_ACT_UNSPEC;
	packet.class = leaf;
	packet.flow_hash = ends.flow_hash;
	packet.segments = sl_splits ? sl_segments(skb) : 1;
	early = leaf_early(t, u, &packet, bpf_ktime_get_ns());
	if (sl_likely(early == SL_LEAF_PASSES) || (early == SL_LEAF_FULL && !sl_is_routed_there(skb, &ends)))
		return TC_ACT_UNSPEC;
	__sync_fetch_and_add(&sl_at(t->leaf, leaf)->early_pkts, packet.segments);
	return TC_ACT_SHOT;
}
