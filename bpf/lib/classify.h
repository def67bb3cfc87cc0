/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* From parsed headers to a class: the rules, and what is remembered of flows and fragments. Included after parse.h by every program. */
#pragma once
#include "maps.h"
#include "choose.h"
#include "flows.h"

/* The class that an earlier stage has handed on under the same policy, or a negative number. */
static __always_inline s32 sl_handed_class(const struct sl_tables *t, u32 handed)
{
	if ((handed >> SL_CLASS_BITS & (SL_TAGS - 1)) != t->tag)
		return -1;
	return (s32)(handed & (SL_CLASSES - 1));
}

/*
 * Whether a class that is known on arrival holds on departure. A mark, a DSCP or a tag may be set in between, so a policy that asks for
 * one of them asks the packet as it departs.
 */
static __always_inline int sl_class_lasts(const struct sl_tables *t)
{
	return t->class_from == SL_FROM_RULES && !(t->fields & (SL_FIELD_MARK | SL_FIELD_DSCP | SL_FIELD_VLAN | SL_FIELD_PCP));
}

/* Whether what has arrived there has its class from us. */
static __always_inline int sl_is_ours(u32 ifindex)
{
	struct sl_arrival arrival = { sl_netns, ifindex };

	return ifindex && bpf_map_lookup_elem(&arrivals, &arrival);
}

/*
 * The class that an arrival hook of ours, or a forward, has handed on to a departing packet, if it still holds; else a negative number. A forward's
 * class holds under the same policy: no rule is to choose it.
 */
static __always_inline s32 sl_forwarded_class(const struct sl_tables *t, u32 handed, u32 arrived_at)
{
	u32 tag = handed >> SL_CLASS_BITS;

	if (tag == t->tag ? !sl_class_lasts(t) : tag != (t->tag | SL_TAG_OF_FORWARD))
		return -1;
	return sl_is_ours(arrived_at) ? (s32)(handed & (SL_CLASSES - 1)) : -1;
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
	u32 kind = direction * SL_PARSES + h->kind, chosen = direction * SL_RULE_COUNTS + rule;

	if (h->kind != SL_PARSE_IPV4) /* they are what is left of all */
		sl_count_add(bpf_map_lookup_elem(&parse_counts, &kind), pkts, bytes);
	sl_count_add(bpf_map_lookup_elem(&rule_counts, &chosen), pkts, bytes);
}

/* The class of a packet, by all that is known of it; it is counted in its flow, which is set if there is a table of flows. */
static __always_inline struct sl_choice sl_classify(const struct sl_tables *t, const struct sl_headers *h, struct sl_request *x)
{
	int in_table = sl_keep_flows && h->is_ip;
	u64 word = 0;

	if (in_table)
		word = sl_known_choice(t, h, x);
	sl_opaque(word); /* keeps the compiler from writing the call below twice */
	if (!word) {
		word = sl_choose(t, h);
		if (in_table)
			sl_remember(h, x, word);
	}
	if (sl_unlikely(h->fragment))
		word = sl_choose_by_fragment(h, x->direction, t->generation, word);
	return sl_choice_of(word);
}

static __always_inline int sl_is_malformed(const struct sl_headers *h)
{
	return (u32)SL_MALFORMED >> h->kind & 1;
}
