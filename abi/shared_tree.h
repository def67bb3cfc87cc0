/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The state of trees of classes that share a link, one tree for each tx queue: words that all of them read, and the part of each alone
 * (sched/shared_tree.h). Plain old data. All zeroes is a link whose bucket is full, and that no tree has packets for.
 */
#pragma once
#include "hierarchy.h"
#include "shared_credit.h"

#define SL_SHARED_TREES 16u

/* Fraction bits of sl_tree_share.service. */
#define SL_TREE_SERVICE_BITS 32

/*
 * The tree to which packets of each leaf are to come, and those of each class in a class tree. The loader writes it before an address leads to the leaf;
 * the trees themselves make their changes when packets come to them, so none of them can tell.
 */
struct sl_tree_homes {
	u64 by_class; /* it is a class tree: classes choose, not addresses */
	u8 of_leaf[SL_FIRST_INNER];
	u8 of_class[SL_TREE_CLASSES];
};

/* The line by which a tree tells the others its claim. It alone writes it. */
struct sl_tree_share {
	u64 claim; /* the weights of its children of the link that may send, times 2; 1 more: one of them has a guarantee to be kept. 0: it wants nothing */
	u64 service; /* virtual: the bytes that it has drawn << SL_TREE_SERVICE_BITS, by these weights; wraps round */
	u64 asked_ns; /* when it last asked for credit that was scarce */
} __attribute__((aligned(SL_CACHE_LINE_BYTES)));

struct sl_shared_trees {
	struct sl_shared_word bucket; /* of the link: the time at which it is full again, in 1/64 ns */
	struct sl_tree_share share[SL_SHARED_TREES];
};

/* The part of a tree, which no other touches. All zeroes but for the first three: it has no credit, and its link no rate yet. */
struct sl_tree_part {
	u32 number; /* below SL_SHARED_TREES; no two trees have the same */
	u32 instances; /* trees of the link */
	u32 frame_bytes; /* longer packets are sent too, but put the tree further into debt */
	u32 pad;
	struct sl_link_credit credit;
	struct sl_shared_rate rate; /* as the link's node has it */
	u32 link_cost, link_burst_ns; /* of that node, from which the rate was made */
	u64 service; /* as in the line, which others may have read */
	u64 joined; /* the claim in the line */
	u64 retry_ns; /* credit that others are to draw first is not asked for before */
	u64 drawn_weights; /* the weights by which the last draw is service; 0: it is none */
	u64 drawn_service; /* counted in advance at that draw */
	u64 sent_bytes; /* since then, but for those that were sent by guarantees of the link's children */
	u64 draws; /* times that this tree has gone to shared words */
};
