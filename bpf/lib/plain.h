/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The class of a plain packet from its first words, without a struct of headers: from the flow table where every packet of a flow has the same
 * class, else by rules that ask for the protocol and ports alone. sl_is_plain says which packets are plain.
 */
#pragma once
#include "classify.h"
#include "parse.h"

/* Sets the flow of a plain packet, as sl_request_flow does. */
static __always_inline void sl_request_plain_flow(struct sl_request *d, const struct sl_front *f)
{
	u64 *key = (u64 *)&d->flow;

	key[0] = key[2] = 0;
	key[1] = SL_MAPPED | f->addresses >> 32 << 32;
	key[3] = SL_MAPPED | f->rest << 32;
	key[4] = sl_front_sport(f) | (u64)sl_front_dport(f) << 16 | (u64)sl_front_proto(f) << 32 | (u64)(d->direction & 1) << 48 |
		 1ULL << 56;
	d->hash = sl_flow_hash(&d->flow);
}

/*
 * The choice for a plain packet by the rules, which ask for the protocol and ports alone. Returns 0 where the parser must look: a built-in
 * rule may be asked for it.
 */
static __always_inline int sl_choose_by_ports(const struct sl_tables *t, const struct sl_front *f, struct sl_choice *choice)
{
	u32 proto = sl_front_proto(f), sport = sl_front_sport(f), dport = sl_front_dport(f), rule;
	u64 hit;

	hit = sl_small_row(t, t->proto_row[proto]) & sl_small_row(t, t->sport_row[sport]) & sl_small_row(t, t->dport_row[dport]);
	rule = hit ? sl_lowest(hit) : SL_RULE_NONE;
	/* DHCP has a port below 1024 on both sides. */
	if (rule >= t->control_from && proto == 17 && sport < 1024 && dport < 1024)
		return 0;
	choice->rule = rule;
	choice->class = (hit ? *sl_at(t->rule_class, rule) : t->default_class) & (SL_CLASSES - 1);
	return 1;
}
