/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Engine xsk, for a policy with subscribers or a class tree: the leaf that a packet's address leads to, which the process is told, and early drop by
 * the leaf that will queue it (sched/early_leaf.h). On a wire no packet goes elsewhere: one for a full leaf is dropped without asking for routes, and
 * the class inside a leaf is known.
 */
#pragma once
#include "flows.h"
#include "instances.h"
#include "known_leaf.h"
#include "leaf_underway.h"
#include "police.h"
#include "tree_changes.h"
#include "../../sched/leaf_class.h"

/* Set before load. */
const volatile u32 sl_wire_tree =
	0; /* the process queues in a tree of classes. 0: the verifier removes the code, and its maps are not made */
const volatile u32 sl_leaf_by_source = 0; /* the subscriber is the packet's source */

/* Beside a leaf: it has no room for the packet. */
#define SL_LEAF_HAS_NO_ROOM (1U << 16)

/* The leaf that will queue a packet whose address leads to this one, as far as that is known. */
static __always_inline u32 sl_queueing_leaf(const struct sl_tree *t, u32 leaf, const u32 *word, u32 class)
{
	if (is_class_tree(t)) {
		leaf = leaf_by_class(t, class);
	} else if (leaf != SL_ADDRESS_NO_LEAF) {
		leaf = sl_host_of_leaf(leaf, word);
		if (leaf == SL_ADDRESS_NO_LEAF)
			return SL_NO_NODE;
		leaf = leaf_of_class(t, leaf, sl_min(class, SL_PART_CLASSES - 1));
	}
	return leaf < SL_FIRST_INNER ? leaf : SL_FIRST_INNER - 1;
}

/* The leaf that the address of a packet leads to; SL_ADDRESS_NO_LEAF: it is nobody's. With SL_LEAF_HAS_NO_ROOM if it is to be dropped, and is counted. */
static __noinline u32 sl_leaf_on_wire(const struct sl_request *d)
{
	const u32 *word = (const u32 *)(sl_leaf_by_source ? d->flow.src : d->flow.dst);
	struct sl_packet packet = { .segments = d->pkts, .len_bytes = d->bytes, .flow_hash = d->hash };
	u32 zero = 0, leaf = SL_ADDRESS_NO_LEAF, queued;
	struct sl_tree *t = bpf_map_lookup_elem(&tree, &zero);
	struct sl_underway *u;

	if (!t)
		return leaf;
	if (!is_class_tree(t))
		leaf = sl_leaf_of_list(word);
	if (!*(volatile u32 *)&t->pkts)
		return leaf;
	queued = sl_queueing_leaf(t, leaf, word, d->class);
	u = queued == SL_NO_NODE ? NULL : sl_underway_to(queued);
	packet.class = queued;
	if (!u || sl_likely(leaf_early(t, u, &packet, d->now_ns) == SL_LEAF_PASSES))
		return leaf;
	__sync_fetch_and_add(&sl_at(t->leaf, queued & (SL_FIRST_INNER - 1))->early_pkts, packet.segments);
	if (sl_events_are_on(d->now_ns))
		sl_emit(d->now_ns, SL_EVENT(SL_EVENT_DROPS, SL_LIMITED(SL_LIMIT_EARLY)), (u32)d->direction << 8 | d->class,
			d->bytes, 0);
	return leaf | SL_LEAF_HAS_NO_ROOM;
}
