/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The native twins: what bpf/twin.bpf.c and bpf/tree_twin.bpf.c do, without a kernel. */
#include "hierarchy_trace.h"
#include "trace.h"

void sl_native_play(struct sl_sched *s, struct sl_trace *t, const struct sl_sched_conf *confs)
{
	u32 i;

	for (i = 0; i < t->count; i++)
		sl_play(s, &t->op[i], &confs[t->op[i].class & (SL_TRACE_CONFS - 1)]);
}

void sl_native_tree_play(struct sl_tree *s, struct sl_tree_trace *t)
{
	u32 i;

	for (i = 0; i < t->count; i++)
		tree_play(s, &t->op[i]);
}
