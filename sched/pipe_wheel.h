/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Timing wheel of pipes that wait (Varghese and Lauck, SOSP 1987), as wheel.h is of nodes: a bucket for each 16 us, and a bit for each bucket
 * that is not empty. A bucket is a doubly linked list, so that a pipe whose limits change can be taken out. A pipe that waits longer than the
 * wheel is long (67 ms) is looked at earlier, and waits again. Cost: O(1) to add, to take and to remove.
 */
#pragma once
#include "world.h"
#include "../abi/pipes.h"

/* Tests count the steps of a call: pipes that are looked at, and words of bitmaps that are searched. */
#ifndef SL_PIPE_STEP
#define SL_PIPE_STEP()
#endif

SL_FN int pipe_waits(struct sl_pipe_wheel *w, u32 p)
{
	return sl_at(w->link, p)->before != 0;
}

/* Pipe p, which is not in the wheel yet, waits until opens_ns. */
SL_FN void pipe_wheel_add(struct sl_pipe_wheel *w, u32 p, u64 opens_ns, u64 now_ns)
{
	u64 tick = (opens_ns + (1U << SL_PIPE_TICK_BITS) - 1) >> SL_PIPE_TICK_BITS;
	struct sl_pipe_link *link = sl_at(w->link, p);
	u32 b, first;

	if (!w->words)
		w->tick = sl_max(w->tick, now_ns >> SL_PIPE_TICK_BITS);
	tick = sl_min(sl_max(tick, w->tick), w->tick + SL_PIPE_BUCKETS - 1);
	b = (u32)tick & (SL_PIPE_BUCKETS - 1);
	first = *sl_at(w->first, b);
	link->next = (u16)first;
	link->before = (u16)(SL_PIPE_HEAD + b);
	if (first)
		sl_at(w->link, first - 1)->before = (u16)(p + 1);
	*sl_at(w->first, b) = (u16)(p + 1);
	*sl_at(w->used, b >> 6) |= SL_BIT(b);
	w->words |= SL_BIT(b >> 6);
}

/* Pipe p waits no longer, if it did. */
SL_FN void pipe_wheel_remove(struct sl_pipe_wheel *w, u32 p)
{
	struct sl_pipe_link *link = sl_at(w->link, p);
	u32 next = link->next, before = link->before, b = before - SL_PIPE_HEAD;

	if (!before)
		return;
	link->before = 0;
	if (next)
		sl_at(w->link, next - 1)->before = (u16)before;
	if (before < SL_PIPE_HEAD) {
		sl_at(w->link, before - 1)->next = (u16)next;
		return;
	}
	*sl_at(w->first, b) = (u16)next;
	if (next)
		return;
	*sl_at(w->used, b >> 6) &= ~SL_BIT(b);
	if (!*sl_at(w->used, b >> 6))
		w->words &= ~SL_BIT(b >> 6);
}

/* The first bucket that is not empty, as a distance from the one of tick; SL_PIPE_BUCKETS: there is none. */
SL_FN u32 pipe_wheel_ahead(struct sl_pipe_wheel *w)
{
	u32 from = (u32)w->tick & (SL_PIPE_BUCKETS - 1), word = from >> 6;
	u64 bits = *sl_at(w->used, word) & (~0ULL << (from & 63)), later;

	if (!w->words)
		return SL_PIPE_BUCKETS;
	if (!bits) {
		/* Once round: buckets of the same word below tick come last. */
		later = word == 63 ? 0 : w->words & (~0ULL << (word + 1));
		word = sl_lowest(later ? later : w->words);
		bits = *sl_at(w->used, word);
	}
	return ((word << 6) + sl_lowest(bits) - from) & (SL_PIPE_BUCKETS - 1);
}

/* A pipe whose time has come, which waits no longer; SL_PIPES: there is none. */
SL_FN u32 pipe_wheel_take(struct sl_pipe_wheel *w, u64 now_ns)
{
	u64 until = now_ns >> SL_PIPE_TICK_BITS;
	u32 ahead, p;

	/* So buckets up to now are empty. */
	if (w->tick > until)
		return SL_PIPES;
	ahead = pipe_wheel_ahead(w);
	if (ahead == SL_PIPE_BUCKETS || w->tick + ahead > until) {
		w->tick = until + 1;
		return SL_PIPES;
	}
	w->tick += ahead;
	SL_PIPE_STEP();
	p = *sl_at(w->first, (u32)w->tick) - 1u;
	pipe_wheel_remove(w, p);
	return p;
}

/* When the next pipe's time comes; SL_PIPE_NEVER: none waits. */
SL_FN u64 pipe_wheel_next_ns(struct sl_pipe_wheel *w)
{
	u32 ahead = pipe_wheel_ahead(w);

	return ahead == SL_PIPE_BUCKETS ? SL_PIPE_NEVER : (w->tick + ahead) << SL_PIPE_TICK_BITS;
}
