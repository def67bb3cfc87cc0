/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The next pipes that may send, from bitmaps alone: no memory of a pipe is touched before it is found.
 *
 * A pipe has 16 bits, its queues that are ready; one bit if it has such queues (active); and one if it stands in a group or waits for tokens
 * (engaged). A word of 64 pipes has a bit in the summary if one of them may be active and not engaged, and 16 bits for the queues that may be
 * ready in one of them. If some classes are held back, 64 pipes' queues are compared with the others' at once (pipe_vectors.h). So neither a pipe without
 * packets, nor one without tokens, nor one whose classes are all held back is looked at.
 *
 * The bits of a word in summary and any may be out of date in one way: they name more than there is. A search that finds nothing there corrects it.
 */
#pragma once
#include "pipe_wheel.h"
#include "pipe_vectors.h"

#define SL_PIPE_ALL_QUEUES 0xffffu

/* Queues of pipe p are ready that were not. */
SL_FN void pipe_ready(struct sl_pipes *t, u32 p, u32 queues)
{
	u32 word = p >> 6;

	*sl_at(t->ready, p) |= (u16)queues;
	*sl_at(t->any, word) |= (u16)queues;
	*sl_at(t->active, word) |= SL_BIT(p);
	*sl_at(t->summary, word >> 6) |= SL_BIT(word);
}

/* Pipe p stands in no group any more, and does not wait for tokens. */
SL_FN void pipe_release(struct sl_pipes *t, u32 p)
{
	u32 word = p >> 6, ready = *sl_at(t->ready, p);

	*sl_at(t->engaged, word) &= ~SL_BIT(p);
	if (!ready) {
		*sl_at(t->active, word) &= ~SL_BIT(p);
		return;
	}
	*sl_at(t->any, word) |= (u16)ready;
	*sl_at(t->summary, word >> 6) |= SL_BIT(word);
}

/* Of the pipes of a word, those that may have a turn: they have one of these queues ready, and are not engaged. */
SL_FN u64 pipe_word_search(struct sl_pipes *t, u32 word, u32 queues)
{
	u64 bits = *sl_at(t->active, word) & ~*sl_at(t->engaged, word);

	SL_PIPE_STEP();
	if (sl_unlikely(queues != SL_PIPE_ALL_QUEUES) && bits) {
		bits &= pipes_in_common(sl_at(t->ready, word * 64), queues);
		if (!bits)
			*sl_at(t->any, word) &= (u16)~queues;
	}
	return bits;
}

/* These pipes of a word have been found, and are engaged from now on. */
SL_FN void pipe_word_engage(struct sl_pipes *t, u32 word, u64 found)
{
	u64 *engaged = sl_at(t->engaged, word);

	*engaged |= found;
	if (!(*sl_at(t->active, word) & ~*engaged))
		*sl_at(t->summary, word >> 6) &= ~SL_BIT(word);
}
