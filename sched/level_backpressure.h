/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Priority-aware backpressure between the flat scheduler (core.h) and a port that refuses packets: the scheme of backpressure.h, by levels.
 *
 *	level_backpressure_configure	how many lists there are, and how many packets each holds
 *	level_backpressure_follow	the scheduler has another configuration
 *	level_backpressure_begin	a dequeue begins
 *	level_backpressure_dequeue	send this slot to that place of a list, or wait until then, or idle; in the place of sl_dequeue
 *	port_list_taken			the port has taken so many packets of a list (port_lists.h)
 *
 * Classes of one level share what it sends, as the discipline says. Strict priority has several levels, the other disciplines have one. There
 * is a list for each level and not for each class: behind lists of their own, two classes of a level would share as the port takes their packets, and
 * not by their weights. Where the list of a level has no allowance, its classes are held back (hold_back.h); their packets stay in
 * their queues, under the scheduler's limits and drops, and other levels go on. If there are more levels than lists, the last
 * list has the rest of them; in it, packets stand in the order in which the scheduler has let them go.
 *
 * A list knows places and no packets: the engine moves the packet of the slot to the place, before the next enqueue. So slots are free at once, and
 * what waits for the port counts neither to the scheduler's slots nor to the limits of classes.
 *
 * Bounds: as in backpressure.h. A level waits for a lower one only for what the port holds already. Cost: for each packet, a few tests; when a list
 * gets full or has room again while other levels send, O(log classes) for each class of its level that has packets.
 */
#pragma once
#include "hold_back.h"
#include "port_lists.h"

struct sl_level_verdict {
	struct sl_verdict verdict; /* SL_WAIT until SL_HOLD_NEVER_NS or later: until the port takes packets, or one comes */
	u32 list; /* SL_SEND: the packet comes to this list, */
	u32 place; /* at this place */
};

/* The list of a level of this scheduler. */
SL_FN u32 level_list(const struct sl_level_backpressure *b, const struct sl_sched *s, u32 level)
{
	return s->kind == SL_STRICT_PRIORITY ? sl_min(level, b->used - 1) : 0;
}

/* There are so many lists from now on, and they hold so many packets. To be called while all are empty; level_backpressure_follow is to follow. */
SL_FN void level_backpressure_configure(struct sl_level_backpressure *b, const struct sl_level_backpressure_conf *conf)
{
	u32 i;

	b->used = sl_min(sl_max(conf->lists, 1), SL_BACKPRESSURE_LISTS);
	sl_for (i, SL_BACKPRESSURE_LISTS)
		port_list_configure(&b->lists, i, i < b->used ? conf->room_pkts : 0);
	b->lists.burst_pkts = conf->burst_pkts;
}

/* The scheduler was configured (sl_configure, which lets all classes go) or cleared. Packets in lists stay there. */
SL_FN void level_backpressure_follow(struct sl_level_backpressure *b, const struct sl_sched *s)
{
	u32 i, list;

	b->held = 0;
	sl_for (i, SL_BACKPRESSURE_LISTS)
		b->classes[i] = 0;
	sl_for (i, SL_CLASSES) {
		list = level_list(b, s, i);
		*sl_at(b->classes, list) |= *sl_at(s->level_classes, i);
	}
}

/* A dequeue begins: each list has its allowance. */
SL_FN void level_backpressure_begin(struct sl_level_backpressure *b)
{
	u32 i;

	port_lists_begin(&b->lists);
	b->full = 0;
	sl_for (i, SL_BACKPRESSURE_LISTS)
		b->full |= (u32)!port_list_allowance(&b->lists, i) << i;
}

/* The classes whose lists have no allowance, as bits. */
SL_FN u64 level_blocked(const struct sl_level_backpressure *b)
{
	u64 blocked = 0, full = b->full;
	u32 n, i;

	sl_for_bits (n, i, full)
		blocked |= *sl_at(b->classes, i);
	return blocked;
}

/* Class c, which is ready, is held back. It keeps the credit of its turn, which a class that runs empty would lose. */
SL_FN void level_pause(struct sl_sched *s, u32 c, u64 now_ns)
{
	struct sl_drr_class *k = drr_class(class_at(s, c));
	s32 deficit_bytes = k->deficit_bytes;

	hold_back(s, c, now_ns + SL_HOLD_NEVER_NS);
	k->deficit_bytes = deficit_bytes;
}

/*
 * Ready classes among the blocked ones are held back, and held ones that are not blocked any more are let go. The discipline is strict priority: with
 * others, either all classes are blocked or none.
 */
SL_GLOBAL int level_hold(struct sl_level_backpressure *b SL_NONNULL, struct sl_sched *s SL_NONNULL, u64 blocked, u64 now_ns)
{
	u64 holds = s->ready & blocked, ends = b->held & s->held & ~blocked;
	u32 n, c;

	b->held = (b->held & s->held & blocked) | holds;
	sl_for_bits (n, c, ends) {
		hold_back_end(s, c);
		/* It may have a ceiling besides. */
		sl_offer(s, class_at(s, c), c, now_ns);
	}
	sl_for_bits (n, c, holds)
		level_pause(s, c, now_ns);
	return 0;
}

/*
 * The next packet leaves the scheduler for its list, whose level has an allowance. SL_WAIT or SL_IDLE: the dequeue is over, and so it is when the caller
 * has enough.
 */
SL_FN struct sl_level_verdict level_backpressure_dequeue(struct sl_level_backpressure *b, struct sl_sched *s, u64 now_ns)
{
	struct sl_level_verdict v = { { SL_WAIT, 0, 0, 0, 0, 0 }, 0, 0 };
	u64 blocked = level_blocked(b), ready;

	/* Else they would join while a class is chosen. */
	if (sl_unlikely(s->held && now_ns >= s->held_until_ns))
		sl_release(s, now_ns);
	ready = hold_back_ready(s);
	if (sl_unlikely((ready & blocked) | (b->held & ~blocked))) {
		if (!((ready | (b->held & s->held)) & ~blocked)) {
			/* Nothing may leave, so nothing is to be changed. */
			v.verdict.wake_ns = s->held ? s->held_until_ns : now_ns + SL_HOLD_NEVER_NS;
			return v;
		}
		level_hold(b, s, blocked, now_ns);
	}
	v.verdict = sl_dequeue(s, now_ns);
	if (v.verdict.action != SL_SEND)
		return v;
	v.list = level_list(b, s, class_at(s, v.verdict.class)->level);
	v.place = port_list_add(&b->lists, v.list);
	if (*sl_at(b->lists.came_pkts, v.list) >= b->lists.burst_pkts ||
	    *sl_at(b->lists.pkts, v.list) >= *sl_at(b->lists.room_pkts, v.list))
		b->full |= 1u << v.list;
	return v;
}
