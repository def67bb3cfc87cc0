/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Functions over the addresses and ports of a packet. */
#pragma once
#include "../abi/forward.h"
#include "../sched/world.h"

SL_FN int tuples_are_equal(const struct sl_tuple *a, const struct sl_tuple *b)
{
	u64 x[5], y[5];

	_Static_assert(sizeof(*a) == sizeof(x), "no padding");
	__builtin_memcpy(x, a, sizeof(x));
	__builtin_memcpy(y, b, sizeof(y));
	return x[4] == y[4] && x[3] == y[3] && x[1] == y[1] && x[2] == y[2] && x[0] == y[0];
}

/* Sets *t to the addresses and ports of packets that go the other way. */
SL_FN void tuple_reverse(struct sl_tuple *t, const struct sl_tuple *of)
{
	t->src = of->dst;
	t->dst = of->src;
	t->sport = of->dport;
	t->dport = of->sport;
	t->proto = of->proto;
}
