/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Weighted round robin of the four queues of best effort, as self-clocked fair queueing of whole packets: the queue goes next that has used
 * the least, a packet uses its bytes divided by the queue's weight, and a queue that comes back starts from the least that any has used.
 *
 * The four counts are 16 bits each, of half bytes at weight 1, above the least of those that have packets. A quarter of a byte that is rounded
 * would add up with small packets and large weights, so it is rounded up as often as is due: by the fraction of a golden ratio for each packet
 * that the pipe has sent (an additive recurrence, which is spread evenly).
 */
#pragma once
#include "world.h"
#include "../abi/pipes.h"

#define SL_SHARE_LANES    0x0001000100010001ULL /* 1 in each count */
#define SL_SHARE_FRACTION 12 /* bits of share_cost */
#define SL_SHARE_GOLDEN   2531 /* of 4096; odd, so that all fractions come */
#define SL_SHARE_MOST     0x7fffU

/* The queue that goes next, of those in ready (bits 0 to 3), of which there is one at least. Counts are taken from the least. */
SL_FN u32 shares_next(u64 *used, u32 ready)
{
	/* Bit i of ready to bit 16 * i, and from there to the whole count. */
	u64 lanes = (ready * 0x0000200040008001ULL & SL_SHARE_LANES) * 0xffff, counts = *used & lanes;
	/* A count and its queue; those of queues without packets are larger than any. */
	u32 i, key, least = ~0u;

	sl_for (i, 4) {
		key = (u32)(counts >> 16 * i & 0xffff) << 2 | i | (~ready >> i & 1) << 20;
		least = sl_min(least, key);
	}
	*used = counts - ((least >> 2) * SL_SHARE_LANES & lanes);
	return least & 3;
}

/* The use that a packet of so many bytes makes of its share. */
SL_FN u64 share_of_packet(u32 bytes, u32 cost, u32 sent_pkts)
{
	u32 fraction = sent_pkts * SL_SHARE_GOLDEN & ((1u << SL_SHARE_FRACTION) - 1);

	return sl_min((bytes * cost + fraction) >> SL_SHARE_FRACTION, SL_SHARE_MOST);
}
