/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* A trace of operations on one scheduler, and what it answered: what a twin test plays to two builds of the core. */
#pragma once
#include "sched.h"

#define SL_TRACE_OPS   4096u /* of one batch */
#define SL_TRACE_CONFS 16u

enum sl_op_kind { SL_OP_ENQUEUE, SL_OP_DEQUEUE, SL_OP_CONFIGURE, SL_OP_CLEAR, SL_OP_WIPE, SL_OP_REAP };

struct sl_op {
	u32 kind; /* enum sl_op_kind */
	u32 class; /* ENQUEUE; CONFIGURE: which configuration */
	u32 len_bytes;
	u32 segments;
	u32 flow_hash;
	u16 src_host;
	u16 dst_host;
	u32 ecn;
	u32 mark; /* answer of DEQUEUE */
	u64 now_ns;
	/* answers */
	s32 slot; /* ENQUEUE: or the refusal; REAP */
	u32 action; /* DEQUEUE: the verdict, as sched/core.h has it */
	u32 out_slot;
	u32 out_class;
	u64 wake_ns;
};

struct sl_trace {
	u32 count; /* of the batch's operations that count */
	u32 pad;
	struct sl_op op[SL_TRACE_OPS];
};
