/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The link that the schedulers below mq share (sched/shared_dequeue.h). The number of a scheduler is that of its instance there. The includer defines
 * sl_shares, and the maps `state` and `sched_conf`.
 */
#pragma once
#include "instances.h"
#include "maps.h"
#include "shared_maps.h"
#include "../../sched/shared_dequeue.h"

/* A scheduler's part in a link; x is NULL if it shares none. */
struct sl_shared_part {
	struct sl_shared_instance *x;
	struct sl_shared_link *l;
	const struct sl_shared_conf *f;
};

static __always_inline struct sl_shared_instance *sl_shared_instance_of(u32 n)
{
	return bpf_map_lookup_elem(&shared_instance, &n);
}

static __always_inline struct sl_shared_link *sl_shared_link_of_all(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&shared_link, &zero);
}

/* The part of scheduler n, whose configuration is that of the live buffer. */
static __always_inline struct sl_shared_part sl_shared_part_of(const struct sl_sched *s, u32 n, u64 live)
{
	struct sl_shared_part part = {}, none = {};
	u32 buffer = sl_live_buffer(live);

	if (!sl_shares || s->direction != SL_EGRESS)
		return none;
	part.f = bpf_map_lookup_elem(&shared_conf, &buffer);
	part.x = sl_shared_instance_of(n);
	part.l = sl_shared_link_of_all();
	return part.f && part.f->link.cost && part.x && part.l ? part : none;
}

/* Scheduler n has no packets: it leaves the classes of the link, and gives back what others lack. */
SL_GLOBAL int sl_shared_idle(struct sl_sched *s SL_NONNULL, u32 n, u64 live, u64 now_ns)
{
	struct sl_shared_part part = sl_shared_part_of(s, n, live);

	if (part.x)
		shared_prepare(s, part.x, part.l, part.f, now_ns);
	return 0;
}

/* Scheduler n has another configuration. */
SL_GLOBAL int sl_shared_renew(u32 n)
{
	struct sl_shared_instance *x = sl_shared_instance_of(n);
	struct sl_shared_link *l = sl_shared_link_of_all();

	return x && l ? shared_renew(x, l) : 0;
}

/* Scheduler n ends, or has been emptied. Credit that it drew by a configuration that is gone is forgotten. */
SL_GLOBAL int sl_shared_end(struct sl_sched *s SL_NONNULL, u32 n, u64 live, u64 now_ns)
{
	struct sl_shared_part part = sl_shared_part_of(s, n, live);
	struct sl_shared_instance *x = sl_shared_instance_of(n);

	if (part.x && s->generation == sl_live_generation(live))
		shared_stop(part.x, part.l, part.f, now_ns);
	else
		sl_shared_renew(n);
	if (x)
		shared_begin(x, n);
	return 0;
}
