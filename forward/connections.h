/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The table of connections: records in an array, and sets of places by a keyed hash of the addresses and ports of a packet, in which each
 * connection stands twice, for the packets of either side. A full set sends entries to a second one (Azar, Broder, Karlin and Upfal,
 * "Balanced allocations", STOC 1994), and counts them.
 *
 * CPUs share it without locks. A record is claimed by a compare-and-swap of its state, and written before its places are; a serial in the state says
 * whether it is still the same connection's. A place is taken and given back by a compare-and-swap.
 *
 * The file that includes this one has said before what a table is (SL_TABLE), and what these are:
 *   connection_at(table, n), places_at(table, n)   the record of that number or NULL; the set of the lower bits of n, or NULL
 *   connection_number(table, n)                    the record's number in the lower bits of n
 *   tuple_hash(table, tuple)                       a keyed hash
 *   connection_timeouts(table)                     the time-outs, never NULL
 *   connections_of(table, end)                     counter of a client's connections that do not give way, by a keyed hash of its address (of IPv6
 *                                                  of its first 64 bits), or NULL
 *   connections_for_each(table)                    the most of these
 *   connection_ended(table, c)                     another connection takes the place of c
 *   host_ports(table)                              ports that the host gives to connections of its own, never NULL (for ports.h)
 */
#pragma once
#include "tracking.h"
#include "tuple.h"

#define SL_NO_CONNECTION    0u
#define SL_CONNECTION_STEP  (1u << 8) /* of the serial */
/* Records that are looked at for a new connection. */
#define SL_CONNECTION_WALK  64u
/* Searches for one that gives way, where another CPU claims the same one at the same moment, or none of those in a row does. */
#define SL_CONNECTION_TRIES 4u
/* Records between the begins of two searches, in a table of any size: what came in a row, and stays, is not met twice. */
#define SL_CONNECTION_LEAP  0x9e3779b1u

SL_FN u32 connection_state_of(u32 word)
{
	return word & 0xff;
}

SL_FN int ends_are_equal(const struct sl_end *a, const struct sl_end *b)
{
	return a->address[3] == b->address[3] && a->address[2] == b->address[2] && a->address[1] == b->address[1] &&
	       a->address[0] == b->address[0];
}

/* The packets of a side, as they arrive here. */
SL_FN void connection_tuple(struct sl_tuple *t, const struct sl_connection *c, u32 side)
{
	t->proto = c->proto;
	t->src = side == SL_CLIENT ? c->client : c->target;
	t->dst = side == SL_CLIENT ? c->listen : c->source;
	t->sport = side == SL_CLIENT ? c->client_port : c->target_port;
	t->dport = side == SL_CLIENT ? c->listen_port : c->source_port;
}

/* The packets of a side, as they leave: the answers to those of the other side. */
SL_FN void connection_rewrite(struct sl_tuple *t, const struct sl_connection *c, u32 side)
{
	struct sl_tuple answer;

	connection_tuple(&answer, c, side ^ 1);
	tuple_reverse(t, &answer);
}

/* The side whose packets have these addresses and ports, or SL_SIDES. */
SL_FN u32 connection_side(const struct sl_connection *c, const struct sl_tuple *t)
{
	if (c->proto != t->proto)
		return SL_SIDES;
	if (c->client_port == t->sport && c->listen_port == t->dport && ends_are_equal(&c->client, &t->src) &&
	    ends_are_equal(&c->listen, &t->dst))
		return SL_CLIENT;
	if (c->target_port == t->sport && c->source_port == t->dport && ends_are_equal(&c->target, &t->src) &&
	    ends_are_equal(&c->source, &t->dst))
		return SL_TARGET;
	return SL_SIDES;
}

/* Another CPU may write the word meanwhile. */
SL_FN u32 shared_read(const u32 *word)
{
	return *(const volatile u32 *)word;
}

SL_FN u32 place_word(u32 number, u32 hash)
{
	return number | (hash & ~(SL_CONNECTIONS - 1));
}

SL_FN u32 place_number(u32 word)
{
	return word & (SL_CONNECTIONS - 1);
}

/* The set in which an entry stands if that of its hash is full. */
SL_FN u32 second_set(u32 hash)
{
	return hash * 0x9e3779b1u >> 12;
}

