/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Ports of masqueraded connections. */
#pragma once
#include "connections.h"

/* The first port that is tried after the client's own, and how many there are from it on. */
#define SL_FIRST_SOURCE_PORT 1024u
#define SL_SOURCE_PORTS      (65536u - SL_FIRST_SOURCE_PORT)
/* Ports that are tried for a connection. */
#define SL_PORTS_TRIED       32u
#define SL_PORT_STEP         7919u /* a prime: tries lie apart */

/* Whether no connection but a closed one, which ends then, has answers from c's target to c's source. A function of its own for the verifier. */
SL_GLOBAL int source_is_free(SL_TABLE *table SL_NONNULL, const struct sl_connection *c SL_NONNULL)
{
	struct sl_connection *other;
	struct sl_tuple answer;
	u32 found, state;

	if (!table || !c)
		return 0;
	connection_tuple(&answer, c, SL_TARGET);
	found = connection_find(table, &answer, tuple_hash(table, &answer));
	if (!found)
		return 1;
	other = connection_at(table, found);
	if (!other)
		return 0;
	state = shared_read(&other->state);
	if (connection_state_of(state) != SL_TCP_CLOSED)
		return 0;
	connection_end(table, other, found, state);
	return 1;
}

/* The port of a try, in host byte order: none of those that the host gives away itself. */
SL_FN u32 source_port(const struct sl_own_ports *own, u32 hash, u32 try)
{
	u32 port = SL_FIRST_SOURCE_PORT + (hash + try * SL_PORT_STEP) % (SL_SOURCE_PORTS - own->many);

	return port < own->first ? port : port + own->many;
}

/*
 * Chooses the port from which c's packets go to its target: the client's own if the host would not give it to a connection of its own, else others from
 * a place on that the hash says: two clients behind one address may have one port, and one client may come to a target through two forwards. Returns
 * how many were tried, or 0 if none was found; tried: what it has returned before, if the caller knows better of the port that it chose then, else 0.
 */
SL_GLOBAL u32 choose_source_port(SL_TABLE *table SL_NONNULL, struct sl_connection *c SL_NONNULL, u32 hash, u32 tried)
{
	struct sl_own_ports own = {};
	u32 i, port;

	if (!table || !c)
		return 0;
	port = __builtin_bswap16(c->client_port);
	if (!ends_are_equal(&c->source, &c->client)) /* the host has the other address */
		own = *host_ports(table);
	if (own.many > SL_SOURCE_PORTS / 2)
		own.many = 0; /* too few would be left */
	if (port - own.first < own.many)
		port = source_port(&own, hash, 0);
	for (i = 0; i < SL_PORTS_TRIED; i++) {
		if (i)
			port = source_port(&own, hash, i);
		if (i < tried)
			continue;
		c->source_port = __builtin_bswap16((u16)port);
		if (source_is_free(table, c))
			return i + 1;
	}
	return 0;
}
