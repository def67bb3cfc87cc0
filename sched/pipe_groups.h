/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Groups of pipes whose turn comes. The memory of a pipe is far away if there are thousands, so pipes are found two groups before their turn:
 * then the line of each pipe, its first queue and its last are fetched, one group later the first packet of that queue, and again one group later
 * it all is there.
 *
 * If a pipe is found while some of its classes are held back, its turn is for the last one that is not, and for those before it: pipes that a class finds
 * while a later one is held back have no turn of that one besides their own. If the caller holds back what the pipe might still send, the
 * turn pauses: the pipe leaves its group, is owed the rest of its turn, and goes before others when one of these classes is free again. Else
 * pipes behind others in a group would never have a turn of a class that sends a few packets in each call.
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

/* A dequeue call: its limits and its progress. */
struct sl_pipe_call {
	struct sl_pipe_packet *out;
	u32 got, wanted;
	u32 allowed; /* queues that may send */
	u32 queues; /* those of them that the subport lets send */
	struct sl_pipe_allowance *allowance; /* or none */
	struct sl_pipe_allowance sought; /* if there is one: the number of pipes that are still to be found for each class */
	u32 unsought; /* queues of classes for which enough were found */
	u32 steps;
	s64 left_bytes; /* of the subport's turn, and in the buckets of subport and port */
	u64 now_ns;
};

/* As many pipes are to be found for a class as it has packets in its allowance: each has one at least. */
SL_FN void call_seek(struct sl_pipe_call *call)
{
	if (call->allowance)
		call->sought = *call->allowance;
	call->unsought = 0;
}

/* A pipe was found that may send packets of these queues. */
SL_FN void call_found(struct sl_pipe_call *call, u32 queues)
{
	u32 class = class_of_queue(sl_lowest(queues | 1u << (SL_PIPE_QUEUES - 1))), *sought = sl_at(call->sought.pkts, class);

	if (*sought && --*sought == 0)
		call->unsought |= class_queues(class);
}

/* The queues that the turn of pipe i of a group is for. */
SL_FN u32 group_queues(const struct sl_pipe_group *g, u32 i)
{
	return (2u << *sl_at(g->last, i)) - 1;
}

/* Pipe p, which was found for these queues, is added to a group, and its memory is fetched. */
SL_FN void group_add(struct sl_pipes *t, struct sl_pipe_group *g, u32 p, u32 queues, struct sl_pipe_call *call)
{
	u32 ready = *sl_at(t->ready, p);

	sl_fetch(sl_at(t->pipe, p));
	sl_fetch(pipe_first_queue(t, p, queues));
	sl_fetch(pipe_last_queue(t, p, queues));
	*sl_at(g->pipe, g->count) = (u16)p;
	*sl_at(g->last, g->count) = (u8)(ready & ~queues ? sl_highest((ready & queues) | 1) : SL_PIPE_QUEUES - 1);
	g->count++;
	if (call->allowance)
		call_found(call, ready & queues);
}

/*
 * Adds pipes from number from up to number end to the group, until it is full or has enough of a class. Where the search goes on; end: there
 * are no more.
 */
SL_FN u32 group_fill_between(struct sl_pipes *t, struct sl_pipe_group *g, u32 from, u32 end, u32 queues,
			     struct sl_pipe_call *call)
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
			if (call->steps >= SL_PIPE_STEPS_MOST)
				return word * 64;
			call->steps++;
			bits = pipe_word_search(t, word, queues);
			if (word == from >> 6)
				bits &= ~0ULL << (from & 63);
			for (found = 0; bits && g->count < SL_PIPE_GROUP && !(queues & call->unsought); bits &= bits - 1) {
				p = word * 64 + sl_lowest(bits);
				found |= bits & -bits;
				group_add(t, g, p, queues, call);
			}
			pipe_word_engage(t, word, found);
			if (g->count == SL_PIPE_GROUP || queues & call->unsought)
				return p + 1;
		}
	}
	return end;
}

/* Finds the next pipes of a subport that may send packets of these queues; once round at most. */
SL_FN void group_fill_in_turn(struct sl_pipes *t, struct sl_subport *sub, struct sl_pipe_group *g, u32 queues,
			      struct sl_pipe_call *call)
{
	u32 *cursor = sl_at(sub->cursor, class_of_queue(sl_highest(queues))), start = *cursor, before = g->count, at;

	at = group_fill_between(t, g, start, sub->end_pipe, queues, call);
	if (at == sub->end_pipe) {
		at = sub->first_pipe;
		if (g->count < SL_PIPE_GROUP && !(queues & call->unsought) && start > sub->first_pipe) {
			at = group_fill_between(t, g, sub->first_pipe, start, queues, call);
			/* Behind the last that was found; those before it have been found too. */
			if (at == start && g->count > before)
				at = *sl_at(g->pipe, g->count - 1) + 1u;
		}
	}
	*cursor = at < sub->end_pipe ? at : sub->first_pipe;
}