/* The connection with a packet of these addresses and ports in a set, or none. A function of its own for the verifier. */
SL_GLOBAL u32 connection_in(SL_TABLE *table SL_NONNULL, const struct sl_tuple *tuple SL_NONNULL, u32 hash, u32 set)
{
	struct sl_places *places = table ? places_at(table, set) : 0;
	struct sl_connection *c;
	u32 i, word, state, side;

	if (!places || !tuple)
		return SL_NO_CONNECTION;
	for (i = 0; i < SL_PLACE_WAYS; i++) {
		word = shared_read(&places->way[i]);
		if ((word ^ hash) >> SL_CONNECTION_BITS || !place_number(word))
			continue;
		c = connection_at(table, place_number(word));
		if (!c)
			continue;
		state = shared_read(&c->state);
		if (connection_state_of(state) < SL_TCP_OPENING)
			continue;
		side = connection_side(c, tuple);
		if (side < SL_SIDES && shared_read(&c->state) >> 8 == state >> 8)
			return place_number(word);
	}
	return SL_NO_CONNECTION;
}

/* The connection with a packet of these addresses and ports, or none. hash is tuple_hash of them. */
SL_FN u32 connection_find(SL_TABLE *table, const struct sl_tuple *tuple, u32 hash)
{
	u32 found = connection_in(table, tuple, hash, hash);
	struct sl_places *places;

	if (found)
		return found;
	places = places_at(table, hash);
	if (!places || !shared_read(&places->elsewhere))
		return SL_NO_CONNECTION;
	return connection_in(table, tuple, hash, second_set(hash));
}

/* Puts a word in place of another one, in the first way that has that one. Returns 0 if none has. */
SL_FN int places_swap(struct sl_places *places, u32 old, u32 new)
{
	u32 i;

	for (i = 0; i < SL_PLACE_WAYS; i++)
		if (shared_read(&places->way[i]) == old && __sync_val_compare_and_swap(&places->way[i], old, new) == old)
			return 1;
	return 0;
}

/* Enters a connection at a hash, or (`enter` is 0) removes its entry. Returns 0 if there is no place, or no entry. */
SL_GLOBAL u32 connection_place(SL_TABLE *table SL_NONNULL, u32 number, u32 hash, u32 enter)
{
	u32 word = place_word(number, hash), old = enter ? 0 : word, new = enter ? word : 0;
	struct sl_places *first, *second;

	if (!table)
		return 0;
	first = places_at(table, hash);
	second = places_at(table, second_set(hash));
	if (!first || !second)
		return 0;
	if (places_swap(first, old, new))
		return 1;
	if (enter)
		__sync_fetch_and_add(&first->elsewhere, 1); /* before it is there: nobody may miss it */
	if (places_swap(second, old, new)) {
		if (!enter)
			__sync_fetch_and_add(&first->elsewhere, -1);
		return 1;
	}
	if (enter)
		__sync_fetch_and_add(&first->elsewhere, -1);
	return 0;
}

/* Ticks since the connection's last packet. */
SL_FN u32 connection_silence(const struct sl_connection *c, u32 tick)
{
	s32 silence = (s32)(tick - shared_read(&c->last_tick));

	return silence < 0 ? 0 : (u32)silence; /* another CPU's clock is ahead */
}

/* How willingly a connection gives way to a new one: 4: it is over; 0: not at all. */
SL_FN u32 connection_gives_way(u32 state, u32 silence, const struct sl_timeouts *t)
{
	u32 s = connection_state_of(state);

	if (s == SL_CONNECTION_FREE)
		return 4;
	if (s == SL_CONNECTION_CLAIMED)
		return 0;
	if (silence >= *sl_at(t->ticks, s))
		return 4;
	if (s == SL_TCP_CLOSED)
		return 3;
	if (s == SL_TCP_OPENING || s == SL_UDP_ONE_WAY)
		return 2;
	return s == SL_TCP_SURPLUS || (s == SL_UDP_ANSWERED && silence >= t->ticks[SL_UDP_ONE_WAY]);
}

