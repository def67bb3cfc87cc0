/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Room for a packet when the slots run out: the class that holds most gives, whoever the newcomer is. A class that queues by flow gives
 * from its longest flow; if none of its flows has two packets, the next largest class gives. A class with one FIFO gives the packet
 * behind its head, so that no discipline has to look at its head again. A PIFO gives the packet that would leave last.
 */
#pragma once
#include "flow_queue.h"
#include "pifo.h"

/* Slots that are kept for packets that come while those of dropped ones are not free yet. */
#define SL_SPARE_SLOTS 64u

enum sl_room { SL_ROOM_NONE, SL_ROOM_MADE, SL_ROOM_OWN /* the newcomer's class holds most, and has one FIFO */ };

/* The largest class that can give: by size, and of one size the lowest. SL_CLASSES: none can. */
SL_GLOBAL u32 room_giver(struct sl_sched *s SL_NONNULL)
{
	u64 givers = s->can_give | ~s->flow_classes_set;
	u32 n;

	sl_for (n, SL_CLASS_SIZES) {
		u64 large = *sl_at(s->large, SL_CLASS_SIZES - 1 - n) & givers;

		if (large)
			return sl_lowest(large);
	}
	return s->can_give ? sl_lowest(s->can_give) : SL_CLASSES;
}

/* The second packet of a FIFO that has two. */
SL_FN u32 room_second(struct sl_sched *s, struct sl_queue *queue)
{
	struct sl_slot *head = sl_at(s->slot, queue->head);
	u32 slot = head->next;

	head->next = sl_at(s->slot, slot)->next;
	if (queue->tail == slot)
		queue->tail = queue->head;
	return slot;
}

/* The packet that would leave a PIFO last drops, unless its class has no other. */
SL_FN u32 room_in_pifo(struct sl_sched *s)
{
	u32 bucket, slot, class;
	struct sl_class *k;

	if (!s->pifo.summary)
		return SL_ROOM_NONE;
	bucket = pifo_last(s);
	class = sl_at(s->slot, sl_at(s->pifo.bucket, bucket)->head)->class;
	k = sl_at(s->classes, class);
	if (k->backlog_pkts < 2)
		return SL_ROOM_NONE;
	if (pifo_aside(k)) {
		slot = queue_pop(s, &k->queue);
	} else {
		slot = pifo_pop(s, bucket);
		k->ranked_pkts--;
	}
	slot_drop(s, k, slot, SL_DROP_OVERFLOW);
	class_shrunk(s, k, class);
	return SL_ROOM_MADE;
}

/* For a packet of a class. Which enum sl_room. */
SL_GLOBAL u32 room_make(struct sl_sched *s SL_NONNULL, u32 class)
{
	struct sl_class *k;
	u32 n, c;

	sl_for (n, 4) {
		c = room_giver(s);
		if (c >= SL_CLASSES)
			break;
		k = sl_at(s->classes, c);
		if (k->by_flow) {
			if (flow_overflow(s, c))
				return SL_ROOM_MADE;
			continue; /* the lists of sizes know better now */
		}
		if (c == class)
			return SL_ROOM_OWN;
		if (SL_KIND_OF(s) == SL_PIFO && !(pifo_aside(k) && k->backlog_pkts - k->ranked_pkts > 1))
			break;
		slot_drop(s, k, room_second(s, &k->queue), SL_DROP_OVERFLOW);
		class_shrunk(s, k, c);
		return SL_ROOM_MADE;
	}
	return SL_KIND_OF(s) == SL_PIFO ? room_in_pifo(s) : SL_ROOM_NONE;
}
