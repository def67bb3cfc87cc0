/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Policing before the queues, on any number of CPUs: a token bucket in one word (see sched/bucket.h for the algorithm),
 * changed by compare-and-swap. Who loses the race looks again; who loses it SL_POLICE_TRIES times drops the packet, so
 * the bucket never lets too much through.
 */
#pragma once
#include "maps.h"

#define SL_POLICE_TRIES 32

/* Whether the packet conforms; if so, it has been charged. */
static __always_inline int sl_police(const struct sl_tables *t, u32 direction, u32 class, u32 bytes, u64 now_ns)
{
	const struct sl_police_conf *conf = &t->police[direction & 1][class & (SL_CLASSES - 1)];
	u64 now = now_ns << 4, cost = bytes * conf->cost >> 16, seen, next;
	struct sl_police_state *state;
	u32 zero = 0, i;
	u64 *tat;

	if (!conf->cost)
		return 1;
	state = bpf_map_lookup_elem(&police_state, &zero);
	if (!state)
		return 1;
	tat = &state->tat[direction & 1][class & (SL_CLASSES - 1)];
	for (i = 0; i < SL_POLICE_TRIES; i++) {
		seen = *(volatile u64 *)tat;
		if (seen > now + conf->burst)
			return 0;
		next = (seen > now ? seen : now) + cost;
		if (__sync_val_compare_and_swap(tat, seen, next) == seen)
			return 1;
	}
	return 0;
}
