/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Addresses, ports and protocol of a packet. */
#pragma once
#include "../abi/forward.h"
#include "../sched/world.h"

struct sl_tuple {
	struct sl_end src;
	struct sl_end dst;
	u16 sport; /* network byte order, as dport */
	u16 dport;
	u32 proto;
} __attribute__((aligned(8)));

/* Sets *t to the addresses and ports of packets that go the other way. */
SL_FN void tuple_reverse(struct sl_tuple *t, const struct sl_tuple *of)
{
	t->src = of->dst;
	t->dst = of->src;
	t->sport = of->dport;
	t->dport = of->sport;
	t->proto = of->proto;
}
