/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Runs the scheduler of pipes with backpressure and without on the same work, in turn, and prints CSV: pipes, work, contender, repeat, figure,
 * value. See bench/README.md.
 *
 * Usage: bench REPEATS SECONDS [WORK]
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "contender.h"

static uint32_t sequence[SEQUENCE];

uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Queues in random order, each so many times in a row; the first ones of each pipe. */
static void make_sequence(unsigned int pipes, unsigned int row, unsigned int queues)
{
	uint32_t i, queue = 0;

	for (i = 0; i < SEQUENCE; i++) {
		if (i % row == 0)
			queue = random_below(pipes) * QUEUES + random_below(queues);
		sequence[i] = queue;
	}
}

struct kind {
	const char *name;
	enum port port;
	unsigned int standing; /* packets of held classes, of each pipe */
	unsigned int row;
};

static const struct kind kinds[] = {
	{ "low classes held", HOLDS_LOW, 4, 1 },
	{ "low classes held, bursts of 8", HOLDS_LOW, 4, 8 },
	{ "low classes held, bursts of 32", HOLDS_LOW, 4, 32 },
	{ "half of the classes held in turn", HOLDS_SOME, 0, 1 },
	{ "half held in turn, bursts of 8", HOLDS_SOME, 0, 8 },
	{ "a port that drains", DRAINS, 0, 1 },
	{ "a port that drains, bursts of 8", DRAINS, 0, 8 },
	{ "a full port", IS_FULL, 0, 1 },
};

struct contender {
	const char *name;
	circulate *few, *many;
	unsigned int room;
	int binds;
};

static const struct contender contenders[] = {
	{ "without", few_native, many_native, 0, 0 },  { "never refused", few_native, many_native, 64, 0 },
	{ "binds", few_native, many_native, 64, 1 },   { "binds, AVX2", few_avx2, many_avx2, 64, 1 },
	{ "binds, SSE2", few_sse2, many_sse2, 64, 1 }, { "binds, plainly", few_plain, many_plain, 64, 1 },
};

static void run_kind(unsigned int pipes, const struct kind *k, const struct contender *c, unsigned int repeat, double seconds)
{
	struct work w = { .pipes = pipes,
			  .circulating = 4 * pipes,
			  .standing = k->standing * pipes,
			  .room = c->room,
			  .port = c->binds ? k->port : TAKES_ALL,
			  .sequence = sequence };
	struct figures f = (pipes == 4096 ? c->few : c->many)(&w, seconds);

	printf("%u,\"%s\",\"%s\",%u,mpps,%.6g\n", pipes, k->name, c->name, repeat, f.mpps);
	printf("%u,\"%s\",\"%s\",%u,held_classes,%.6g\n", pipes, k->name, c->name, repeat, f.held_classes);
	printf("%u,\"%s\",\"%s\",%u,packets_of_a_dequeue,%.6g\n", pipes, k->name, c->name, repeat, f.got);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	unsigned int repeats = argc > 1 ? (unsigned int)atoi(argv[1]) : 5, r, i, k;
	double seconds = argc > 2 ? atof(argv[2]) : 0.3;
	static const unsigned int pipes[] = { 4096, 32768 };
	cpu_set_t set, last;
	unsigned int p;

	/* The last processor that this process may use. */
	sched_getaffinity(0, sizeof(set), &set);
	for (i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &set)) {
			CPU_ZERO(&last);
			CPU_SET(i, &last);
		}
	sched_setaffinity(0, sizeof(last), &last);
	puts("pipes,work,contender,repeat,figure,value");
	for (p = 0; p < 2; p++) {
		for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
			if (argc > 3 && strcmp(argv[3], kinds[i].name) != 0)
				continue;
			make_sequence(pipes[p], kinds[i].row, kinds[i].port == HOLDS_LOW ? HELD_FROM : QUEUES);
			for (r = 1; r <= repeats; r++)
				for (k = 0; k < sizeof(contenders) / sizeof(*contenders); k++)
					run_kind(pipes[p], &kinds[i], &contenders[k], r, seconds);
		}
	}
	return 0;
}
