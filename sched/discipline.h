/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The operations of a discipline. Each discipline defines one constant table of them, which the compiler resolves: no pointer is left
 * in the object.
 *
 * A discipline orders classes, whose packets stand in FIFOs of their own. The PIFO ranks packets and keeps them itself: it has the last
 * four operations too. Only pick must be there.
 */
#pragma once
#include "world.h"
#include "../abi/sched.h"

struct sl_discipline {
	/* Class c, which is *k, may be picked from now on; its bit in s->ready is set. */
	void (*join)(struct sl_sched *s, struct sl_class *k, u32 c, u64 now_ns);
	/* Class c may no longer be picked: it has no packets or no tokens; its bit is cleared. */
	void (*leave)(struct sl_sched *s, struct sl_class *k, u32 c);
	/* Returns a class of s->ready, which is not empty. */
	u32 (*pick)(struct sl_sched *s);
	/* Class k has sent so many bytes. */
	void (*charge)(struct sl_sched *s, struct sl_class *k, u32 bytes);
	/* Class c was charged, and may be picked again. */
	void (*stay)(struct sl_sched *s, struct sl_class *k, u32 c);

	/* Takes a packet of class k. */
	void (*push)(struct sl_sched *s, struct sl_class *k, u32 slot);
	/* Removes and returns the packet that pick has found, of class k. */
	u32 (*pop)(struct sl_sched *s, struct sl_class *k);
	/* Returns every packet to the FIFO of its class. An int, as the verifier wants of a global function. */
	int (*dissolve)(struct sl_sched *s SL_NONNULL);
	/* Takes every packet of the FIFOs. */
	int (*form)(struct sl_sched *s SL_NONNULL);
};
