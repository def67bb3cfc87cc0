/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Slots: which are free, and FIFO queues of those that are not. All of it is O(1). */
#pragma once
#include "scheduler.h"

#define SL_NO_SLOT       (~0u)
/* The most packets that are dropped at once, to make room or by CoDel. */
#define SL_OVERFLOW_PKTS 64u

SL_FN u32 slot_take(SL_SCHEDULER *s)
{
	u32 i = s->free;

	if (s->free_count) {
		s->free_count--;
		s->free = sl_at(s->slot, i)->next;
		return i;
	}
	return s->fresh < s->slots ? s->fresh++ : SL_NO_SLOT;
}

/* Slot i, which is *q, is free. */
SL_FN void slot_give(SL_SCHEDULER *s, SL_SLOT *q, u32 i)
{
	q->next = s->free;
	s->free = (u16)i;
	s->free_count++;
}

SL_FN void queue_push(SL_SCHEDULER *s, struct sl_queue *q, u32 i, int was_empty)
{
	if (was_empty)
		q->head = (u16)i;
	else
		sl_at(s->slot, q->tail)->next = (u16)i;
	q->tail = (u16)i;
}

SL_FN u32 queue_pop(SL_SCHEDULER *s, struct sl_queue *q)
{
	u32 i = q->head;

	q->head = sl_at(s->slot, i)->next;
	return i;
}

/* Those of one queue, which has some, go behind those of another. */
SL_FN void queue_append(SL_SCHEDULER *s, struct sl_queue *q, const struct sl_queue *more, int was_empty)
{
	if (was_empty)
		q->head = more->head;
	else
		sl_at(s->slot, q->tail)->next = more->head;
	q->tail = more->tail;
}

/* The packet of the slot, which has left its queue, is the engine's to free. */
SL_FN void slot_drop_for(SL_SCHEDULER *s, SL_SLOT *q, u32 slot, u32 reason)
{
	q->dropped_for = (u8)reason;
	queue_push(s, &s->dropped, slot, !s->dropped_slots);
	s->dropped_slots++;
}

/* The slot of a packet that was dropped, which is free again; SL_NO_SLOT: there is none. */
SL_FN u32 sl_reap(SL_SCHEDULER *s)
{
	u32 slot;

	if (sl_likely(!s->dropped_slots))
		return SL_NO_SLOT;
	s->dropped_slots--;
	slot = queue_pop(s, &s->dropped);
	slot_give(s, sl_at(s->slot, slot), slot);
	return slot;
}
