/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Which flow of a class is the longest, in O(1): flows of two packets and more stand in lists by the logarithm of their bytes. A flow
 * goes up as soon as its bytes have doubled, and down when half of the least for its list are left: so it moves at most once for each
 * doubling or halving, and a flow from the upper lists has at least a quarter of the bytes of the longest.
 */
#pragma once
#include "queue.h"

#define SL_SIZE_SHIFT 11u /* list 1 has flows of less than 4 KiB, list n those from 2^(n + 10) bytes on */
#define SL_NO_FLOW    (~0u)
/* Flows that an overflow compares. */
#define SL_SIZE_LOOKS 16u

SL_FN u32 flow_size(u32 bytes)
{
	u32 log = sl_log2(bytes | 1);

	return log <= SL_SIZE_SHIFT ? 1 : sl_min(log - SL_SIZE_SHIFT + 1, SL_FLOW_SIZES - 1);
}

/* Flow *f leaves the list in which it stands. */
SL_FN void flow_unlist(SL_SCHEDULER *s, struct sl_fair *fair, u32 class, struct sl_flow_queue *f)
{
	u16 *first = sl_at(fair->longer, f->size);

	if (f->size_next)
		flow_at(s, f->size_next - 1u)->size_before = f->size_before;
	if (f->size_before)
		flow_at(s, f->size_before - 1u)->size_next = f->size_next;
	else
		*first = f->size_next;
	if (!*first)
		fair->sizes &= ~(1u << (f->size & (SL_FLOW_SIZES - 1)));
	if (!fair->sizes)
		class_keeps(s, class);
	f->size = 0;
}

/* Flow i, of two packets or more, comes to the list of its size. */
SL_FN void flow_list(SL_SCHEDULER *s, struct sl_fair *fair, u32 class, struct sl_flow_queue *f, u32 i)
{
	u16 *first;

	f->size = (u8)flow_size(f->backlog_bytes);
	first = sl_at(fair->longer, f->size);
	f->size_before = 0;
	f->size_next = *first;
	if (*first)
		flow_at(s, *first - 1u)->size_before = (u16)(i + 1);
	*first = (u16)(i + 1);
	fair->sizes |= 1u << (f->size & (SL_FLOW_SIZES - 1));
	class_gives(s, class);
}

SL_GLOBAL int flow_resize(SL_SCHEDULER *s SL_NONNULL, u32 class, u32 i)
{
	struct sl_fair *fair = sl_at(s->fair, class);
	struct sl_flow_queue *f = flow_at(s, i);

	if (f->size)
		flow_unlist(s, fair, class, f);
	if (f->backlog_pkts > 1)
		flow_list(s, fair, class, f, i);
	return 0;
}

/* Flow i has one packet more, and not its only one. */
SL_FN void flow_grown(SL_SCHEDULER *s, u32 class, u32 i)
{
	struct sl_flow_queue *f = flow_at(s, i);

	if (sl_unlikely(!f->size || (f->backlog_bytes >> f->size) >> SL_SIZE_SHIFT))
		flow_resize(s, class, i);
}

/* Flow i has fewer packets. One that has a single packet left may stay in the list of the shortest until it has none. */
SL_FN void flow_shrunk(SL_SCHEDULER *s, u32 class, u32 i)
{
	struct sl_flow_queue *f = flow_at(s, i);

	if (sl_unlikely(f->size &&
			(!f->backlog_pkts || (f->size > 1 && f->backlog_bytes < (1u << (SL_SIZE_SHIFT - 2)) << f->size))))
		flow_resize(s, class, i);
}

/* The head of flow i, which has another packet, is dropped. */
SL_FN void flow_drop(SL_SCHEDULER *s, SL_CLASS *k, u32 class, u32 i, u32 reason)
{
	struct sl_flow_queue *f = flow_at(s, i);
	u32 slot = queue_pop(s, &f->queue);

	f->backlog_pkts--;
	f->backlog_bytes -= sl_at(s->slot, slot)->len_bytes;
	flow_shrunk(s, class, i);
	slot_drop(s, k, slot, reason);
}

/* The longest of the flows that are first in the two upper lists of the class; SL_NO_FLOW: none has two packets. */
SL_FN u32 flow_longest(SL_SCHEDULER *s, u32 class)
{
	struct sl_fair *fair = sl_at(s->fair, class);
	u32 n, found = SL_NO_FLOW, most = 0, lists = 2, size, i = 0, next;
	struct sl_flow_queue *f;

	if (!fair->sizes)
		return SL_NO_FLOW;
	size = sl_log2(fair->sizes);
	i = *sl_at(fair->longer, size);
	sl_for (n, SL_SIZE_LOOKS) {
		if (!i) {
			u32 below = fair->sizes & ((1u << size) - 1);

			if (!below || (found != SL_NO_FLOW && --lists < 1))
				break;
			size = sl_log2(below);
			i = *sl_at(fair->longer, size);
			if (!i)
				break;
		}
		f = flow_at(s, i - 1);
		next = f->size_next;
		if (f->backlog_pkts < 2) {
			flow_unlist(s, fair, class, f);
		} else if (f->backlog_bytes > most) {
			most = f->backlog_bytes;
			found = i - 1;
		}
		i = next;
	}
	return found;
}

/*
 * Drops half of the packets of the longest flow of a class, rounded up and SL_OVERFLOW_PKTS at most, from its head; never its only one.
 * How many; 0: each flow has one at most.
 */
SL_GLOBAL u32 flow_overflow(SL_SCHEDULER *s SL_NONNULL, u32 class)
{
	SL_CLASS *k = class_of(s, class);
	u32 n, pkts, dropped = 0, i = flow_longest(s, class);

	if (i == SL_NO_FLOW)
		return 0;
	pkts = (flow_at(s, i)->backlog_pkts + 1) / 2;
	sl_for (n, SL_OVERFLOW_PKTS) {
		if (n >= pkts || flow_at(s, i)->backlog_pkts < 2)
			break;
		flow_drop(s, k, class, i, SL_DROP_OVERFLOW);
		dropped++;
	}
	class_shrunk(s, k, class);
	return dropped;
}
