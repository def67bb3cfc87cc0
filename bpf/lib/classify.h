/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* From parsed headers to a class, and what is counted on the way. Included after parse.h by every program. */
#pragma once
#include "maps.h"

struct sl_choice {
	u32 class;
	u32 rule; /* SL_RULES: none matched */
};

static __always_inline const struct sl_row *sl_row_at(const struct sl_tables *t, u32 row)
{
	row &= SL_ROWS - 1;
	return &t->row[row];
}

static __always_inline u32 sl_prefix_row(void *map, u32 buffer, const u32 *addr, u32 none)
{
	struct sl_prefix key = { .prefix_bits = 32 + 128, .buffer = buffer };
	u32 *row;

	__builtin_memcpy(key.addr, addr, 16);
	row = bpf_map_lookup_elem(map, &key);
	return row ? *row : none;
}

/* The fields beside the protocol, each with the row of rules that its value satisfies: those that are an index, and prefixes. */
#define SL_INDEX_FIELDS(X)                                                                  \
	X(SPORT, sport, h->has_ports ? t->sport_row[h->sport] : t->sport_none_row)          \
	X(DPORT, dport, h->has_ports ? t->dport_row[h->dport] : t->dport_none_row)          \
	X(DSCP, dscp, h->dscp != SL_NO_DSCP ? t->dscp_row[h->dscp & 63] : t->dscp_none_row) \
	X(VLAN, vlan, h->vlan != SL_NO_VLAN ? t->vlan_row[h->vlan & 4095] : t->vlan_none_row)
#define SL_PREFIX_FIELDS(X)                                                                                     \
	X(SRC, src, h->is_ip ? sl_prefix_row(&src_prefixes, buffer, h->src, t->src_none_row) : t->src_none_row) \
	X(DST, dst, h->is_ip ? sl_prefix_row(&dst_prefixes, buffer, h->dst, t->dst_none_row) : t->dst_none_row)

/*
 * The lowest rule whose every field the packet satisfies, or SL_RULES. A global function: the verifier looks at it once,
 * whatever the parser leaves behind. (It takes no notice of the tests for NULL from 6.8 on, and needs them before.)
 */
