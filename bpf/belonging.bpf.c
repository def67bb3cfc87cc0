// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Tells a command to which connection of a forward a packet belongs. It is attached nowhere, and shares the tables with forward.bpf.c. */
#include "lib/kernel.h"
#include <bpf/bpf_helpers.h>
#include "../sched/world.h"
#include "lib/forward_tables.h"
#include "../forward/connections.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* The connection of packets that arrive with a tuple, and the side that sends them; or none. */
static __always_inline struct sl_connection *sl_arriving_as(const struct sl_tuple *tuple, u32 *sender)
{
	u32 number = connection_find(sl_table, tuple, tuple_hash(sl_table, tuple));
	struct sl_connection *c = number ? connection_at(sl_table, number) : NULL;

	*sender = c ? connection_side(c, tuple) : SL_SIDES;
	return *sender < SL_SIDES ? c : NULL;
}

/* Run by hand (BPF_PROG_TEST_RUN), as XDP: the packet is a struct sl_belonging, and the answer is written into it. */
SEC("xdp")
int sl_belongs(struct xdp_md *ctx)
{
	struct sl_belonging *b = (void *)(long)ctx->data;
	struct sl_tuple tuple, answer;
	struct sl_connection *c;
	u32 sender;

	if ((void *)(b + 1) > (void *)(long)ctx->data_end)
		return XDP_ABORTED;
	tuple = b->packet;
	b->sender = SL_SIDES;
	c = sl_arriving_as(&tuple, &sender);
	if (!c) {
		/* A packet that leaves has the addresses of an answer that arrives, the other way round. */
		tuple_reverse(&answer, &tuple);
		c = sl_arriving_as(&answer, &sender);
		if (!c)
			return XDP_PASS;
		sender ^= 1;
	}
	b->sender = sender;
	b->connection = *c;
	return XDP_PASS;
}
