/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Plays one operation of a trace to a tree of classes: the same source in the kernel and natively. */
#pragma once
#include "tree_change.h"
#include "../abi/hierarchy_trace.h"

SL_GLOBAL int tree_play(struct sl_tree *t SL_NONNULL, struct sl_tree_op *op SL_NONNULL)
{
	struct sl_packet packet = { op->node, op->len_bytes, op->segments, op->flow_hash, op->src_host, op->dst_host, op->ecn };
	struct sl_tree_verdict v;

	switch (op->kind) {
	case SL_TREE_OP_ENQUEUE_CLASS:
		packet.class = leaf_of_class(t, op->node, op->class);
		op->result = tree_enqueue(t, &packet, op->now_ns);
		break;
	case SL_TREE_OP_ENQUEUE:
		op->result = tree_enqueue(t, &packet, op->now_ns);
		break;
	case SL_TREE_OP_DEQUEUE:
		v = tree_dequeue(t, op->now_ns);
		op->action = v.action;
		op->slot = v.slot;
		op->leaf = v.leaf;
		op->mark = v.mark;
		op->wake_ns = v.wake_ns;
		break;
	case SL_TREE_OP_CONFIGURE:
		op->result = (s32)tree_configure(t, op->node, &op->conf, op->now_ns);
		break;
	case SL_TREE_OP_REMOVE:
		op->result = (s32)tree_remove(t, op->node);
		break;
	case SL_TREE_OP_DROP:
		op->result = (s32)tree_drop(t, op->node, op->now_ns);
		break;
	case SL_TREE_OP_REAP:
		op->result = (s32)sl_reap(t);
		break;
	case SL_TREE_OP_SET_UP:
		tree_set_up(t, &op->tree);
		break;
	case SL_TREE_OP_SET_QUEUE:
		tree_set_queue(t, op->node, &op->queue);
		break;
	case SL_TREE_OP_SET_PARTS:
		tree_set_parts(t, op->node, &op->parts);
		break;
	}
	return 0;
}
