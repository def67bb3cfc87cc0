/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The table of connections over memory of this process, as functions that Rust can call. */
#include "../../../abi/forward.h"
#include "../../../sched/world.h"

struct sl_table {
	struct sl_connection *connections;
	struct sl_places *places;
	u32 last_connection; /* a power of two, less 1 */
	u32 last_set; /* likewise */
	u32 key;
	struct sl_timeouts timeouts;
	struct sl_own_ports own_ports;
	u32 for_each; /* the most connections of a client that do not give way */
	u32 of_clients[256];
};

#define SL_TABLE struct sl_table
#include "../../../forward/tuple.h"

SL_FN struct sl_connection *connection_at(struct sl_table *t, u32 n)
{
	return n <= t->last_connection ? &t->connections[n] : 0;
}

SL_FN struct sl_places *places_at(struct sl_table *t, u32 n)
{
	return &t->places[n & t->last_set];
}

SL_FN u32 connection_number(struct sl_table *t, u32 n)
{
	return n & t->last_connection;
}

SL_FN const struct sl_timeouts *connection_timeouts(struct sl_table *t)
{
	return &t->timeouts;
}

SL_FN u32 *connections_of(struct sl_table *t, const struct sl_end *client)
{
	u32 ipv6 = client->address[0] || client->address[1], hash = client->address[ipv6 ? 1 : 3] * 0x9e3779b1u;

	return &t->of_clients[hash >> 24];
}

SL_FN u32 connections_for_each(struct sl_table *t)
{
	return t->for_each;
}

SL_FN void connection_ended(struct sl_table *t, const struct sl_connection *c)
{
	(void)t;
	(void)c;
}

SL_FN u32 tuple_hash(struct sl_table *t, const struct sl_tuple *tuple)
{
	u64 word[sizeof(*tuple) / sizeof(u64)], sum = t->key;
	u32 i;

	__builtin_memcpy(word, tuple, sizeof(word));
	for (i = 0; i < sizeof(word) / sizeof(*word); i++) {
		sum = (sum ^ word[i]) * 0x9e3779b97f4a7c15ULL;
		sum ^= sum >> 29;
	}
	return (u32)(sum >> 32);
}

SL_FN const struct sl_own_ports *host_ports(struct sl_table *t)
{
	return &t->own_ports;
}

#include "../../../forward/connections.h"
#include "../../../forward/ports.h"

u32 sl_connection_open(struct sl_table *t, struct sl_connection *like, const struct sl_segment *first, u32 tick, u32 hand)
{
	if (like->proto == 6)
		tcp_open(like, first);
	return connection_open(t, like, tick, hand);
}

u32 sl_choose_source_port(struct sl_table *t, struct sl_connection *like, u32 hash, u32 tried)
{
	return choose_source_port(t, like, hash, tried);
}

u32 sl_connection_is_over(struct sl_table *t, const struct sl_connection *c, u32 side, const struct sl_segment *p, u32 tick)
{
	return (u32)connection_is_over(t, c, c->state, side, p, tick);
}

void sl_connection_end(struct sl_table *t, u32 number)
{
	connection_end(t, &t->connections[number], number, t->connections[number].state);
}

u32 sl_connection_find(struct sl_table *t, const struct sl_tuple *tuple)
{
	return connection_find(t, tuple, tuple_hash(t, tuple));
}

void sl_connection_pass(struct sl_table *t, struct sl_connection *c, u32 side, const struct sl_segment *p, u32 tick)
{
	connection_pass(t, c, c->state, side, p, 1, p->bytes, tick);
}

void sl_connection_tuples(const struct sl_connection *c, u32 side, struct sl_tuple *arrives, struct sl_tuple *leaves)
{
	connection_tuple(arrives, c, side);
	connection_rewrite(leaves, c, side);
}

u32 sl_connection_side(const struct sl_connection *c, const struct sl_tuple *tuple)
{
	return connection_side(c, tuple);
}
