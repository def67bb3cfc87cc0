/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The native twin of the scheduler: what bpf/twin.bpf.c does, without a kernel. */
#include "trace.h"

void sl_native_play(struct sl_sched *s, struct sl_trace *t, const struct sl_sched_conf *confs)
{
	u32 i;

	for (i = 0; i < t->count; i++)
		sl_play(s, &t->op[i], &confs[t->op[i].class & (SL_TRACE_CONFS - 1)]);
}
