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
	u64 *key = (u64 *)&d->flow;

	key[0] = key[2] = 0;
	key[1] = SL_MAPPED | f->addresses >> 32 << 32;
	key[3] = SL_MAPPED | f->rest << 32;
	key[4] = sl_front_sport(f) | (u64)sl_front_dport(f) << 16 | (u64)sl_front_proto(f) << 32 | (u64)(d->direction & 1) << 48 |
		 1ULL << 56;
	d->hash = sl_flow_hash(&d->flow);
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
	/* DHCP has a port below 1024 on both sides. */
	return !(choice->rule >= t->control_from && udp && sport < 1024 && dport < 1024);
}
