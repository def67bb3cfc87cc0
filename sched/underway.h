/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Packets of its own processor that a hook which drops early has let through, and that the queue has not had yet. They count
 * as queued until the queue has had a packet: else a whole batch would pass because one packet has left.
 */
#pragma once
#include "world.h"
#include "../abi/sched.h"

/* A queue with room for so many packets as long as this one is not near its limits, and nothing is counted. More than a driver hands over at once. */
#define SL_EARLY_PKTS 128u
/* Where packets queue by flow, one part of so many is for flows that are not long. */
#define SL_EARLY_PART 8u
/* Packets that have not come to the queue in this time will not come: something else has taken them. */
#define SL_EARLY_NS   1000000u

/* Forgets what was under way when the queue had had another number of packets, or so long ago that it will not come any more. */
SL_FN void underway_look(struct sl_underway *u, u64 had_pkts, u64 now_ns)
{
	if (had_pkts != u->had_pkts || sl_since(now_ns, u->since_ns) > SL_EARLY_NS) {
		u->had_pkts = had_pkts;
		u->since_ns = now_ns;
		u->pkts = u->bytes = 0;
	}
}
