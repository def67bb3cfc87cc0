/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Groups of pipes whose turn comes. The memory of a pipe is far away if there are thousands, so pipes are found two groups before their turn:
 * then the line of each pipe, its first queue and its last are fetched, one group later the first packet of that queue, and again one group later
 * it all is there.
 */
#pragma once
#include "pipe_bucket.h"
#include "pipe_slots.h"

/* Of a dequeue call: words of bitmaps and, four times as much each, pipes that are looked at and do not send. */
#define SL_PIPE_STEPS_MOST    128
#define SL_PIPE_STEPS_VAIN    4
#define SL_PIPE_QUANTUM_BYTES 1514
/* Of sl_subport.group: the one that has its turn, the next one, and the one that was found last. */
#define SL_PIPE_GROUPS_USED   3

#define sl_fetch(address) __builtin_prefetch(address, 1)

/* The first queue that pipe p will serve. */
SL_FN struct sl_pipe_queue *pipe_first_queue(struct sl_pipes *t, u32 p, u32 queues)
{
	/* A queue of its own if it has none of these any more. */
	u32 ready = (*sl_at(t->ready, p) & queues) | 1u << (SL_PIPE_QUEUES - 1);

	return sl_at(t->queue, p * SL_PIPE_QUEUES + sl_lowest(ready));
}

/* The last one: it may be in another line. */
SL_FN struct sl_pipe_queue *pipe_last_queue(struct sl_pipes *t, u32 p, u32 queues)
{
	return sl_at(t->queue, p * SL_PIPE_QUEUES + sl_highest((*sl_at(t->ready, p) & queues) | 1));
}

/* Adds pipes from number from up to number end to the group, until it is full. Where the search goes on; end: there are no more. */
SL_FN u32 group_fill_between(struct sl_pipes *t, struct sl_pipe_group *g, u32 from, u32 end, u32 queues, u32 *steps)
{
	u32 section, word, p = from, last = end - 1;
	u64 words, bits, found;

	for (section = from >> 12; section <= last >> 12; section++) {
		words = *sl_at(t->summary, section);
		if (section == from >> 12)
			words &= ~0ULL << (from >> 6 & 63);
		if (section == last >> 12)
			words &= ~0ULL >> (63 - (last >> 6 & 63));
		if (queues != SL_PIPE_ALL_QUEUES && words)
			words &= pipes_in_common(sl_at(t->any, section * 64), queues);
		for (; words; words &= words - 1) {
			word = section * 64 + sl_lowest(words);
			if (*steps >= SL_PIPE_STEPS_MOST)
				return word * 64;
			(*steps)++;
			bits = pipe_word_search(t, word, queues);
			if (word == from >> 6)
				bits &= ~0ULL << (from & 63);
			for (found = 0; bits && g->count < SL_PIPE_GROUP; bits &= bits - 1) {
				p = word * 64 + sl_lowest(bits);
				found |= bits & -bits;
				sl_fetch(sl_at(t->pipe, p));
				sl_fetch(pipe_first_queue(t, p, queues));
				sl_fetch(pipe_last_queue(t, p, queues));
				*sl_at(g->pipe, g->count) = (u16)p;
				g->count++;
			}
			pipe_word_engage(t, word, found);
			if (g->count == SL_PIPE_GROUP)
				return p + 1;
		}
	}
	return end;
}

/* Finds the next pipes of a subport, as many as a group has; once round at most. */
SL_FN void group_fill(struct sl_pipes *t, struct sl_subport *sub, struct sl_pipe_group *g, u32 queues, u32 *steps)
{
	u32 start = sub->cursor, at;

	g->count = 0;
	at = group_fill_between(t, g, start, sub->end_pipe, queues, steps);
	if (at == sub->end_pipe) {
		at = sub->first_pipe;
		if (g->count < SL_PIPE_GROUP && start > sub->first_pipe) {
			at = group_fill_between(t, g, sub->first_pipe, start, queues, steps);
			/* Behind the last that was found; those before it have been found too. */
			if (at == start && g->count)
				at = *sl_at(g->pipe, g->count - 1) + 1u;
		}
	}
	sub->cursor = at < sub->end_pipe ? at : sub->first_pipe;
	g->live = (1u << g->count) - 1;
	g->todo = 0;
}

/* Fetches the first packets of a group's pipes. */
SL_FN void group_fetch_packets(struct sl_pipes *t, const struct sl_pipe_group *g, u32 queues)
{
	u32 i;

	sl_for (i, g->count)
		sl_fetch(sl_at(t->slot, queue_first(pipe_first_queue(t, *sl_at(g->pipe, i), queues)->chain)));
}

/* The turn of pipe p is over. */
SL_FN void pipe_turn_ends(struct sl_pipes *t, u32 p, struct sl_pipe *k)
{
	k->left_bytes = (s16)sl_min(k->left_bytes, 0);
	pipe_release(t, p);
}

/* Pipe p waits until its bucket has tokens. */
SL_FN void pipe_wait(struct sl_pipes *t, u32 p, struct sl_pipe *k, u64 now_ns)
{
	k->left_bytes = 0;
	pipe_wheel_add(sl_at(t->wheel, SL_PIPE_TOKENS), p, pipe_opens_ns(k), now_ns);
}

/* The pipes of a group begin their turn; those that may not send have none. */
SL_FN void group_begin(struct sl_pipes *t, struct sl_pipe_group *g, u32 queues, u64 now_ns, u32 *steps)
{
	u32 i;

	sl_for (i, g->count) {
		u32 p = *sl_at(g->pipe, i);
		struct sl_pipe *k = sl_at(t->pipe, p);

		SL_PIPE_STEP();
		k->left_bytes = (s16)(k->left_bytes + SL_PIPE_QUANTUM_BYTES);
		if (sl_likely(pipe_open(k, now_ns) && k->left_bytes > 0 && *sl_at(t->ready, p) & queues))
			continue;
		*steps += SL_PIPE_STEPS_VAIN;
		g->live &= ~(1u << i);
		if (pipe_open(k, now_ns) || !*sl_at(t->ready, p))
			pipe_turn_ends(t, p, k);
		else
			pipe_wait(t, p, k, now_ns);
	}
}
