/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The native twin of the tree of classes: what bpf/tree_twin.bpf.c does, without a kernel. */
#include "hierarchy_trace.h"

void sl_native_tree_play(struct sl_tree *s, struct sl_tree_trace *t)
{
	u32 i;

	for (i = 0; i < t->count; i++)
		tree_play(s, &t->op[i]);
}