/* Ranks of records, from the one that gives way least: how willingly, and among equals for how long they have been silent. */
#define SL_RANK_BITS    29u
#define SL_RANK_IS_OVER (4u << SL_RANK_BITS)

/* The rank of the n-th record, 0 if it does not give way. A function of its own for the verifier. */
SL_GLOBAL u32 connection_rank(SL_TABLE *table SL_NONNULL, u32 n, u32 tick)
{
	struct sl_connection *c;
	u32 silence, way;

	if (!table || !n)
		return 0;
	c = connection_at(table, n);
	if (!c)
		return 0;
	silence = connection_silence(c, tick);
	way = connection_gives_way(shared_read(&c->state), silence, connection_timeouts(table));
	return way ? way << SL_RANK_BITS | sl_min(silence, (1u << SL_RANK_BITS) - 1) : 0;
}

/* Of the records from `hand` on, the one that gives way most willingly, and of these the one that has been silent for longest; or none. */
SL_GLOBAL u32 connection_victim(SL_TABLE *table SL_NONNULL, u32 hand, u32 tick)
{
	u32 i, n, rank, best = SL_NO_CONNECTION, highest = 0;

	if (!table)
		return SL_NO_CONNECTION;
	for (i = 0; i < SL_CONNECTION_WALK; i++) {
		n = connection_number(table, hand + i);
		rank = connection_rank(table, n, tick);
		if (rank <= highest)
			continue;
		highest = rank;
		best = n;
		if (rank >= SL_RANK_IS_OVER)
			break;
	}
	return best;
}

/* Ends a connection whose record this CPU has claimed. */
SL_FN void connection_remove(SL_TABLE *table, struct sl_connection *c, u32 number)
{
	struct sl_tuple tuple;

	connection_tuple(&tuple, c, SL_CLIENT);
	connection_place(table, number, tuple_hash(table, &tuple), 0);
	connection_tuple(&tuple, c, SL_TARGET);
	connection_place(table, number, tuple_hash(table, &tuple), 0);
}

/* Counts one connection more (1) or less (-1) that does not give way. */
SL_FN void connection_count_client(SL_TABLE *table, const struct sl_connection *c, u32 one)
{
	u32 *many = connections_of(table, &c->client);

	if (many)
		__sync_fetch_and_add(many, one);
}

/* Claims a record in a state. Returns the state's word to publish it with later, or 0: another CPU was faster. */
SL_FN u32 connection_claim(SL_TABLE *table, struct sl_connection *c, u32 state)
{
	u32 claimed = ((state >> 8) + 1) << 8 | SL_CONNECTION_CLAIMED;

	if (__sync_val_compare_and_swap(&c->state, state, claimed) != state)
		return 0;
	if (connection_state_of(state) == SL_TCP_ESTABLISHED)
		connection_count_client(table, c, -1u);
	return claimed;
}

/* A connection that is no longer wanted: its places and its record are free. Nothing happens if another CPU has changed its state. */
SL_FN void connection_end(SL_TABLE *table, struct sl_connection *c, u32 number, u32 state)
{
	u32 claimed = connection_claim(table, c, state);

	if (!claimed)
		return;
	connection_ended(table, c);
	connection_remove(table, c, number);
	*(volatile u32 *)&c->state = claimed & ~0xffu;
}

/*
 * Whether a connection is to end before a packet of it: its time is over, or a client's segment begins another one with the addresses and ports of one
 * that is closed (RFC 9293, 3.6.1). The forward may lead elsewhere now.
 */
SL_FN int connection_is_over(SL_TABLE *table, const struct sl_connection *c, u32 state, u32 side, const struct sl_segment *p,
			     u32 tick)
{
	if (connection_gives_way(state, connection_silence(c, tick), connection_timeouts(table)) == 4)
		return connection_state_of(state) != SL_CONNECTION_FREE;
	return connection_state_of(state) == SL_TCP_CLOSED && side == SL_CLIENT && c->proto == 6 &&
	       (p->flags & (SL_TCP_SYN | SL_TCP_ACK | SL_TCP_RST)) == SL_TCP_SYN;
}

