/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The tables of forwards and connections, one set for a network namespace, and the functions over them that forward/ wants. */
#pragma once
#include "../../abi/forward.h"
#include "keyed_hash.h"
#include "parse.h"
#include "../../forward/tuple.h"

static __always_inline int sl_end_is_ipv4(const struct sl_end *end)
{
	return end->address[2] == SL_MAPPED && !end->address[0] && !end->address[1];
}

/* Set before load. A section of its own, so that its members are not constants to the verifier. */
volatile struct sl_forwarding sl_forwarding SEC(".data.forwarding") = {
	.last_connection = SL_DEFAULT_CONNECTIONS - 1, .last_set = SL_DEFAULT_CONNECTIONS / SL_CONNECTIONS_PER_SET - 1
};

/* Where the search for a record begins. */
u32 sl_hand SEC(".data.hand");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, struct sl_connection);
	__uint(max_entries, SL_DEFAULT_CONNECTIONS);
	__uint(map_flags, BPF_F_MMAPABLE); /* so that each record begins on a cache line */
} connections SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, struct sl_places);
	__uint(max_entries, SL_DEFAULT_CONNECTIONS / SL_CONNECTIONS_PER_SET);
	__uint(map_flags, BPF_F_MMAPABLE);
} places SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, struct sl_listen);
	__type(value, u32); /* index of the forward */
	__uint(max_entries, SL_LISTENS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
} listens SEC(".maps");

/* The tag of the policy in force of each managed interface, with SL_TAG_OF_FORWARD: its queue believes the class of a packet that bears it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, u32); /* ifindex */
	__type(value, u16);
	__uint(max_entries, SL_ARRIVALS);
} egress_tags SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, struct sl_forward);
	__uint(max_entries, SL_FORWARDS);
	__uint(map_flags, BPF_F_MMAPABLE);
} forwards SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, struct sl_target);
	__uint(max_entries, SL_TARGETS);
} targets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, u32); /* index of a target */
	__uint(max_entries, SL_TARGET_SLOTS);
} target_slots SEC(".maps");

/* Counts by forward; and of forwards that it has replaced, and whose places have been freed: these are written by commands alone. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32); /* the forward's index */
	__type(value, struct sl_forward_count);
	__uint(max_entries, SL_FORWARDS);
	__uint(map_flags, BPF_F_MMAPABLE);
} forward_counts SEC(".maps"), former_counts SEC(".maps");

/* There is one table: the pointer says nothing. */
struct sl_one_table {
	u32 unused;
};
#define SL_TABLE struct sl_one_table
static SL_TABLE *const sl_table = (SL_TABLE *)&sl_hand;

static __always_inline struct sl_connection *connection_at(SL_TABLE *table, u32 n)
{
	(void)table;
	return bpf_map_lookup_elem(&connections, &n);
}

static __always_inline struct sl_places *places_at(SL_TABLE *table, u32 n)
{
	u32 set = n & sl_forwarding.last_set;

	(void)table;
	return bpf_map_lookup_elem(&places, &set);
}

static __always_inline u32 connection_number(SL_TABLE *table, u32 n)
{
	(void)table;
	return n & sl_forwarding.last_connection;
}

static __always_inline const struct sl_timeouts *connection_timeouts(SL_TABLE *table)
{
	(void)table;
	return (const struct sl_timeouts *)&sl_forwarding.timeouts;
}

static __always_inline const struct sl_own_ports *host_ports(SL_TABLE *table)
{
	(void)table;
	return (const struct sl_own_ports *)&sl_forwarding.own_ports;
}

/* Established connections that do not give way, by client. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32); /* a keyed hash of its address */
	__type(value, u32);
	__uint(max_entries, SL_CLIENTS);
} clients SEC(".maps");

static __always_inline u32 *connections_of(SL_TABLE *table, const struct sl_end *client)
{
	u64 word[2];
	u32 place;

	(void)table;
	__builtin_memcpy(word, client, sizeof(word));
	if (word[0])
		word[1] = 0; /* one host of IPv6 has all addresses of its network */
	place = sl_keyed_hash(word, 2) & (SL_CLIENTS - 1);
	return bpf_map_lookup_elem(&clients, &place);
}

static __always_inline u32 connections_for_each(SL_TABLE *table)
{
	(void)table;
	return sl_forwarding.last_connection / SL_CLIENT_SHARE;
}

static __always_inline struct sl_forward_count *sl_count_of(u32 forward)
{
	return bpf_map_lookup_elem(&forward_counts, &forward);
}

/* Adds the counts of a connection to its forward's, unless another forward has come there. */
static __always_inline void connection_ended(SL_TABLE *table, const struct sl_connection *c)
{
	struct sl_forward_count *count = sl_count_of(c->forward);
	u32 index = c->forward, side;
	struct sl_forward *forward;

	(void)table;
	forward = bpf_map_lookup_elem(&forwards, &index);
	if (!count || !forward || !forward->targets || (u16)forward->digest != c->class >> SL_DIGEST_SHIFT)
		return;
	for (side = 0; side < SL_SIDES; side++) {
		__sync_fetch_and_add(&count->ended_pkts[side], c->pkts[side]);
		__sync_fetch_and_add(&count->ended_bytes[side], c->bytes[side]);
	}
	__sync_fetch_and_add(&count->ended, 1);
}

static __always_inline u32 tuple_hash(SL_TABLE *table, const struct sl_tuple *tuple)
{
	u64 word[SL_HASH_WORDS];

	(void)table;
	_Static_assert(sizeof(*tuple) == sizeof(word), "five words");
	if (sl_end_is_ipv4(&tuple->src)) {
		word[0] = (u64)tuple->dst.address[3] << 32 | tuple->src.address[3];
		__builtin_memcpy(&word[1], &tuple->sport, 8);
		return sl_keyed_hash(word, 2);
	}
	__builtin_memcpy(word, tuple, sizeof(word));
	return sl_keyed_hash(word, SL_HASH_WORDS);
}
