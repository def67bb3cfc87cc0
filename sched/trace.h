/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Plays one operation of a trace: the same source in the kernel and natively. */
#pragma once
#include "core.h"
#include "../abi/trace.h"

SL_GLOBAL int sl_play(struct sl_sched *s SL_NONNULL, struct sl_op *op SL_NONNULL, const struct sl_sched_conf *conf SL_NONNULL)
{
	struct sl_packet packet = { op->class, op->len_bytes, op->segments, op->flow_hash, op->src_host, op->dst_host, op->ecn };
	struct sl_verdict v;

	switch (op->kind) {
	case SL_OP_ENQUEUE:
		op->slot = sl_enqueue(s, &packet, op->now_ns);
		break;
	case SL_OP_DEQUEUE:
		v = sl_dequeue(s, op->now_ns);
		op->action = v.action;
		op->out_slot = v.slot;
		op->out_class = v.class;
		op->mark = v.mark;
		op->wake_ns = v.wake_ns;
		break;
	case SL_OP_CONFIGURE:
		sl_configure(s, conf, op->now_ns);
		break;
	case SL_OP_CLEAR:
		sl_clear(s);
		break;
	case SL_OP_WIPE:
		sl_wipe(s);
		break;
	case SL_OP_REAP:
		op->slot = (s32)sl_reap(s);
		break;
	}
	return 0;
}
