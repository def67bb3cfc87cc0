/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The native twins of the tree of classes and of its table of addresses: what bpf/tree_twin.bpf.c and bpf/addresses_twin.bpf.c do, without a kernel. */
#include "addresses_trace.h"
#include "hierarchy_trace.h"

void sl_native_tree_play(struct sl_tree *s, struct sl_tree_trace *t)
{
	u32 i;

	for (i = 0; i < t->count; i++)
		tree_play(s, &t->op[i]);
}

void sl_native_addresses_play(const struct sl_addresses *s, struct sl_address_trace *t)
{
	u32 i;

	for (i = 0; i < t->count; i++)
		addresses_play(s, &t->op[i]);
}