/* Whether another connection has the packets of one side as well, and comes first in the search: both began at once, on two CPUs. */
SL_FN int connection_is_second(SL_TABLE *table, const struct sl_connection *c, u32 number, u32 side)
{
	struct sl_tuple tuple;
	u32 found;

	connection_tuple(&tuple, c, side);
	found = connection_find(table, &tuple, tuple_hash(table, &tuple));
	return found && found != number;
}

/* Instead of a connection's number: it was refused; beside an enum sl_not_forwarded. */
#define SL_REFUSED (1u << 31)

/* As connection_open, but a full set of places refuses the connection. A function of its own for its stack. */
SL_GLOBAL u32 connection_enter(SL_TABLE *table SL_NONNULL, struct sl_connection *like SL_NONNULL, u32 tick, u32 hand)
{
	const struct sl_timeouts *t = connection_timeouts(table);
	u32 i, number = 0, claimed = 0, state = 0;
	struct sl_connection *c = 0, *found;
	struct sl_tuple tuple;

	if (!table || !like)
		return SL_REFUSED;
	for (i = 0; i < SL_CONNECTION_TRIES && !claimed; i++) {
		number = connection_victim(table, hand + i * SL_CONNECTION_LEAP, tick);
		found = number ? connection_at(table, number) : 0;
		if (!found)
			continue;
		c = found;
		state = shared_read(&c->state);
		if (connection_gives_way(state, connection_silence(c, tick), t))
			claimed = connection_claim(table, c, state);
	}
	if (!c)
		return SL_REFUSED | SL_NOT_FORWARDED_FULL;
	if (!claimed)
		return SL_REFUSED | SL_NOT_FORWARDED_TWIN;
	if (connection_state_of(state) != SL_CONNECTION_FREE) {
		connection_ended(table, c);
		connection_remove(table, c, number);
	}
	like->state = claimed; /* no other CPU may see another one */
	like->last_tick = tick;
	*c = *like;

	connection_tuple(&tuple, c, SL_CLIENT);
	if (!connection_place(table, number, tuple_hash(table, &tuple), 1))
		goto no_place;
	connection_tuple(&tuple, c, SL_TARGET);
	if (!connection_place(table, number, tuple_hash(table, &tuple), 1)) {
		connection_tuple(&tuple, c, SL_CLIENT);
		connection_place(table, number, tuple_hash(table, &tuple), 0);
		goto no_place;
	}
	claimed = (claimed & ~0xffu) | (like->proto == 6 ? SL_TCP_OPENING : SL_UDP_ONE_WAY);
	*(volatile u32 *)&c->state = claimed;
	if (sl_unlikely(connection_is_second(table, c, number, SL_CLIENT) || connection_is_second(table, c, number, SL_TARGET))) {
		connection_end(table, c, number, claimed);
		return SL_REFUSED | SL_NOT_FORWARDED_TWIN;
	}
	return number;
no_place:
	*(volatile u32 *)&c->state = claimed & ~0xffu;
	return SL_REFUSED | SL_NOT_FORWARDED_FULL;
}

/* The free places in both sets of a hash, of which there may be one set. */
SL_GLOBAL u32 places_free_at(SL_TABLE *table SL_NONNULL, u32 hash)
{
	struct sl_places *first, *second;
	u32 i, many = 0;

	if (!table)
		return 0;
	first = places_at(table, hash);
	second = places_at(table, second_set(hash));
	if (!first || !second)
		return 0;
	for (i = 0; i < SL_PLACE_WAYS; i++)
		many += !place_number(shared_read(&first->way[i])) +
			(first != second && !place_number(shared_read(&second->way[i])));
	return many;
}

/* The connection in both sets of a hash that gives way most willingly, and of equals the one that has been silent for longest; or none. */
SL_GLOBAL u32 connection_victim_at(SL_TABLE *table SL_NONNULL, u32 hash, u32 tick)
{
	u32 i, n, rank, best = SL_NO_CONNECTION, highest = 0;
	struct sl_places *places;

	if (!table)
		return SL_NO_CONNECTION;
	for (i = 0; i < 2 * SL_PLACE_WAYS; i++) {
		places = places_at(table, i < SL_PLACE_WAYS ? hash : second_set(hash));
		if (!places)
			break;
		n = place_number(shared_read(&places->way[i % SL_PLACE_WAYS]));
		rank = connection_rank(table, n, tick);
		if (rank <= highest)
			continue;
		highest = rank;
		best = n;
	}
	return best;
}

