/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The table of flow queues: which of them a flow has. Sets of eight ways, as in tc-cake(8). */
#pragma once
#include "queue.h"

SL_FN struct sl_flow_queue *flow_at(struct sl_sched *s, u32 i)
{
	return sl_at(s->flow, i);
}

SL_FN u32 flow_of(const struct sl_class *k, u32 hash)
{
	return k->flow_base + (hash & k->flow_mask);
}

/*
 * The queue of a flow that does not stand where it would stand first. One that is empty forgets the flow that it had, which may come
 * back as new. Who had to share the first stays there until it is empty, so that no flow is reordered.
 */
SL_GLOBAL u32 flow_find(struct sl_sched *s SL_NONNULL, u32 class, u32 hash)
{
	struct sl_class *k = sl_at(s->classes, class);
	u32 first = flow_of(k, hash), ways = sl_min(k->flow_mask, SL_FLOW_WAYS - 1), found = ~0u, n, i;
	struct sl_flow_queue *f = flow_at(s, first);
	int shared = f->shared && f->place != SL_FLOW_ABSENT;

	sl_for (n, SL_FLOW_WAYS) {
		i = k->flow_base + ((hash & k->flow_mask & ~ways) | ((hash + n) & ways));
		f = flow_at(s, i);
		if (f->hash == hash)
			return i;
		if (f->place == SL_FLOW_ABSENT && found == ~0u)
			found = i;
	}
	if (found == ~0u || shared) {
		flow_at(s, first)->shared = 1;
		return first;
	}
	f = flow_at(s, found);
	f->hash = hash;
	f->shared = 0;
	f->used_bytes = 0;
	__builtin_memset(&f->codel, 0, sizeof(f->codel));
	return found;
}
