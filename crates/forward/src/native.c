/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The table of connections over memory of this process, as a table of functions that Rust can call: struct Functions of lib.rs. */
#include "tuple.h"

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
	u32 ended; /* connections that were announced as ended */
};

#define SL_TABLE struct sl_table

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
	(void)c;
	__sync_fetch_and_add(&t->ended, 1);
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

#include "connections.h"
#include "ports.h"
#include "translation.h"

static u32 table_open(struct sl_table *t, struct sl_connection *like, const struct sl_segment *first, u32 tick, u32 hand)
{
	if (like->proto == 6)
		tcp_open(like, first);
	return connection_open(t, like, tick, hand);
}

static u32 table_source_port(struct sl_table *t, struct sl_connection *like, u32 hash, u32 tried)
{
	return choose_source_port(t, like, hash, tried);
}

static u32 table_is_over(struct sl_table *t, const struct sl_connection *c, u32 side, const struct sl_segment *p, u32 tick)
{
	return (u32)connection_is_over(t, c, c->state, side, p, tick);
}

static void table_end(struct sl_table *t, u32 number, u32 state)
{
	connection_end(t, &t->connections[number], number, state);
}

static u32 table_find(struct sl_table *t, const struct sl_tuple *tuple)
{
	return connection_find(t, tuple, tuple_hash(t, tuple));
}

static void table_pass(struct sl_table *t, struct sl_connection *c, u32 state, u32 side, const struct sl_segment *p, u32 tick)
{
	if (connection_state_of(state) >= SL_TCP_OPENING) /* otherwise another thread has ended it since it was found */
		connection_pass(t, c, state, side, p, 1, p->bytes, tick);
}

static void table_tuples(const struct sl_connection *c, u32 side, struct sl_tuple *arrives, struct sl_tuple *leaves)
{
	connection_tuple(arrives, c, side);
	connection_rewrite(leaves, c, side);
}

static u32 table_side(const struct sl_connection *c, const struct sl_tuple *tuple)
{
	return connection_side(c, tuple);
}

static u32 translate_error(struct sl_icmp *e, u32 to_ipv6)
{
	return (u32)(to_ipv6 ? icmp_to_ipv6(e) : icmp_to_ipv4(e));
}

const struct {
	u32 table_bytes;
	u32 connection_bytes;
	u32 places_bytes;
	u32 (*open)(struct sl_table *t, struct sl_connection *like, const struct sl_segment *first, u32 tick, u32 hand);
	u32 (*source_port)(struct sl_table *t, struct sl_connection *like, u32 hash, u32 tried);
	u32 (*is_over)(struct sl_table *t, const struct sl_connection *c, u32 side, const struct sl_segment *p, u32 tick);
	void (*end)(struct sl_table *t, u32 number, u32 state);
	u32 (*find)(struct sl_table *t, const struct sl_tuple *tuple);
	void (*pass)(struct sl_table *t, struct sl_connection *c, u32 state, u32 side, const struct sl_segment *p, u32 tick);
	void (*tuples)(const struct sl_connection *c, u32 side, struct sl_tuple *arrives, struct sl_tuple *leaves);
	u32 (*side)(const struct sl_connection *c, const struct sl_tuple *tuple);
	u32 (*translate)(struct sl_icmp *e, u32 to_ipv6);
} sl_forward_functions = {
	.table_bytes = sizeof(struct sl_table),
	.connection_bytes = sizeof(struct sl_connection),
	.places_bytes = sizeof(struct sl_places),
	.open = table_open,
	.source_port = table_source_port,
	.is_over = table_is_over,
	.end = table_end,
	.find = table_find,
	.pass = table_pass,
	.tuples = table_tuples,
	.side = table_side,
	.translate = translate_error,
};
