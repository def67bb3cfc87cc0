/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Functions over the addresses and ports of a packet. */
#pragma once
#include "../abi/forward.h"
#include "../sched/world.h"

/* Sets *t to the addresses and ports of packets that go the other way. */
SL_FN void tuple_reverse(struct sl_tuple *t, const struct sl_tuple *of)
{
	t->src = of->dst;
	t->dst = of->src;
	t->sport = of->dport;
	t->dport = of->sport;
	t->proto = of->proto;
}
