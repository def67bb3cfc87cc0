/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Plays one operation of a trace to a tree of classes: the same source in the kernel and natively. */
#pragma once
#include "hierarchy.h"
#include "../abi/hierarchy_trace.h"

SL_GLOBAL int tree_play(struct sl_tree *t SL_NONNULL, struct sl_tree_op *op SL_NONNULL)
{
	struct sl_tree_verdict v;

	switch (op->kind) {
	case SL_TREE_OP_ENQUEUE:
		op->result = tree_enqueue(t, op->node, op->bytes, op->now_ns);
		break;
	case SL_TREE_OP_DEQUEUE:
		v = tree_dequeue(t, op->now_ns);
		op->action = v.action;
		op->slot = v.slot;
		op->leaf = v.leaf;
		op->out_bytes = v.bytes;
		op->wake_ns = v.wake_ns;
		break;
	case SL_TREE_OP_CONFIGURE:
		op->result = tree_configure(t, op->node, &op->conf, op->now_ns);
		break;
	case SL_TREE_OP_REMOVE:
		op->result = tree_remove(t, op->node);
		break;
	case SL_TREE_OP_DROP:
		op->result = tree_drop(t, op->node);
		break;
	}
	return 0;
}
