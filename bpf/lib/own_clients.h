/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Clients on this host: a socket that connects to where a forward listens is led to a target, and is told that it is where it wanted to go. No
 * packet is rewritten, so none is counted. Hooks of all sockets of a cgroup; those of other network namespaces are left alone.
 */
#pragma once
#include "forward_packet.h"
#include "forward_tables.h"

#define SL_OWN_PEERS 65536u

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, struct sl_own_listen);
	__type(value, u32); /* index of the forward */
	__uint(max_entries, SL_LISTENS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
} own_listens SEC(".maps");

/* A socket, and a target to which it was led. */
struct sl_own_target {
	u64 socket; /* its cookie */
	struct sl_end end;
	u16 port; /* network byte order */
	u16 pad[3];
};

/* Where the socket wanted to go. What is forgotten is a name: the socket is told the target's then. */
struct sl_own_peer {
	struct sl_end end;
	u16 port;
	u16 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__type(key, struct sl_own_target);
	__type(value, struct sl_own_peer);
	__uint(max_entries, SL_OWN_PEERS);
} own_peers SEC(".maps");

/* The target of a forward by a hash of its client. */
static __always_inline struct sl_target *sl_target_of(const struct sl_forward *forward, u32 hash)
{
	u32 only = forward->first_target, slot, *target;

	if (!forward->slots)
		return bpf_map_lookup_elem(&targets, &only);
	slot = forward->first_slot + hash % forward->slots;
	target = bpf_map_lookup_elem(&target_slots, &slot);
	return target ? bpf_map_lookup_elem(&targets, target) : NULL;
}

/* The port of a target that belongs to a forward's, both in network byte order. */
static __always_inline u16 sl_target_port(const struct sl_forward *forward, const struct sl_target *target, u16 port)
{
	return __builtin_bswap16((u16)(target->first_port + (__builtin_bswap16(port) - forward->first_port)));
}

static __always_inline int sl_is_led(struct bpf_sock_addr *ctx)
{
	return (ctx->protocol == 6 || ctx->protocol == 17) && bpf_get_netns_cookie(ctx) == sl_forwarding.netns_cookie;
}

/* Puts a target in place of an address where a forward listens. Returns 0 if none does. */
static __always_inline int sl_lead(struct bpf_sock_addr *ctx, struct sl_end *end, u16 *port)
{
	struct sl_own_listen key = { .end = *end, .port = *port, .proto = (u8)ctx->protocol };
	struct sl_own_target led = {};
	struct sl_own_peer wanted = { .end = *end, .port = *port };
	struct sl_forward_count *count;
	struct sl_forward *forward;
	struct sl_target *target;
	u32 *index, hash;

	if (!sl_is_led(ctx))
		return 0;
	index = bpf_map_lookup_elem(&own_listens, &key);
	forward = index ? bpf_map_lookup_elem(&forwards, index) : NULL;
	if (!forward || !forward->targets)
		return 0;
	led.socket = bpf_get_socket_cookie(ctx);
	hash = sl_keyed_hash(&led.socket, 1);
	target = sl_target_of(forward, hash);
	if (!target)
		return 0;
	led.end = target->end;
	led.port = sl_target_port(forward, target, *port);
	if (!bpf_map_update_elem(&own_peers, &led, &wanted, BPF_NOEXIST)) {
		count = sl_count_of(*index);
		if (count)
			__sync_fetch_and_add(&count->opened, 1);
	}
	*end = led.end;
	*port = led.port;
	return 1;
}

/* Puts the address where a socket wanted to go in place of its target's. Returns 0 if it was not led there. */
static __always_inline int sl_name_wanted(struct bpf_sock_addr *ctx, struct sl_end *end, u16 *port)
{
	struct sl_own_target key = { .end = *end, .port = *port };
	struct sl_own_peer *wanted;

	if (!sl_is_led(ctx))
		return 0;
	key.socket = bpf_get_socket_cookie(ctx);
	wanted = bpf_map_lookup_elem(&own_peers, &key);
	if (!wanted)
		return 0;
	*end = wanted->end;
	*port = wanted->port;
	return 1;
}

/* Each hook reads an address, and writes another one if there is one. A socket is never refused. */
static __always_inline int sl_socket_ipv4(struct bpf_sock_addr *ctx, u32 leads)
{
	u16 port = (u16)ctx->user_port;
	struct sl_end end;

	sl_end_of_ipv4(&end, ctx->user_ip4);
	if (leads ? sl_lead(ctx, &end, &port) : sl_name_wanted(ctx, &end, &port)) {
		ctx->user_ip4 = end.address[3];
		ctx->user_port = port;
	}
	return 1;
}

static __always_inline int sl_socket_ipv6(struct bpf_sock_addr *ctx, u32 leads)
{
	u16 port = (u16)ctx->user_port;
	struct sl_end end;

	end.address[0] = ctx->user_ip6[0];
	end.address[1] = ctx->user_ip6[1];
	end.address[2] = ctx->user_ip6[2];
	end.address[3] = ctx->user_ip6[3];
	if (leads ? sl_lead(ctx, &end, &port) : sl_name_wanted(ctx, &end, &port)) {
		ctx->user_ip6[0] = end.address[0];
		ctx->user_ip6[1] = end.address[1];
		ctx->user_ip6[2] = end.address[2];
		ctx->user_ip6[3] = end.address[3];
		ctx->user_port = port;
	}
	return 1;
}