/* Ends a connection that gives way where the sets of a side of a new one have not places for both of its entries. Returns whether one has ended. A function of its own for its stack. */
SL_GLOBAL u32 connection_make_place(SL_TABLE *table SL_NONNULL, struct sl_connection *like SL_NONNULL, u32 side, u32 tick)
{
	struct sl_connection *c;
	struct sl_tuple tuple;
	u32 hash, number, state;

	if (!table || !like)
		return 0;
	connection_tuple(&tuple, like, side);
	hash = tuple_hash(table, &tuple);
	if (places_free_at(table, hash) >= SL_SIDES)
		return 0;
	number = connection_victim_at(table, hash, tick);
	c = number ? connection_at(table, number) : 0;
	if (!c)
		return 0;
	state = shared_read(&c->state);
	if (connection_state_of(state) == SL_CONNECTION_FREE ||
	    !connection_gives_way(state, connection_silence(c, tick), connection_timeouts(table)))
		return 0; /* another CPU was faster */
	connection_end(table, c, number, state);
	return 1;
}

/* Ends connections that give way where the sets of a new one are full: up to two for a side, as the other side's entry may take the first place. */
SL_FN u32 connection_make_room(SL_TABLE *table, struct sl_connection *like, u32 tick)
{
	u32 ended = connection_make_place(table, like, SL_CLIENT, tick);

	ended += connection_make_place(table, like, SL_CLIENT, tick);
	ended += connection_make_place(table, like, SL_TARGET, tick);
	return ended + connection_make_place(table, like, SL_TARGET, tick);
}

/*
 * Enters a connection with the ends, protocol, forward and class of `like`, whose TCP sides tcp_open has set. hand: where the search for a record
 * begins. Who fills records and sets with half-open connections keeps no new one out. Returns its number, or SL_REFUSED | enum sl_not_forwarded.
 */
SL_FN u32 connection_open(SL_TABLE *table, struct sl_connection *like, u32 tick, u32 hand)
{
	u32 number = connection_enter(table, like, tick, hand);

	if (sl_unlikely(number == (SL_REFUSED | SL_NOT_FORWARDED_FULL)) && connection_make_room(table, like, tick))
		number = connection_enter(table, like, tick, hand);
	return number;
}

/* Counts packets of a side that pass, some of them on several CPUs at a time: a sender moves between them. */
SL_FN void connection_count(struct sl_connection *c, u32 side, u32 pkts, u32 bytes, u32 tick)
{
	__sync_fetch_and_add(sl_at(c->pkts, side), pkts);
	__sync_fetch_and_add(sl_at(c->bytes, side), bytes);
	if (c->last_tick != tick)
		c->last_tick = tick;
}

/*
 * Moves a connection to another state. A client's connections that are established and do not give way are counted, and no more than its share:
 * otherwise a few clients would keep the whole table for days.
 */
SL_FN void connection_move(SL_TABLE *table, struct sl_connection *c, u32 state, u32 next)
{
	u32 was = connection_state_of(state), *many = connections_of(table, &c->client);

	if (!many)
		return;
	if (next == SL_TCP_ESTABLISHED && __sync_fetch_and_add(many, 1) >= connections_for_each(table)) {
		__sync_fetch_and_add(many, -1);
		next = SL_TCP_SURPLUS;
	}
	if (__sync_val_compare_and_swap(&c->state, state, (state & ~0xffu) | next) != state)
		was = next; /* another CPU was faster: nothing has changed */
	if (was == SL_TCP_ESTABLISHED)
		__sync_fetch_and_add(many, -1);
}

/* A packet of a side passes. state: what the state's word was when the connection was found. */
SL_FN void connection_pass(SL_TABLE *table, struct sl_connection *c, u32 state, u32 side, const struct sl_segment *p, u32 pkts,
			   u32 bytes, u32 tick)
{
	u32 next = connection_state(c, connection_state_of(state), side, p);

	if (next != connection_state_of(state))
		connection_move(table, c, state, next);
	connection_count(c, side, pkts, bytes, tick);
}
