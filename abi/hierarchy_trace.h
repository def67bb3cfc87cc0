/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* A trace of operations on one tree of classes, and what it answered: what a twin test plays to two builds of the core. */
#pragma once
#include "hierarchy.h"

#define SL_TREE_TRACE_OPS 2048u /* of one batch */

enum sl_tree_op_kind {
	SL_TREE_OP_ENQUEUE,
	SL_TREE_OP_DEQUEUE,
	SL_TREE_OP_CONFIGURE,
	SL_TREE_OP_REMOVE,
	SL_TREE_OP_DROP,
	SL_TREE_OP_REAP,
	SL_TREE_OP_SET_UP,
	SL_TREE_OP_SET_QUEUE,
	SL_TREE_OP_SET_PARTS,
	SL_TREE_OP_ENQUEUE_CLASS /* as ENQUEUE, at the part for a class */
};

struct sl_tree_op {
	u32 kind; /* enum sl_tree_op_kind */
	u32 node; /* ENQUEUE, ENQUEUE_CLASS, DROP and SET_PARTS: a leaf; SET_QUEUE: which */
	u32 class; /* ENQUEUE_CLASS */
	u32 len_bytes; /* from here on: ENQUEUE and ENQUEUE_CLASS */
	u32 segments;
	u32 flow_hash;
	u16 src_host;
	u16 dst_host;
	u32 ecn;
	u32 mark; /* answer of DEQUEUE */
	u32 pad;
	struct sl_node_conf conf; /* CONFIGURE */
	struct sl_tree_conf tree; /* SET_UP */
	struct sl_leaf_queue queue; /* SET_QUEUE */
	struct sl_parts_conf parts; /* SET_PARTS */
	u64 now_ns;
	/* answers */
	s32 result; /* ENQUEUE, ENQUEUE_CLASS, DROP and REAP: the slot, or the refusal; CONFIGURE and REMOVE: an enum sl_tree_error */
	u32 action; /* DEQUEUE: the verdict, as sched/hierarchy.h has it */
	u32 slot;
	u32 leaf;
	u64 wake_ns;
};

struct sl_tree_trace {
	u32 count; /* of the batch's operations that count */
	u32 pad;
	struct sl_tree_op op[SL_TREE_TRACE_OPS];
};
