/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The class of parsed headers, by the rules alone, whatever is remembered of flows. Beside the tables, the rules read the maps ranges and rows. Programs
 * include this header by classify.h, and crates/classifier compiles it natively.
 */
#pragma once
#include "../../abi/classifier.h"

struct sl_choice {
	u32 class;
	u32 rule; /* or enum sl_no_rule */
	u32 super_packets; /* set by sl_choose_plain: the flow table knows that the flow has sent some */
};

static __always_inline u64 sl_choice_word(u32 generation, struct sl_choice choice)
{
	return (u64)generation << 32 | choice.class << 16 | choice.rule;
}

static __always_inline struct sl_choice sl_choice_of(u64 word)
{
	struct sl_choice choice = { (u32)word >> 16 & (SL_CLASSES - 1), (u16)word, 0 };

	return choice;
}

/*
 * One step of a binary search for the last range that starts at the number or before: it is among first to last, of which half are left.
 * Both stand in one word, first << 16 | last. A global function, so that the verifier knows nothing of its answer: else it follows
 * the search to each of its ends.
 */
SL_GLOBAL u32 sl_search_step(const struct sl_ranges *r SL_NONNULL, u32 among, u64 high, u64 low)
{
	u32 first = among >> 16, last = among & 0xffff, middle = (first + last + 1) / 2;
	u64 high_start, low_start;

	if (!r)
		return 0;
	high_start = *sl_at(r->high, middle);
	low_start = *sl_at(r->low, middle);
	if (high_start < high || (high_start == high && low_start <= low))
		return middle << 16 | last;
	return first << 16 | (middle - 1);
}

/* The row of the range that a number is in. */
SL_GLOBAL u32 sl_search(const struct sl_ranges *r SL_NONNULL, u64 high, u64 low)
{
	u32 among, block, i;

	if (!r)
		return 0;
	among = r->last;
	if (!high && low >> 32 == 0xffff) {
		block = (u32)low >> 16;
		among = (u32)r->ipv4[block] << 16 | (block < 0xffff ? r->ipv4[block + 1] : among);
	}
	for (i = 0; i < 15; i++) {
		if (among >> 16 >= (among & 0xffff))
			break;
		among = sl_search_step(r, among, high, low);
	}
	return *sl_at(r->row, among >> 16);
}

SL_GLOBAL u32 sl_range_row(u32 which, u64 high, u64 low, u32 none)
{
	void *map = bpf_map_lookup_elem(&ranges, &which);
	const struct sl_ranges *r;
	u32 zero = 0;

	if (!map)
		return none;
	r = bpf_map_lookup_elem(map, &zero);
	return r ? sl_search(r, high, low) : none;
}

static __always_inline u32 sl_address_row(u32 which, const u32 *addr, u32 none)
{
	u64 high = (u64)__builtin_bswap32(addr[0]) << 32 | __builtin_bswap32(addr[1]);
	u64 low = (u64)__builtin_bswap32(addr[2]) << 32 | __builtin_bswap32(addr[3]);

	return sl_range_row(which, high, low, none);
}

SL_GLOBAL u32 sl_key_row(const struct sl_keys *k SL_NONNULL, u32 key)
{
	u32 slot, i;

	if (!k)
		return 0;
	slot = key * k->factor >> 22;
#pragma unroll
	for (i = 0; i < SL_KEY_PROBES; i++)
		if (*sl_at(k->key, slot + i) == key)
			return *sl_at(k->row, slot + i);
	return k->none_row;
}

/* The fields beside the protocol, each with the row of rules that its value satisfies: with the protocol, the first four make a flow. */
#define SL_FLOW_FIELDS(X)                                                                                         \
	X(SPORT, sport, h->has_ports ? t->sport_row[h->sport] : t->sport_none_row)                                \
	X(DPORT, dport, h->has_ports ? t->dport_row[h->dport] : t->dport_none_row)                                \
	X(SRC, src, h->is_ip ? sl_address_row(sources + SL_RANGE_SRC, h->src, t->src_none_row) : t->src_none_row) \
	X(DST, dst, h->is_ip ? sl_address_row(sources + SL_RANGE_DST, h->dst, t->dst_none_row) : t->dst_none_row)
#define SL_OTHER_FIELDS(X)                                                                                                      \
	X(DSCP, dscp, h->dscp != SL_NO_DSCP ? t->dscp_row[h->dscp & 63] : t->dscp_none_row)                                     \
	X(VLAN, vlan, h->vlan != SL_NO_VLAN ? t->vlan_row[h->vlan & 4095] : t->vlan_none_row)                                   \
	X(PCP, pcp, h->pcp != SL_NO_PCP ? t->pcp_row[h->pcp & 7] : t->pcp_none_row)                                             \
	X(TCP_FLAGS, tcp_flags, h->tcp_flags != SL_NO_TCP_FLAGS ? t->tcp_flags_row[h->tcp_flags & 255] : t->tcp_flags_none_row) \
	X(ICMP, icmp, h->icmp != SL_NO_ICMP ? t->icmp_row[h->icmp & 511] : t->icmp_none_row)                                    \
	X(LENGTH, length,                                                                                                       \
	  h->is_ip ? sl_range_row(sources + SL_RANGE_LENGTH, 0, h->length, t->length_none_row) : t->length_none_row)            \
	X(INTERFACE, interface, sl_key_row(&t->interface_row, h->interface))                                                    \
	X(MARK, mark, sl_key_row(&t->mark_row, h->mark))

