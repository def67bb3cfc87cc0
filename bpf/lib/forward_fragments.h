/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Fragments: later ones have no ports, and go where their first went. */
#pragma once
#include "forward_packet.h"
#include "forward_tables.h"

#define SL_FRAGMENTED     8192u /* cut packets that are remembered */
#define SL_FRAGMENT_TICKS ((u32)(30000000000ULL >> SL_TICK_SHIFT)) /* for so long: as the kernel waits for the rest */

/* The words that all fragments of a packet have. */
struct sl_fragmented {
	struct sl_end src;
	struct sl_end dst;
	u32 id;
	u32 proto;
};

/* Where the first of them went. */
struct sl_first_fragment {
	u32 number; /* of the connection; SL_NO_CONNECTION: to the stack */
	u32 side;
	u32 tick; /* when it came */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__type(key, struct sl_fragmented);
	__type(value, struct sl_first_fragment);
	__uint(max_entries, SL_FRAGMENTED);
} fragmented SEC(".maps");

static __always_inline void sl_fragmented_of(struct sl_fragmented *key, const struct sl_forwardable *f)
{
	key->src = f->tuple.src;
	key->dst = f->tuple.dst;
	key->id = f->id;
	key->proto = f->tuple.proto;
}

/* Remembers where a first fragment goes. A function of its own for its stack. */
SL_GLOBAL int sl_note_first(struct sl_forwardable *f SL_NONNULL, u32 number)
{
	struct sl_connection *c = connection_at(sl_table, number);
	struct sl_first_fragment first = { .number = number };
	struct sl_fragmented key;

	if (!f)
		return 0;
	first.tick = f->tick;
	first.side = number && c ? connection_side(c, &f->tuple) : SL_SIDES;
	if (first.side >= SL_SIDES)
		first.number = SL_NO_CONNECTION;
	sl_fragmented_of(&key, f);
	return (int)bpf_map_update_elem(&fragmented, &key, &first, BPF_ANY);
}

/*
 * The connection of a later fragment, whose ports are set; SL_NO_CONNECTION: the stack has its first; SL_REFUSED: that is not known. A function of its
 * own for its stack.
 */
SL_GLOBAL u32 sl_follow_first(struct sl_forwardable *f SL_NONNULL)
{
	struct sl_first_fragment *first;
	struct sl_fragmented key;
	struct sl_connection *c;
	struct sl_tuple tuple;

	if (!f)
		return SL_REFUSED;
	sl_fragmented_of(&key, f);
	first = bpf_map_lookup_elem(&fragmented, &key);
	if (!first || f->tick - first->tick > SL_FRAGMENT_TICKS)
		return SL_REFUSED;
	if (!first->number)
		return SL_NO_CONNECTION;
	c = connection_at(sl_table, first->number);
	if (!c)
		return SL_REFUSED;
	connection_tuple(&tuple, c, first->side & 1);
	/* Another connection may have come there since. */
	if (!ends_are_equal(&tuple.src, &f->tuple.src) || !ends_are_equal(&tuple.dst, &f->tuple.dst) ||
	    c->proto != f->tuple.proto)
		return SL_REFUSED;
	f->tuple.sport = tuple.sport;
	f->tuple.dport = tuple.dport;
	f->hash = tuple_hash(sl_table, &f->tuple);
	return first->number;
}
