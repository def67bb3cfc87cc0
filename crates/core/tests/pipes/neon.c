/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Whether the NEON way of pipe_vectors.h finds what the plain way finds, in random elements. It ends with 1 if not. */
#include "../abi/types.h"
#include "pipe_vectors.h"
#ifndef SL_PIPE_NEON
#error this is not compiled for a processor with NEON
#endif

static u32 next_random(u32 *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

int main(void)
{
	u32 state = 1, round, i, queues;
	u16 element[64];

	for (round = 0; round < 10000; round++) {
		sl_for (i, 64)
			element[i] = (u16)(next_random(&state) & next_random(&state) & next_random(&state));
		queues = next_random(&state) & 0xffff & (round & 1 ? next_random(&state) : 0xffff);
		if (pipes_in_common(element, queues) != pipes_in_common_plainly(element, queues) ||
		    pipes_in_common_neon(element, queues) != pipes_in_common_plainly(element, queues))
			return 1;
	}
	return 0;
}
