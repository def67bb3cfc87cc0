/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Room for a packet when the slots run out: a class of the largest size (a power of two of packets) gives; if that is the new packet's own
 * class, and has one FIFO, the new packet is refused. A class that queues by flow gives
 * from its longest flow; if none of its flows has two packets, the next largest class gives. A class with one FIFO gives the packet
 * behind its head, so that no discipline has to look at its head again. A discipline that ranks packets chooses one itself.
 */
#pragma once
#include "class_flows.h"
#include "registry.h"

/* Slots that are kept for packets that come while those of dropped ones are not free yet. */
#define SL_SPARE_SLOTS 64u

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

/* Makes room for a packet of this class; returns an enum sl_room. */
SL_GLOBAL u32 room_make(struct sl_sched *s SL_NONNULL, u32 class)
{
	u32 n, c = SL_CLASSES;

	sl_for (n, 4) {
		c = room_giver(s);
		if (c >= SL_CLASSES || !sl_at(s->classes, c)->by_flow)
			break;
		if (flow_overflow(s, c))
			return SL_ROOM_MADE;
		c = SL_CLASSES; /* the lists of sizes know better now */
	}
	return c == class ? SL_ROOM_OWN : sl_give(s, c);
}
