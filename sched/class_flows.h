/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The flow queues of classes of the flat scheduler: a table in which each class has its part, in sets of eight ways, as in tc-cake(8). */
#pragma once
#include "drops.h"

SL_FN struct sl_class *class_of(struct sl_sched *s, u32 class)
{
	return sl_at(s->classes, class);
}

/* The class has a flow of two packets or more: it can give one when slots run out. */
SL_FN void class_gives(struct sl_sched *s, u32 class)
{
	s->can_give |= SL_BIT(class);
}

SL_FN void class_keeps(struct sl_sched *s, u32 class)
{
	s->can_give &= ~SL_BIT(class);
}

/* A queue without packets stays its flow's until another takes it. */
SL_FN void flow_rests(struct sl_sched *s, const struct sl_class *k, u32 i)
{
	(void)s;
	(void)k;
	(void)i;
}

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

/* The queue in which a flow of class *k stands, or is to stand. */
SL_FN u32 flow_queue_of(struct sl_sched *s, const struct sl_class *k, u32 class, u32 hash)
{
	u32 i = flow_of(k, hash);

	if (sl_likely(flow_at(s, i)->hash == hash) || !k->flow_mask)
		return i;
	return flow_find(s, class, hash);
}

#include "flow_queue.h"
