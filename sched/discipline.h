/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The operations of a discipline. Each discipline defines one constant table of them, which the compiler resolves: no pointer is left
 * in the object.
 *
 * A discipline orders classes, whose packets wait in the class's FIFO or flow queues. One that ranks packets keeps them itself, and defines
 * the last five operations too. Every discipline defines pick.
 */
#pragma once
#include "world.h"
#include "../abi/sched.h"

/*
 * NAME_class(k) and NAME_sched(s): what discipline NAME keeps of a class and of a scheduler, in struct sl_NAME_class and struct
 * sl_NAME_sched. All of it is 0 when the discipline takes over, and after a clear. A struct may begin with that of a part that several
 * disciplines use (struct sl_virtual_class): both accessors are valid then.
 */
#define SL_DISCIPLINE_STATE(owner, name)                                                              \
	_Static_assert(sizeof(struct sl_##name##_##owner) <= sizeof(((struct sl_##owner *)0)->state), \
		       "state of " #name " is too long");                                             \
	SL_FN struct sl_##name##_##owner *name##_##owner(struct sl_##owner *of)                       \
	{                                                                                             \
		return (struct sl_##name##_##owner *)of->state;                                       \
	}
#define SL_CLASS_STATE(name) SL_DISCIPLINE_STATE(class, name)
#define SL_SCHED_STATE(name) SL_DISCIPLINE_STATE(sched, name)

struct sl_discipline {
	/* Class c, which is *k, may be picked from now on; its bit in s->ready is set. */
	void (*join)(struct sl_sched *s, struct sl_class *k, u32 c, u64 now_ns);
	/* Class c may no longer be picked: it has no packets or no tokens; its bit is cleared. */
	void (*leave)(struct sl_sched *s, struct sl_class *k, u32 c);
	/* Returns a class of s->ready, which is not empty. */
	u32 (*pick)(struct sl_sched *s);
	/* Class k has sent so many bytes. */
	void (*charge)(struct sl_sched *s, struct sl_class *k, u32 bytes);
	/*
	 * A packet of class k came at that time to a scheduler without packets, and has left without join, pick, charge and leave: does to what
	 * the discipline keeps what these would have done. Without it, packets take the slow path.
	 */
	void (*pass)(struct sl_sched *s, struct sl_class *k, u32 c, u32 bytes, u64 arrived_ns);
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
	/* Drops a packet to free a slot; returns an enum sl_room (drops.h). c: the class with the most packets, or SL_CLASSES if none is known. */
	u32 (*give)(struct sl_sched *s, u32 c);
};