/* Finds pipes of a subport that are owed a turn, and may send packets of these queues. */
SL_FN void group_fill_owed(struct sl_pipes *t, struct sl_subport *sub, struct sl_pipe_group *g, u32 queues,
			   struct sl_pipe_call *call)
{
	u32 section, word, first = sub->first_pipe >> 6, last = (sub->end_pipe - 1) >> 6;
	u64 words, bits, found, engaged, *owed;
	int stay = 0;

	for (section = first >> 6; section <= last >> 6; section++) {
		words = *sl_at(t->owed_summary, section);
		if (section == first >> 6)
			words &= ~0ULL << (first & 63);
		if (section == last >> 6)
			words &= ~0ULL >> (63 - (last & 63));
		if (words)
			words &= pipes_in_common(sl_at(t->owed_any, section * 64), queues);
		for (; words; words &= words - 1) {
			word = section * 64 + sl_lowest(words);
			if (g->count == SL_PIPE_GROUP || queues & call->unsought || call->steps >= SL_PIPE_STEPS_MOST)
				return;
			call->steps++;
			owed = sl_at(t->owed, word);
			/* A pipe without a queue that is ready is owed nothing any more. */
			*owed &= *sl_at(t->active, word);
			bits = *owed & pipe_word_search(t, word, queues);
			/* One that stands in a group or waits is looked at again when it does not any more. */
			engaged = *owed & *sl_at(t->engaged, word);
			stay |= engaged != 0;
			if (!bits && !engaged)
				*sl_at(t->owed_any, word) &= (u16)~queues;
			for (found = 0; bits && g->count < SL_PIPE_GROUP && !(queues & call->unsought); bits &= bits - 1) {
				found |= bits & -bits;
				group_add(t, g, word * 64 + sl_lowest(bits), queues, call);
			}
			*owed &= ~found;
			pipe_word_engage(t, word, found);
			if (!*owed)
				*sl_at(t->owed_summary, section) &= ~SL_BIT(word);
		}
	}
	if (!stay && g->count < SL_PIPE_GROUP && !(queues & call->unsought))
		sub->owed &= ~queues;
}

/*
 * Finds the next pipes of a subport, as many as a group has: those that are owed a turn, then others in turn. Classes take turns of their
 * own: else a class that is often held back would go on behind pipes that others have found meanwhile.
 */
SL_FN void group_fill(struct sl_pipes *t, struct sl_subport *sub, struct sl_pipe_group *g, struct sl_pipe_call *call)
{
	u32 queues;

	g->count = 0;
	do {
		queues = call->queues & ~call->unsought;
		if (!queues)
			break;
		if (sl_unlikely(sub->owed & queues))
			group_fill_owed(t, sub, g, queues, call);
		if (g->count < SL_PIPE_GROUP && !(queues & call->unsought))
			group_fill_in_turn(t, sub, g, queues, call);
	} while (g->count < SL_PIPE_GROUP && queues & call->unsought);
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

/* Pipe p is owed a turn for these queues, which are held back. */
SL_FN void pipe_is_owed(struct sl_pipes *t, struct sl_subport *sub, u32 p, u32 queues)
{
	*sl_at(t->owed, p >> 6) |= SL_BIT(p);
	*sl_at(t->owed_summary, p >> 12) |= SL_BIT(p >> 6);
	*sl_at(t->owed_any, p >> 6) |= (u16)queues;
	sub->owed |= queues;
	pipe_release(t, p);
}

/* The turn of pipe p, which has begun, goes on when these queues are not held back any more. */
SL_FN void pipe_turn_pauses(struct sl_pipes *t, struct sl_subport *sub, u32 p, struct sl_pipe *k, u32 queues)
{
	k->left_bytes = (s16)(k->left_bytes - SL_PIPE_QUANTUM_BYTES);
	pipe_is_owed(t, sub, p, queues);
}

/* The turn of pipe p is over, and what it has left is lost. */
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
SL_FN void group_begin(struct sl_pipes *t, struct sl_subport *sub, struct sl_pipe_group *g, struct sl_pipe_call *call)
{
	u32 i;

	sl_for (i, g->count) {
		u32 p = *sl_at(g->pipe, i), ready = *sl_at(t->ready, p) & group_queues(g, i);
		struct sl_pipe *k = sl_at(t->pipe, p);

		SL_PIPE_STEP();
		if (sl_unlikely(!(ready & call->queues))) {
			call->steps++;
			g->live &= ~(1u << i);
			if (ready)
				pipe_is_owed(t, sub, p, ready);
			else
				pipe_release(t, p);
			continue;
		}
		*sl_at(g->before, i) = k->left_bytes;
		k->left_bytes = (s16)(k->left_bytes + SL_PIPE_QUANTUM_BYTES);
		if (sl_likely(pipe_open(k, call->now_ns) && k->left_bytes > 0))
			continue;
		call->steps += SL_PIPE_STEPS_VAIN;
		g->live &= ~(1u << i);
		if (pipe_open(k, call->now_ns))
			pipe_turn_ends(t, p, k);
		else
			pipe_wait(t, p, k, call->now_ns);
	}
}
