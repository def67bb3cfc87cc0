/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The lists of packets that have left a scheduler and that the port has not taken: their numbers. What holds the packets keeps each at its place
 * (backpressure.h, level_backpressure.h).
 *
 *	port_list_configure	how many packets a list holds
 *	port_lists_begin	a dequeue begins: each list has its allowance
 *	port_list_add		a packet comes to a list: its place
 *	port_lists_held		the lists that have packets for the port
 *	port_list_run		places of the packets of a list, in their order
 *	port_list_taken		the port has taken so many of them
 *
 * The allowance of a list is the smaller one of the room in it and of a burst, less what has come to it in this dequeue. Packets come to the end of a
 * list, and the port takes from its beginning. So what was refused goes first.
 */
#pragma once
#include "world.h"
#include "../abi/backpressure.h"

_Static_assert(SL_BACKPRESSURE_PLACES && !(SL_BACKPRESSURE_PLACES & (SL_BACKPRESSURE_PLACES - 1)), "sl_at");
_Static_assert(SL_BACKPRESSURE_LISTS <= 32 && !(SL_BACKPRESSURE_LISTS & (SL_BACKPRESSURE_LISTS - 1)),
	       "sl_at, and bits of a word");

/* A list holds so many packets from now on. One that has more keeps them, and gets none until the port has taken enough. */
SL_FN void port_list_configure(struct sl_port_lists *l, u32 list, u32 room_pkts)
{
	*sl_at(l->room_pkts, list) = sl_min(room_pkts, SL_BACKPRESSURE_PLACES);
}

/* The lists that have packets for the port, as bits. */
SL_FN u32 port_lists_held(const struct sl_port_lists *l)
{
	u32 i, held = 0;

	sl_for (i, SL_BACKPRESSURE_LISTS)
		held |= (u32)(l->pkts[i] != 0) << i;
	return held;
}

/* A dequeue begins: nothing has come to any list. */
SL_FN void port_lists_begin(struct sl_port_lists *l)
{
	u32 i;

	sl_for (i, SL_BACKPRESSURE_LISTS)
		l->came_pkts[i] = 0;
}

/* The packets that may come to a list in a dequeue that begins. */
SL_FN u32 port_list_allowance(const struct sl_port_lists *l, u32 list)
{
	u32 room = *sl_at(l->room_pkts, list), pkts = *sl_at(l->pkts, list), free = room - sl_min(pkts, room);

	return sl_min(free, l->burst_pkts);
}

/* A packet comes to a list that has room. The place that it has from now on. */
SL_FN u32 port_list_add(struct sl_port_lists *l, u32 list)
{
	u32 *pkts = sl_at(l->pkts, list), place = (*sl_at(l->first, list) + *pkts) & (SL_BACKPRESSURE_PLACES - 1);

	(*pkts)++;
	(*sl_at(l->came_pkts, list))++;
	return place;
}

/* The place of packet number from of a list, counted from the first one on, and in *n how many packets there and behind it are in a row. */
SL_FN u32 port_list_run(const struct sl_port_lists *l, u32 list, u32 from, u32 *n)
{
	u32 pkts = *sl_at(l->pkts, list), place = (*sl_at(l->first, list) + from) & (SL_BACKPRESSURE_PLACES - 1);

	*n = from < pkts ? sl_min(pkts - from, SL_BACKPRESSURE_PLACES - place) : 0;
	return place;
}

/* The port was offered the packets of a list and has taken the first n of them, of which there are so many. */
SL_FN u32 port_list_taken(struct sl_port_lists *l, u32 list, u32 n)
{
	u32 *pkts = sl_at(l->pkts, list), *first = sl_at(l->first, list);

	n = sl_min(n, *pkts);
	*first = (*first + n) & (SL_BACKPRESSURE_PLACES - 1);
	*pkts -= n;
	*sl_at(l->taken_pkts, list) += n;
	*sl_at(l->refused_pkts, list) += *pkts;
	return n;
}
