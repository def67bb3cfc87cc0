/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Slots and queues of pipes: where packets stand, and what is counted when they come and go. */
#pragma once
#include "pipe_credits.h"

_Static_assert(SL_PIPE_LEN_BITS + SL_PIPE_STAMP_BITS == 32, "sl_pipe_slot.packet");

#define SL_PIPE_LEN_MASK ((1u << SL_PIPE_LEN_BITS) - 1)

/* The number of a queue's first slot. */
SL_FN u32 queue_first(u64 chain)
{
	return (u32)chain & ((1u << SL_PIPE_INDEX_BITS) - 1);
}

SL_FN u32 queue_last(u64 chain)
{
	return (u32)(chain >> SL_PIPE_INDEX_BITS) & ((1u << SL_PIPE_INDEX_BITS) - 1);
}

SL_FN u32 queue_pkts(u64 chain)
{
	return (u32)(chain >> 2 * SL_PIPE_INDEX_BITS);
}

SL_FN struct sl_subport *subport_of_pipe(struct sl_pipes *t, u32 p)
{
	return sl_at(t->subport, *sl_at(t->subport_of, p >> 6) - 1u);
}

SL_FN struct sl_pipe_profile *profile_of_pipe(struct sl_pipes *t, u32 p)
{
	return sl_at(t->profile, *sl_at(t->profile_of, p));
}

SL_FN u32 pipe_wire_bytes(const struct sl_pipes *t, u32 len_bytes)
{
	return sl_max(len_bytes + (u32)t->overhead_bytes, t->mpu_bytes);
}

SL_FN u32 slot_len_bytes(const struct sl_pipe_slot *s)
{
	return s->packet & SL_PIPE_LEN_MASK;
}

/* A slot that is free; SL_PIPE_NO_SLOT: there is none. */
SL_FN u32 pipe_slot_take(struct sl_pipes *t)
{
	u32 slot = t->free;

	if (sl_likely(t->free_count)) {
		t->free = sl_at(t->slot, slot)->next;
		t->free_count--;
		return slot;
	}
	return t->fresh < t->slots ? t->fresh++ : SL_PIPE_NO_SLOT;
}

SL_FN void pipe_slot_give(struct sl_pipes *t, u32 slot, struct sl_pipe_slot *s)
{
	s->next = t->free;
	t->free = slot;
	t->free_count++;
}

/* Counts a packet of a queue as dropped for an enum sl_drop. */
SL_FN void pipe_count_drop(struct sl_pipes *t, u32 queue, u32 reason)
{
	struct sl_subport *sub = subport_of_pipe(t, queue / SL_PIPE_QUEUES);

	(*sl_at(t->dropped_pkts, queue / SL_PIPE_QUEUES))++;
	if (*sl_at(t->subport_of, queue / SL_PIPE_QUEUES >> 6))
		sl_at(sub->dropped_pkts, class_of_queue(queue & (SL_PIPE_QUEUES - 1)))[0][reason]++;
}

/* Takes the first packet out of a queue, which has some. Its slot. */
SL_FN u32 pipe_queue_take(struct sl_pipes *t, struct sl_pipe_queue *q)
{
	u64 chain = q->chain;
	u32 slot = queue_first(chain);
	const struct sl_pipe_slot *s = sl_at(t->slot, slot);

	q->chain = chain - slot + (s->next & ((1u << SL_PIPE_INDEX_BITS) - 1)) - (1ULL << 2 * SL_PIPE_INDEX_BITS);
	q->backlog_bytes -= slot_len_bytes(s);
	return slot;
}

/* A packet of a subport is gone. */
SL_FN void subport_shrinks(struct sl_pipes *t, struct sl_subport *sub, u32 pkts)
{
	sub->pkts -= pkts;
	t->pkts -= pkts;
	if (!sub->pkts)
		t->busy_subports &= ~SL_BIT((u32)(sub - t->subport));
}
