/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Pipes that wait, in the buckets of a timing wheel (wheel_buckets.h). A bucket is a doubly linked list, so that a pipe whose limits change can be
 * taken out. A pipe that waits longer than the wheel is long (67 ms) is looked at earlier, and waits again. Cost: O(1) to add, to take and to
 * remove.
 */
#pragma once
#include "wheel_buckets.h"
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
	u32 b = wheel_bucket(&w->wheel, opens_ns, now_ns), first = *sl_at(w->wheel.first, b);
	struct sl_pipe_link *link = sl_at(w->link, p);

	link->next = (u16)first;
	link->before = (u16)(SL_WHEEL_HEAD + b);
	if (first)
		sl_at(w->link, first - 1)->before = (u16)(p + 1);
	wheel_begin(&w->wheel, b, p + 1);
}

/* Pipe p waits no longer, if it did. */
SL_FN void pipe_wheel_remove(struct sl_pipe_wheel *w, u32 p)
{
	struct sl_pipe_link *link = sl_at(w->link, p);
	u32 next = link->next, before = link->before, b = before - SL_WHEEL_HEAD;

	if (!before)
		return;
	link->before = 0;
	if (next)
		sl_at(w->link, next - 1)->before = (u16)before;
	if (before < SL_WHEEL_HEAD) {
		sl_at(w->link, before - 1)->next = (u16)next;
		return;
	}
	wheel_first_gone(&w->wheel, b, next);
}

/* A pipe whose time has come, which waits no longer; SL_PIPES: there is none. */
SL_FN u32 pipe_wheel_take(struct sl_pipe_wheel *w, u64 now_ns)
{
	u64 until = now_ns >> SL_WHEEL_TICK_BITS;
	u32 ahead, p;

	/* So buckets up to now are empty. */
	if (w->wheel.tick > until)
		return SL_PIPES;
	ahead = wheel_ahead(&w->wheel);
	if (ahead == SL_WHEEL_BUCKETS || w->wheel.tick + ahead > until) {
		w->wheel.tick = until + 1;
		return SL_PIPES;
	}
	w->wheel.tick += ahead;
	SL_PIPE_STEP();
	p = *sl_at(w->wheel.first, (u32)w->wheel.tick) - 1u;
	pipe_wheel_remove(w, p);
	return p;
}

/* The time of the next pipe; SL_PIPE_NEVER: none waits. */
SL_FN u64 pipe_wheel_next_ns(struct sl_pipe_wheel *w)
{
	u32 ahead = wheel_ahead(&w->wheel);

	return ahead == SL_WHEEL_BUCKETS ? SL_PIPE_NEVER : (w->wheel.tick + ahead) << SL_WHEEL_TICK_BITS;
}
