/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Changes of a tree of classes while it runs: a ring that the loader writes and the tree's engine reads. The engine makes the changes in their
 * order, some before each packet, where nothing else touches the tree. All zeroes is a ring without changes.
 */
#pragma once
#include "hierarchy.h"

#define SL_TREE_CHANGES 131072u /* that may wait */

enum sl_change_kind {
	SL_CHANGE_SET_UP, /* struct sl_tree_conf */
	SL_CHANGE_QUEUE, /* struct sl_leaf_queue */
	SL_CHANGE_NODE, /* struct sl_node_conf */
	SL_CHANGE_REMOVE, /* of a node */
	SL_CHANGE_PARTS, /* struct sl_parts_conf, of a divided leaf */
	SL_CHANGE_CLASS_LEAF /* struct sl_class_leaf_conf, of a class */
};

struct sl_tree_change {
	u32 kind; /* enum sl_change_kind */
	u32 at; /* the number of the queue, of the node or of the class */
	u64 what[6]; /* the struct that the kind names */
};

struct sl_tree_changes {
	u64 written; /* by the loader, which stores it after the changes themselves */
	u64 made; /* by the engine */
	u64 refused; /* made without an effect: an enum sl_tree_error said why */
	struct sl_tree_change change[SL_TREE_CHANGES]; /* change n is at n modulo SL_TREE_CHANGES */
};
