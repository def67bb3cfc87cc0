/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The operations of a discipline. Each has a table of them, which the compiler resolves: no pointer is left in the object.
 *
 * A discipline orders classes, whose packets stand in FIFOs of their own; or it ranks packets, and keeps them itself: then it has the
 * last four operations too. Only pick must be there.
 */
#pragma once
#include "world.h"
#include "../abi/sched.h"

struct sl_discipline {
	/* Class c, which is *k, may be picked from now on; its bit in s->ready is set. */
	void (*join)(struct sl_sched *s, struct sl_class *k, u32 c, u64 now_ns);
	/* It may not, since it has no packets or no tokens; its bit is cleared. */
	void (*leave)(struct sl_sched *s, struct sl_class *k, u32 c);
	/* A class of s->ready, which is not empty. */
	u32 (*pick)(struct sl_sched *s);
	/* Class k has sent so many bytes. */
	void (*charge)(struct sl_sched *s, struct sl_class *k, u32 bytes);
	/* After that, it may be picked again. */
	void (*stay)(struct sl_sched *s, struct sl_class *k, u32 c);

	/* A packet of class k comes. */
	void (*push)(struct sl_sched *s, struct sl_class *k, u32 slot);
	/* The packet that pick has found, of class k. */
	u32 (*pop)(struct sl_sched *s, struct sl_class *k);
	/* Every packet returns to the FIFO of its class. */
	int (*dissolve)(struct sl_sched *s SL_NONNULL);
	/* Every packet of the FIFOs is taken. */
	int (*form)(struct sl_sched *s SL_NONNULL);
};
