/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Priority-aware backpressure between the scheduler of pipes (pipes.h) and a port that shapes and has a finite queue for each class: a network card,
 * or a ring in front of one. A scheduler that does not know what the port refuses goes on, and its packets are lost at the port, or wait in the
 * port's order behind lower classes. Here, what the port refuses of a class holds that class back and no other: its packets stay in the
 * scheduler's queues, under the scheduler's own limits, drops and turns.
 *
 *	backpressure_configure	how many packets a list holds, and how many come to it in one dequeue
 *	backpressure_held	the classes that have packets for the port
 *	backpressure_run	packets of such a class, in their order
 *	backpressure_taken	the port has taken so many of them
 *	backpressure_dequeue	packets come from the scheduler
 *	backpressure_wake_ns	when a dequeue that gave too little is to be repeated
 *
 * A class has a list of packets that have left the scheduler and that the port has not taken. A round is: offer the port what the lists hold (held,
 * run, taken); dequeue; offer again. In a dequeue each class has an allowance, the smaller one of the room in its list and of a burst. A
 * class without allowance is held back. Packets come to the end of the list of their class, and the port takes from its beginning. So what was
 * refused goes first, and packets are grouped by class, each group with its number (sl_port_lists.pkts).
 *
 * A packet keeps its slot until the port has taken it, and not only until it leaves the scheduler. So a caller finds it where it has put it.
 * Slots in lists count among those of the port (sl_pipes.slots).
 *
 * Source: the published scheme for DPDK's rte_sched with a card that shapes, where the application keeps the lists and rte_sched is changed to skip
 * classes; here, pipes with held classes only are left out by comparing 64 of them at once (pipe_search.h).
 *
 * Bounds: a list never has more packets than its room, unless the room was larger when they came. If rounds
 * follow each arrival and departure, a class waits for a later one only for what the port holds already.
 * Cost: a dequeue is one of pipes.h, and a copy of 12 bytes for each packet; the lists have 12 KiB. A packet that is taken touches its slot.
 */
#pragma once
#include "pipes.h"
#include "port_lists.h"

_Static_assert(SL_BACKPRESSURE_LISTS == SL_PIPE_PLACES, "a list for each class");

/* Lists hold so many packets from now on. One that has more keeps them, and gets none until the port has taken enough. */
SL_FN void backpressure_configure(struct sl_backpressure *b, const struct sl_backpressure_conf *conf)
{
	u32 i;

	sl_for (i, SL_PIPE_CLASSES)
		port_list_configure(&b->lists, i, conf->room_pkts[i]);
	b->lists.burst_pkts = conf->burst_pkts;
}

/* The classes that have packets for the port, as bits. */
SL_FN u32 backpressure_held(const struct sl_backpressure *b)
{
	return port_lists_held(&b->lists);
}

/*
 * Packets of a class in their order, from number from on, and in *n how many of them are in a row. The next ones, if there are any, begin at
 * number from + *n.
 */
SL_FN const struct sl_pipe_packet *backpressure_run(const struct sl_backpressure *b, u32 class, u32 from, u32 *n)
{
	return sl_at(*sl_at(b->packet, class), port_list_run(&b->lists, class, from, n));
}

/* The port was offered the packets of a class and has taken the first n of them, whose slots are free again. */
SL_FN void backpressure_taken(struct sl_backpressure *b, struct sl_pipes *t, u32 class, u32 n)
{
	u32 first = *sl_at(b->lists.first, class), i;
	const struct sl_pipe_packet *list = *sl_at(b->packet, class);

	n = port_list_taken(&b->lists, class, n);
	sl_for (i, n) {
		SL_PIPE_STEP();
		pipes_give_back(t, list[(first + i) & (SL_BACKPRESSURE_PLACES - 1)].slot);
	}
}

/* The packets that each class may still send to its list. Returns the classes that may send any, as bits. */
SL_FN u32 backpressure_allow(const struct sl_backpressure *b, struct sl_pipe_allowance *allowance)
{
	u32 i, allowed = 0;

	sl_for (i, SL_PIPE_PLACES) {
		allowance->pkts[i] = port_list_allowance(&b->lists, i);
		allowed |= (u32)(allowance->pkts[i] != 0) << i;
	}
	return allowed;
}

/* Up to n packets of these classes (bits) leave the scheduler for the lists, of each no more than its allowance. How many. */
SL_FN u32 backpressure_dequeue(struct sl_backpressure *b, struct sl_pipes *t, u32 n, u32 classes, u64 now_ns)
{
	struct sl_pipe_packet out[SL_PIPE_BATCH];
	struct sl_pipe_allowance allowance;
	u32 i, class, got;

	port_lists_begin(&b->lists);
	backpressure_allow(b, &allowance);
	got = pipes_take(t, out, n, classes, &allowance, now_ns);
	sl_for (i, got) {
		SL_PIPE_STEP();
		class = class_of_queue(out[i].queue & (SL_PIPE_QUEUES - 1));
		*sl_at(*sl_at(b->packet, class), port_list_add(&b->lists, class)) = out[i];
	}
	return got;
}

/*
 * When a dequeue of these classes that gave nothing is to be repeated, if no packet comes and the port takes none before: now if it had not
 * finished, SL_PIPE_NEVER if no packet waits for a time. One that gave packets is repeated at once, since a burst may have ended it.
 */
SL_FN u64 backpressure_wake_ns(const struct sl_backpressure *b, struct sl_pipes *t, u32 classes, u64 now_ns)
{
	struct sl_pipe_allowance allowance;

	classes &= backpressure_allow(b, &allowance);
	return classes ? pipes_wake_ns(t, classes, now_ns) : SL_PIPE_NEVER;
}
