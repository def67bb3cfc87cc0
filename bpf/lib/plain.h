/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The class of a plain packet from its first words, without a struct of headers: from the flow table where every packet of a flow has the same
 * class, else by rules whose only conditions are the protocol and one of the two ports. sl_is_plain says which packets are plain.
 */
#pragma once
#include "classify.h"
#include "parse.h"

/* Sets the flow of a plain packet, as sl_request_flow does. */
static __always_inline void sl_request_plain_flow(struct sl_request *d, const struct sl_front *f)
{
	u64 *key = (u64 *)&d->flow, last = sl_plain_flow_last(f, d->direction);

	key[0] = key[2] = 0;
	key[1] = SL_MAPPED | f->addresses >> 32 << 32;
	key[3] = SL_MAPPED | f->rest << 32;
	key[4] = last;
	d->hash = sl_ipv4_flow_hash((u32)(f->addresses >> 32), (u32)f->rest, last);
}

/*
 * The choice for a plain packet by rules whose only conditions are the protocol and one of the two ports: the first of those that its source
 * port satisfies and of those that its destination port does. Returns 0 where the parser must look: a built-in rule may be asked for it.
 */
static __always_inline int sl_choose_by_ports(const struct sl_tables *t, const struct sl_front *f, struct sl_choice *choice)
{
	u32 sport = sl_front_sport(f), dport = sl_front_dport(f), udp = sl_front_proto(f) == 17;
	u32 first = *sl_at(t->by_dport[udp], t->dport_row[dport]);

	if (t->fields & SL_FIELD_SPORT)
		first = sl_min(first, *sl_at(t->by_sport[udp], t->sport_row[sport]));
	choice->rule = first >> 8;
	choice->class = first & (SL_CLASSES - 1);
	choice->super_packets = 0;
	/* DHCP has a port below 1024 on both sides. */
	return !(choice->rule >= t->control_from && udp && sport < 1024 && dport < 1024);
}

/* Counts a packet as one that this rule has chosen. */
static __always_inline void sl_count_rule_per_cpu(const struct sl_request *d, u32 rule)
{
	u32 counter = d->direction * SL_RULE_COUNTS + rule;

	sl_count_add(bpf_map_lookup_elem(&rule_counts, &counter), d->pkts, d->bytes);
}

/* The way to classify a plain packet (enum sl_plain); 0: the packet must be parsed. in_table: there is a flow table. */
static __always_inline u32 sl_plain_method(const struct sl_tables *t, u32 in_table)
{
	return t->plain & (in_table ? SL_PLAIN_BY_FLOW : SL_PLAIN_BY_PORTS);
}

/*
 * Chooses for a plain packet; called only if sl_plain_method is not 0. With a flow table the caller has set d->flow, and the packet is counted in
 * its flow. Returns 0 if the packet must be parsed.
 */
static __always_inline int sl_choose_plain(const struct sl_tables *t, const struct sl_front *f, struct sl_request *d,
					   u32 in_table, struct sl_choice *choice)
{
	u32 super_packets;
	u64 word;

	if (!in_table)
		return sl_choose_by_ports(t, f, choice);
	word = sl_choice_in_first_way(t, d);
	super_packets = (word & SL_FLOW_LONG) != 0;
	if (!word) {
		word = sl_known_choice(t, NULL, d);
		super_packets = d->super_packets;
		/* In a flood of new flows most get no entry, so nothing more need be known of them. */
		if (!word && d->state == SL_FLOW_NEW && t->plain & SL_PLAIN_BY_PORTS && !sl_flow_ration(d->now_ns))
			return sl_choose_by_ports(t, f, choice);
	}
	*choice = sl_choice_of(word);
	choice->super_packets = super_packets;
	if (sl_is_control(choice->rule))
		d->flags |= SL_CONTROL;
	return word != 0;
}
