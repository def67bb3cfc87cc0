/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Packets that are dropped after they were queued, and which classes have many to give. */
#pragma once
#include "queue.h"

/* A class is large from so many packets on. */
#define SL_LARGE_PKTS_SHIFT 6u

/* Whether a packet has made room for another. */
enum sl_room { SL_ROOM_NONE, SL_ROOM_MADE, SL_ROOM_OWN /* the newcomer's class holds most, and has one FIFO */ };

/* The packet of the slot, which has left its queue, is the engine's to free: sl_reap. */
SL_FN void slot_drop(struct sl_sched *s, struct sl_class *k, u32 slot, u32 reason)
{
	struct sl_slot *q = sl_at(s->slot, slot);

	k->backlog_pkts--;
	k->backlog_bytes -= q->len_bytes;
	s->backlog_pkts--;
	k->dropped_pkts[reason]++;
	k->dropped_bytes += q->len_bytes;
	slot_drop_for(s, q, slot, reason);
}

/*
 * Class c gets the size that its packets make: 0, or n if they are from 32 * 2^n to less than twice that. It is called when they reach the next
 * size, and when they fall below half of the least for their size, so that it does not change with every packet.
 */
SL_GLOBAL int class_resize(struct sl_sched *s SL_NONNULL, u32 c)
{
	struct sl_class *k = sl_at(s->classes, c);
	u32 pkts = k->backlog_pkts;

	if (k->size)
		*sl_at(s->large, k->size) &= ~SL_BIT(c);
	k->size = pkts >> SL_LARGE_PKTS_SHIFT ? (u8)(sl_log2(pkts) - (SL_LARGE_PKTS_SHIFT - 1)) : 0;
	if (k->size)
		*sl_at(s->large, k->size) |= SL_BIT(c);
	k->grows_at_pkts = (1u << SL_LARGE_PKTS_SHIFT) << k->size;
	k->shrinks_below_pkts = k->size ? k->grows_at_pkts >> 2 : 0;
	return 0;
}

/* Class c, which is *k, has one packet more. */
SL_FN void class_grown(struct sl_sched *s, const struct sl_class *k, u32 c)
{
	if (sl_unlikely(k->backlog_pkts >= k->grows_at_pkts))
		class_resize(s, c);
}

/* Class c, which is *k, has fewer. */
SL_FN void class_shrunk(struct sl_sched *s, const struct sl_class *k, u32 c)
{
	if (sl_unlikely(k->backlog_pkts < k->shrinks_below_pkts))
		class_resize(s, c);
}

/* The second packet of class c's FIFO, which has two, drops. */
SL_FN u32 fifo_give(struct sl_sched *s, u32 c)
{
	struct sl_class *k = sl_at(s->classes, c);
	struct sl_slot *head = sl_at(s->slot, k->queue.head);
	u32 slot = head->next;

	head->next = sl_at(s->slot, slot)->next;
	if (k->queue.tail == slot)
		k->queue.tail = k->queue.head;
	slot_drop(s, k, slot, SL_DROP_OVERFLOW);
	class_shrunk(s, k, c);
	return SL_ROOM_MADE;
}
