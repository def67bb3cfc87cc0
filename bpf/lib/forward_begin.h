/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Beginning connections: the forward that listens, its target, and a place in the table. */
#pragma once
#include "forward_sockets.h"
#include "forward_route.h"
#include "../../forward/connections.h"
#include "../../forward/ports.h"

static __always_inline void sl_count_refused(u32 forward, u32 why)
{
	struct sl_forward_count *count = sl_count_of(forward);

	if (count && why < SL_NOT_FORWARDED_REASONS)
		__sync_fetch_and_add(&count->refused[why], 1);
}

static __always_inline void sl_count_refused_of(u32 number, u32 why)
{
	struct sl_connection *c = connection_at(sl_table, number);

	if (c)
		sl_count_refused(c->forward, why);
}

/* Whether a packet is for this host. A function of its own for its stack. */
SL_GLOBAL int sl_is_for_this_host(struct __sk_buff *skb, struct sl_forwardable *f SL_NONNULL)
{
	struct sl_hop hop;

	return f && sl_route(skb, f, &f->tuple, skb->ingress_ifindex, &hop) == SL_WAY_LOCAL;
}

/* The index of the forward whose listen address and port a packet has, or 0. A function of its own for its stack. */
SL_GLOBAL u32 sl_forward_of(struct sl_forwardable *f SL_NONNULL, u32 ifindex, u32 everywhere)
{
	struct sl_listen key = {};
	u32 *found;

	if (!f)
		return 0;
	if (everywhere)
		key.ipv6 = f->ipv6;
	else
		key.end = f->tuple.dst;
	key.ifindex = ifindex;
	key.port = f->tuple.dport;
	key.proto = (u8)f->tuple.proto;
	found = bpf_map_lookup_elem(&listens, &key);
	return found ? *found : 0;
}

/* Ports of the host's own sockets that are passed over for a connection. */
#define SL_OWN_PORTS 4u

/* Finds a port and a place for a connection. Returns as connection_open. */
SL_GLOBAL u32 sl_enter(struct __sk_buff *skb, struct sl_connection *like SL_NONNULL, u32 hash, u32 tick)
{
	u32 i, tried = 0, held;

	if (!like)
		return SL_REFUSED;
	for (i = 0; i < SL_OWN_PORTS; i++) {
		tried = choose_source_port(sl_table, like, hash, tried);
		if (!tried)
			return SL_REFUSED | SL_NOT_FORWARDED_PORTS;
		/* Where the client's own address is kept, no socket of this host has it. */
		held = !ends_are_equal(&like->source, &like->client) && sl_host_has(skb, like);
		if (!held)
			break;
	}
	if (i == SL_OWN_PORTS)
		return SL_REFUSED | SL_NOT_FORWARDED_PORTS;
	return connection_open(sl_table, like, tick, __sync_fetch_and_add(&sl_hand, 1));
}

/*
 * Begins a connection of a forward. Returns its number; SL_NO_CONNECTION: the stack is to have the packet, and refuse it; SL_REFUSED: its sender is to
 * try again. A function of its own for its stack.
 */
SL_GLOBAL u32 sl_begin(struct __sk_buff *skb, struct sl_forwardable *f SL_NONNULL, u32 index)
{
	u32 number;
	struct sl_connection like = {};
	struct sl_forward *forward;
	struct sl_target *target;
	struct sl_forward_count *count;

	if (!f)
		return SL_NO_CONNECTION;
	forward = bpf_map_lookup_elem(&forwards, &index);
	if (!forward || !forward->targets)
		return SL_NO_CONNECTION;
	if (f->tuple.proto == 6 && (f->segment.flags & (SL_TCP_SYN | SL_TCP_ACK | SL_TCP_RST | SL_TCP_FIN)) != SL_TCP_SYN) {
		sl_count_refused(index, SL_NOT_FORWARDED_UNKNOWN);
		return SL_NO_CONNECTION;
	}
	if (!sl_source_is_there(skb, f, forward->flags & SL_FORWARD_STRICT)) {
		sl_count_refused(index, SL_NOT_FORWARDED_SOURCE);
		return SL_NO_CONNECTION;
	}
	target = sl_target_of(forward, f->hash);
	if (!target)
		return SL_NO_CONNECTION;
	like.client = f->tuple.src;
	like.listen = f->tuple.dst;
	like.target = target->end;
	like.client_port = f->tuple.sport;
	like.listen_port = f->tuple.dport;
	like.target_port = sl_target_port(forward, target, f->tuple.dport);
	like.proto = (u8)f->tuple.proto;
	like.forward = (u16)index;
	like.class =
		forward->class | (forward->flags & SL_FORWARD_CUTS ? SL_MAY_BE_CUT : 0) | (u32)forward->digest << SL_DIGEST_SHIFT;
	like.source = f->tuple.src;
	like.source_port = f->tuple.sport;
	if (target->source.address[0] || target->source.address[2])
		like.source = target->source;
	if (like.proto == 6)
		tcp_open(&like, &f->segment);
	number = sl_enter(skb, &like, f->hash, f->tick);
	if (number == (SL_REFUSED | SL_NOT_FORWARDED_TWIN)) {
		/* Another CPU has entered this very connection, or taken the port. */
		number = connection_find(sl_table, &f->tuple, f->hash);
		if (number)
			return number;
		number = sl_enter(skb, &like, f->hash, f->tick);
	}
	if (number & SL_REFUSED) {
		sl_count_refused(index, number & ~SL_REFUSED);
		return number == (SL_REFUSED | SL_NOT_FORWARDED_TWIN) ? SL_REFUSED : SL_NO_CONNECTION;
	}
	count = sl_count_of(index);
	if (count)
		__sync_fetch_and_add(&count->opened, 1);
	return number;
}