static __always_inline u64 sl_small_row(const struct sl_tables *t, u32 row)
{
	return *sl_at(t->small, row);
}

/*
 * The lowest rule whose every field the packet satisfies, or SL_RULE_NONE. A global function: the verifier looks at it once,
 * whatever the parser leaves behind. (It takes no notice of the tests for NULL from 6.8 on, and needs them before.)
 */
SL_GLOBAL u32 sl_match_few(const struct sl_tables *t SL_NONNULL, const struct sl_headers *h SL_NONNULL)
{
	u32 fields, sources;
	u64 hit;

	if (!t || !h)
		return SL_RULE_NONE;
	sources = t->buffer * SL_RANGE_FIELDS;
	fields = t->fields;
	hit = sl_small_row(t, t->proto_row[h->proto & (SL_PROTOS - 1)]);
#define X(FIELD, field, number)        \
	if (fields & SL_FIELD_##FIELD) \
		hit &= sl_small_row(t, number);
	SL_FLOW_FIELDS(X)
	SL_OTHER_FIELDS(X)
#undef X
	return hit ? sl_lowest(hit) : SL_RULE_NONE;
}

#define SL_FIVE_FIELDS 5u /* the protocol and SL_FLOW_FIELDS: the first of enum sl_field */

/* The rows of the other fields. */
struct sl_row_numbers {
	u32 buffer;
	u16 fields; /* those that are asked for */
	u16 row[SL_FIELDS - SL_FIVE_FIELDS]; /* of each of these */
};

/* A search for the lowest rule among more than 64. Small: it is on the stack. */
struct sl_word_search {
	const struct sl_row *proto, *sport, *dport, *src, *dst;
	u64 words; /* in which each of these rows has some rule, less those that were searched */
	struct sl_row_numbers others;
	u32 rule;
};

/* The rules of a word that the other fields allow, as bits. A function of its own: the verifier looks at its loop once. */
SL_GLOBAL u64 sl_match_others(const struct sl_row_numbers *x SL_NONNULL, u32 w)
{
	const struct sl_row *row;
	u32 buffer, number, i;
	u64 hit = ~0ULL;
	void *map;

	if (!x)
		return 0;
	buffer = x->buffer;
	map = bpf_map_lookup_elem(&rows, &buffer);
	if (!map)
		return 0;
	for (i = 0; i < SL_FIELDS - SL_FIVE_FIELDS; i++) {
		if (!(x->fields >> i & 1))
			continue;
		number = x->row[i];
		row = bpf_map_lookup_elem(map, &number);
		if (!row)
			return 0;
		hit &= *sl_at(row->word, w);
	}
	return hit;
}

/* Searches the lowest of the words that are left; 1: the search is over. */
static long sl_search_word(u32 n, struct sl_word_search *x)
{
	u64 hit;
	u32 w;

	(void)n;
	if (!x->words)
		return 1;
	w = sl_lowest(x->words);
	x->words &= x->words - 1;
	hit = *sl_at(x->src->word, w) & *sl_at(x->dst->word, w) & *sl_at(x->dport->word, w) & *sl_at(x->sport->word, w) &
	      *sl_at(x->proto->word, w);
	if (hit && x->others.fields)
		hit &= sl_match_others(&x->others, w);
	if (!hit)
		return 0;
	x->rule = w * 64 + sl_lowest(hit);
	return 1;
}

/*
 * The same for more than 64 rules. Most rows have something in most words, where rules leave a field open, so what counts is
 * how fast the five of nearly every policy are ANDed. Where no rule asks for one of the five, the protocol's row stands in: to AND it twice
 * costs less than to ask each time.
 */
SL_GLOBAL u32 sl_match_many(const struct sl_tables *t SL_NONNULL, const struct sl_headers *h SL_NONNULL)
{
	struct sl_word_search x = { .rule = SL_RULE_NONE };
	u32 fields, sources, number;
	void *map;

	if (!t || !h)
		return SL_RULE_NONE;
	number = x.others.buffer = t->buffer;
	sources = number * SL_RANGE_FIELDS;
	map = bpf_map_lookup_elem(&rows, &number);
	if (!map)
		return SL_RULE_NONE;
	number = t->proto_row[h->proto & (SL_PROTOS - 1)];
	x.proto = bpf_map_lookup_elem(map, &number);
	if (!x.proto)
		return SL_RULE_NONE;
	x.sport = x.dport = x.src = x.dst = x.proto;
	fields = t->fields;
#define X(FIELD, field, row_number)                          \
	if (fields & SL_FIELD_##FIELD) {                     \
		number = row_number;                         \
		x.field = bpf_map_lookup_elem(map, &number); \
		if (!x.field)                                \
			return SL_RULE_NONE;                 \
	}
	SL_FLOW_FIELDS(X)
#undef X
#define X(FIELD, field, row_number)    \
	if (fields & SL_FIELD_##FIELD) \
		x.others.row[__builtin_ctz(SL_FIELD_##FIELD) - SL_FIVE_FIELDS] = (u16)(row_number);
	SL_OTHER_FIELDS(X)
#undef X
	x.others.fields = (u16)(fields >> SL_FIVE_FIELDS);
	x.words = x.proto->summary & x.src->summary & x.dst->summary & x.sport->summary & x.dport->summary;
	bpf_loop(SL_RULE_WORDS, sl_search_word, &x, 0);
	return x.rule;
}

/* The same; without a call where 64 rules and plain fields make it short. */
static __always_inline u32 sl_match(const struct sl_tables *t, const struct sl_headers *h)
{
	u32 fields = t->fields;
	u64 hit;

	if (t->many)
		return sl_match_many(t, h);
	if (fields & ~(SL_FIELD_PROTO | SL_FIELD_SPORT | SL_FIELD_DPORT | SL_FIELD_DSCP))
		return sl_match_few(t, h);
	hit = sl_small_row(t, t->proto_row[h->proto & (SL_PROTOS - 1)]);
	if (fields & SL_FIELD_SPORT)
		hit &= sl_small_row(t, h->has_ports ? t->sport_row[h->sport] : t->sport_none_row);
	if (fields & SL_FIELD_DPORT)
		hit &= sl_small_row(t, h->has_ports ? t->dport_row[h->dport] : t->dport_none_row);
	if (fields & SL_FIELD_DSCP)
		hit &= sl_small_row(t, h->dscp != SL_NO_DSCP ? t->dscp_row[h->dscp & 63] : t->dscp_none_row);
	return hit ? sl_lowest(hit) : SL_RULE_NONE;
}

static __always_inline int sl_is_link_local(const u32 *addr)
{
	return (addr[0] & __builtin_bswap32(0xffc00000)) == __builtin_bswap32(0xfe800000);
}

/*
 * ARP, neighbour discovery, DHCP: without them there is no network. Which of the built-in rules, or SL_RULE_NONE. DHCP (RFC 2131, 4.1) and
 * DHCPv6 (RFC 8415, 7.2) have a port of theirs on both sides, and a client of DHCPv6 a link-local address; neighbour discovery has come
 * from the link, as its hop limit of 255 says (RFC 4861, 3.1), or the parser does not call it that.
 */
static __always_inline u32 sl_control_rule(const struct sl_headers *h)
{
	if (h->proto == SL_PROTO_ARP)
		return SL_RULE_ARP;
	if (h->proto == SL_PROTO_ND)
		return SL_RULE_ND;
	if (h->proto != 17)
		return SL_RULE_NONE;
	if ((h->dport == 67 || h->dport == 68) && (h->sport == 67 || h->sport == 68))
		return SL_RULE_DHCP;
	if ((h->dport == 546 || h->dport == 547) && (h->sport == 546 || h->sport == 547) &&
	    (sl_is_link_local(h->src) || sl_is_link_local(h->dst)))
		return SL_RULE_DHCPV6;
	return SL_RULE_NONE;
}

static __always_inline int sl_is_control(u32 rule)
{
	return rule >= SL_RULE_ARP && rule < SL_RULE_NONE;
}

/* By the rules alone, whatever is remembered: an sl_choice_word. A global function: the verifier follows it once. */
SL_GLOBAL u64 sl_choose(const struct sl_tables *t SL_NONNULL, const struct sl_headers *h SL_NONNULL)
{
	struct sl_choice choice;
	u32 control, i;

	if (!t || !h)
		return 0;
	choice.class = t->default_class;
	choice.rule = t->class_from == SL_FROM_RULES ? sl_match(t, h) : SL_RULE_NONE;
	if (choice.rule >= t->control_from) {
		control = sl_control_rule(h);
		if (control != SL_RULE_NONE) {
			choice.class = t->urgent_class;
			choice.rule = control;
			return sl_choice_word(t->generation, choice);
		}
	}
	if (choice.rule < SL_RULES) {
		choice.class = *sl_at(t->rule_class, choice.rule);
	} else if (t->class_from == SL_FROM_DSCP) {
		if (h->dscp != SL_NO_DSCP)
			choice.class = *sl_at(t->dscp_class, h->dscp);
	} else if (t->class_from == SL_FROM_MARK) {
		for (i = 0; i < SL_MARKS; i++) {
			if (i >= t->marks)
				break;
			if (t->mark[i].mark == h->mark) {
				choice.class = t->mark[i].class;
				break;
			}
		}
	}
	return sl_choice_word(t->generation, choice);
}