SL_GLOBAL u32 sl_match_any(const struct sl_tables *t SL_NONNULL, const struct sl_headers *h SL_NONNULL, u32 buffer)
{
	const struct sl_row *proto, *src, *dst, *sport, *dport, *dscp, *vlan;
	u32 fields, w;

	if (!t || !h)
		return SL_RULES;
	proto = src = dst = sport = dport = dscp = vlan = sl_row_at(t, t->proto_row[h->proto & (SL_PROTOS - 1)]);
	fields = t->fields;
#define X(FIELD, field, row)           \
	if (fields & SL_FIELD_##FIELD) \
		field = sl_row_at(t, row);
	SL_INDEX_FIELDS(X)
	SL_PREFIX_FIELDS(X)
#undef X
#pragma unroll
	for (w = 0; w < SL_RULE_WORDS; w++) {
		u64 hit;

		if (w >= t->rule_words)
			break;
		hit = proto->word[w] & src->word[w] & dst->word[w] & sport->word[w] & dport->word[w] & dscp->word[w] &
		      vlan->word[w];
		if (hit)
			return w * 64 + sl_lowest(hit);
	}
	return SL_RULES;
}

/* Likewise; without a call where 64 rules and no prefixes make it short. */
static __always_inline u32 sl_match(const struct sl_tables *t, const struct sl_headers *h, u32 buffer)
{
	u32 fields = t->fields;
	u64 hit;

	if (t->rule_words != 1 || fields & (SL_FIELD_SRC | SL_FIELD_DST))
		return sl_match_any(t, h, buffer);
	hit = sl_row_at(t, t->proto_row[h->proto & (SL_PROTOS - 1)])->word[0];
#define X(FIELD, field, row)           \
	if (fields & SL_FIELD_##FIELD) \
		hit &= sl_row_at(t, row)->word[0];
	SL_INDEX_FIELDS(X)
#undef X
	return hit ? sl_lowest(hit) : SL_RULES;
}

/* ARP, neighbour discovery, DHCP: without them there is no network. */
static __always_inline int sl_is_control(const struct sl_headers *h)
{
	if (h->proto == SL_PROTO_ARP || h->proto == SL_PROTO_ND)
		return 1;
	return h->proto == 17 && (h->dport == 67 || h->dport == 68 || h->dport == 546 || h->dport == 547);
}

static __always_inline struct sl_choice sl_classify(const struct sl_tables *t, u32 buffer, const struct sl_headers *h, u32 mark)
{
	struct sl_choice choice = { t->default_class, SL_RULES };
	u32 i;

	if (t->class_from != SL_FROM_RULES && sl_is_control(h)) {
		choice.class = t->urgent_class;
	} else if (t->class_from == SL_FROM_DSCP) {
		if (h->dscp != SL_NO_DSCP)
			choice.class = *sl_at(t->dscp_class, h->dscp);
	} else if (t->class_from == SL_FROM_MARK) {
		for (i = 0; i < SL_MARKS; i++) {
			if (i >= t->marks)
				break;
			if (t->mark[i].mark == mark) {
				choice.class = t->mark[i].class;
				break;
			}
		}
	} else {
		choice.rule = sl_match(t, h, buffer);
		if (choice.rule < SL_RULES)
			choice.class = sl_at(t->rule, choice.rule)->class;
	}
	choice.class &= SL_CLASSES - 1;
	return choice;
}

/* The class that an earlier stage has handed on under the same policy, or a negative number. */
static __always_inline s32 sl_handed_class(const struct sl_tables *t, u32 handed)
{
	if (handed >> SL_CLASS_BITS != t->tag)
		return -1;
	return (s32)(handed & (SL_CLASSES - 1));
}

static __always_inline void sl_count_add(struct sl_count *count, u32 pkts, u32 bytes)
{
	if (count) {
		count->pkts += pkts;
		count->bytes += bytes;
	}
}

/* Per-CPU counts of one packet whose headers were parsed here. */
static __always_inline void sl_count_parsed(const struct sl_headers *h, u32 direction, u32 rule, u32 pkts, u32 bytes)
{
	u32 kind = direction * SL_PARSES + h->kind, chosen = direction * (SL_RULES + 1) + rule;

	if (h->kind != SL_PARSE_IPV4) /* they are what is left of all */
		sl_count_add(bpf_map_lookup_elem(&parse_counts, &kind), pkts, bytes);
	sl_count_add(bpf_map_lookup_elem(&rule_counts, &chosen), pkts, bytes);
}

/* Counts pkts and bytes for the flow of h. Returns whether it has ever sent a super-packet, this one included. */
SL_GLOBAL u32 sl_count_in_flow(const struct sl_headers *h SL_NONNULL, u32 where, u32 pkts, u32 bytes, u64 now_ns)
{
	struct sl_flow_key key = {};
	struct sl_flow *flow;

	if (!h)
		return 0;
	__builtin_memcpy(key.src, h->src, 16);
	__builtin_memcpy(key.dst, h->dst, 16);
	key.sport = h->sport;
	key.dport = h->dport;
	key.proto = h->proto;
	key.direction = where & 1;
	flow = bpf_map_lookup_elem(&flows, &key);
	if (flow) {
		__sync_fetch_and_add(&flow->pkts, pkts);
		__sync_fetch_and_add(&flow->bytes, bytes);
		flow->last_ns = now_ns;
		flow->class = (u8)(where >> 8);
		flow->rule = (u16)(where >> 16);
		if (pkts > 1)
			flow->super_packets = 1;
		return flow->super_packets;
	}
	struct sl_flow fresh = { .pkts = pkts,
				 .bytes = bytes,
				 .first_ns = now_ns,
				 .last_ns = now_ns,
				 .rule = (u16)(where >> 16),
				 .class = (u8)(where >> 8),
				 .super_packets = pkts > 1 };

	bpf_map_update_elem(&flows, &key, &fresh, BPF_NOEXIST);
	return fresh.super_packets;
}

/* Likewise, where flows are kept and the packet is IP; else 0. */
static __always_inline u32 sl_count_flow(const struct sl_headers *h, u32 direction, struct sl_choice choice, u32 pkts, u32 bytes,
					 u64 now_ns)
{
	if (!sl_keep_flows || !h->is_ip)
		return 0;
	return sl_count_in_flow(h, choice.rule << 16 | choice.class << 8 | direction, pkts, bytes, now_ns);
}

static __always_inline int sl_is_malformed(const struct sl_headers *h)
{
	return (u32)SL_MALFORMED >> h->kind & 1;
}
