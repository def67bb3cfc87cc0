/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Parts of both benches of the scheduler of pipes: processor time and random numbers. */
#pragma once
#include <stdint.h>
#include <time.h>

#define SEQUENCE (1u << 20) /* queues to which packets come in turn */

/* Processor time of this thread, s. */
static inline double spent(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A number below n, the same ones in each run. */
static inline uint32_t random_below(uint32_t n)
{
	static uint64_t state = 88172645463325252ULL;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)((state >> 32) * n >> 32);
}
