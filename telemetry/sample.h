/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Which packets become records. A record's weight is one over the odds that its packet was chosen, so a sum over records, each times its
 * weight, has the sum over all packets as its mean (Horvitz and Thompson 1952). That holds for any odds that do not depend on the packet
 * itself; they may depend on the packets before it, and so on the fill of a ring.
 */
#pragma once
#include "../abi/telemetry.h"
#include "../sched/world.h"

/*
 * The next 32 random bits of a CPU: the high half of a linear congruential generator with Knuth's constants for MMIX. It takes a fraction of the
 * time of the kernel's helper. state: any number to begin with.
 */
SL_FN u32 sample_draw(u64 *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return (u32)(*state >> 32);
}

/* The least odds: one in 2^15. */
#define SAMPLE_STEPS 15u

/*
 * The binary logarithm of one over the odds, for a ring that holds so much of its bytes: every packet while it is less than half full, and half
 * as many at each thirty-second from there on.
 */
SL_FN u32 sample_step(u64 filled_bytes, u32 ring_bytes)
{
	u64 half = ring_bytes / 2, each = ring_bytes / 32;

	if (filled_bytes <= half || !each)
		return 0;
	return (u32)sl_min((filled_bytes - half) / each + 1, (u64)SAMPLE_STEPS);
}

/* Whether a packet is chosen with odds of one in 2^step. random: 32 bits. */
SL_FN u32 sample_is_chosen(u32 random, u32 step)
{
	return !(random & ((1u << (step & 31)) - 1));
}

/* Whether a packet or a flow is chosen with odds of one in n. random: 32 bits, of a flow its keyed hash. */
SL_FN u32 sample_is_one_in(u32 random, u32 n)
{
	return !n || (u32)((u64)random * n >> 32) == 0;
}
