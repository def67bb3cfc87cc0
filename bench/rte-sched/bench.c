/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Runs each contender on the same work, in turn, and prints CSV: pipes, work, contender, repeat, figure, value. See bench/README.md.
 *
 * Usage: bench REPEATS SECONDS [WORK]
 */
#define _GNU_SOURCE
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include "../pipes.h"
#include "contender.h"

#define LINE    12.5e9 /* bytes a second: 100 Gbit/s */
#define OFFERED 16e6 /* packets a second, where half are dropped */

static uint32_t sequence[SEQUENCE];
static double cycles_a_second;

/* The clock that contenders see. It is simulated if simulated_cycles is not 0. */
static uint64_t simulated_cycles, taken_cycles, last_cycles;

uint64_t clock_cycles(void)
{
	uint64_t now;

	if (simulated_cycles)
		return simulated_cycles;
	now = rte_rdtsc();
	/* No call here takes so long: another process had the processor. */
	if (last_cycles && (double)(now - last_cycles) > cycles_a_second * 0.0015)
		taken_cycles += now - last_cycles;
	last_cycles = now;
	return now - taken_cycles;
}

uint64_t clock_ns(void)
{
	static double ns_a_cycle;

	if (ns_a_cycle == 0)
		ns_a_cycle = 1e9 / cycles_a_second;
	return (uint64_t)((double)clock_cycles() * ns_a_cycle);
}

/* Queues in random order, each so many times in a row; every spacing-th queue of a pipe. */
static void make_sequence(unsigned int pipes, unsigned int row, unsigned int spacing)
{
	uint32_t i, queue = 0;

	for (i = 0; i < SEQUENCE; i++) {
		if (i % row == 0)
			queue = random_below(pipes * QUEUES / spacing) * spacing;
		sequence[i] = queue;
	}
}

static const uint32_t *next_queues(void)
{
	static uint32_t at;

	at += BATCH;
	return &sequence[(at - BATCH) & (SEQUENCE - 1)];
}

static void row(unsigned int pipes, const char *work, const struct contender *c, unsigned int repeat, const char *figure,
		double value)
{
	printf("%u,\"%s\",\"%s\",%u,%s,%.6g\n", pipes, work, c->name, repeat, figure, value);
	fflush(stdout);
}

/* Packets circulate: what leaves comes back at once, to other queues. Packets that left in a second, in millions. */
static double circulate(const struct contender *c, const struct work *w, double seconds, size_t *bytes)
{
	void *s = c->open(w, bytes);
	uint64_t left = 0, loops = 0;
	unsigned int i, n;
	double begin, now;
	int warm = 0;

	for (i = 0; i < w->held; i += BATCH)
		c->bring(s, next_queues(), BATCH);
	begin = spent();
	for (;;) {
		n = c->take(s);
		c->give_back(s, next_queues());
		left += n;
		if (++loops & 511)
			continue;
		now = spent();
		if (!warm && now - begin > seconds / 3) {
			warm = 1;
			begin = now;
			left = 0;
		} else if (warm && now - begin > seconds) {
			break;
		}
	}
	c->close(s);
	return (double)left / (now - begin) / 1e6;
}

/*
 * Packets come at a constant rate of simulated time, and pipes are shaped to half of it. Packets that came in a second of processor time, in
 * millions; *dropped: the share of them that did not leave.
 */
static double overload(const struct contender *c, const struct work *as, double seconds, double *dropped)
{
	uint64_t step = (uint64_t)(cycles_a_second * BATCH / OFFERED), came = 0, left = 0, loops = 0, warm_loops;
	struct work w = *as;
	int warm = 0;
	double begin, now;
	size_t bytes;
	void *s;

	w.pipe_rate = OFFERED / 2 * (w.bytes + FRAMING) / w.pipes;
	simulated_cycles = (uint64_t)(cycles_a_second * 10);
	s = c->open(&w, &bytes);
	/* Until queues are full and bursts are used up. */
	warm_loops = (uint64_t)w.pipes * 4 * w.limit * 4 / BATCH;
	begin = spent();
	for (;;) {
		simulated_cycles += step;
		c->bring(s, next_queues(), BATCH);
		left += c->take(s);
		c->forget(s);
		came += BATCH;
		if (++loops & 63)
			continue;
		now = spent();
		/* A scheduler that takes long is not waited for. */
		if (!warm && (loops > warm_loops || now - begin > 2)) {
			warm = 1;
			begin = now;
			came = left = 0;
		} else if (warm && now - begin > seconds) {
			break;
		}
	}
	c->close(s);
	simulated_cycles = 0;
	*dropped = 1 - (double)left / (double)came;
	return (double)came / (now - begin) / 1e6;
}

/*
 * All pipes wait for tokens and are due at once: the longest call, ns. Rounds repeat the same calls, and of each the shortest counts: in others,
 * another process or the hypervisor may have had the processor.
 */
static double longest_call(const struct contender *c, const struct work *as, unsigned int rounds)
{
	struct work w = *as;
	uint64_t step = (uint64_t)(cycles_a_second * 2e-6), begin, took, longest = 0, *least;
	uint32_t queue[BATCH];
	unsigned int i, j, round, n;
	size_t bytes;
	void *s;

	least = malloc(2 * w.pipes * sizeof(*least));
	memset(least, 0xff, 2 * w.pipes * sizeof(*least));
	w.pipe_rate = 8800;
	w.pipe_burst = 1;
	w.held = w.pipes;
	simulated_cycles = (uint64_t)(cycles_a_second * 10);
	s = c->open(&w, &bytes);
	for (i = 0; i < w.pipes; i += BATCH) {
		for (j = 0; j < BATCH; j++)
			queue[j] = (i + j) * QUEUES + (i + j) % QUEUES;
		c->bring(s, queue, BATCH);
	}
	for (round = 0; round < rounds; round++) {
		/* Longer than a packet's tokens take. */
		simulated_cycles += (uint64_t)(cycles_a_second * 0.02);
		for (i = 0; i < 2 * w.pipes / BATCH; i++) {
			simulated_cycles += step;
			begin = rte_rdtsc();
			n = c->take(s);
			took = rte_rdtsc() - begin;
			least[2 * i] = took < least[2 * i] ? took : least[2 * i];
			for (j = 0; j < n; j++)
				queue[j] = c->queue(s, j);
			begin = rte_rdtsc();
			c->give_back(s, queue);
			took = rte_rdtsc() - begin;
			least[2 * i + 1] = took < least[2 * i + 1] ? took : least[2 * i + 1];
		}
	}
	for (i = 0; i < 4 * w.pipes / BATCH; i++)
		longest = least[i] > longest ? least[i] : longest;
	free(least);
	c->close(s);
	simulated_cycles = 0;
	return (double)longest * 1e9 / cycles_a_second;
}

#define ACTIVE 16 /* one of so many pipes has packets, where accuracy is measured */

struct accuracy {
	double rate_error; /* the largest of a pipe, or of a class, beyond a packet */
	double fairness; /* Jain's index of the pipes' bytes */
	double inversions; /* packets that left while a class before theirs had one */
};

/* Simulated seconds, in which every 16th pipe has packets in classes 0 to classes - 1 all the time. */
static struct accuracy account(const struct contender *c, const struct work *w, unsigned int classes, double seconds,
			       double step_s)
{
	uint64_t *sent = calloc(w->pipes * QUEUES, sizeof(*sent)), packets = 0, inverted = 0,
		 step = (uint64_t)(cycles_a_second * step_s);
	uint32_t *queued = calloc(w->pipes * QUEUES, sizeof(*queued)), queue[BATCH];
	double warm = seconds / 10, sum = 0, squares = 0, expected, packet = w->bytes + FRAMING;
	uint64_t start = (uint64_t)(cycles_a_second * 10), reset, end;
	struct accuracy a = { 0 };
	unsigned int i, j, n, k;
	size_t bytes;
	void *s;

	simulated_cycles = start;
	s = c->open(w, &bytes);
	for (k = 0; k < classes; k++) {
		for (i = 0; i < w->pipes; i += BATCH * ACTIVE) {
			for (n = 0; n < 4; n++) {
				for (j = 0; j < BATCH; j++)
					queue[j] = (i + j * ACTIVE) * QUEUES + k;
				c->bring(s, queue, BATCH);
			}
			for (j = 0; j < BATCH; j++)
				queued[(i + j * ACTIVE) * QUEUES + k] = 4;
		}
	}
	reset = start + (uint64_t)(cycles_a_second * warm);
	end = reset + (uint64_t)(cycles_a_second * seconds);
	for (; simulated_cycles < end; simulated_cycles += step) {
		if (reset && simulated_cycles >= reset) {
			memset(sent, 0, w->pipes * QUEUES * sizeof(*sent));
			reset = 0;
			start = simulated_cycles;
			packets = inverted = 0;
		}
		for (i = 0; i < 64; i++) {
			n = c->take(s);
			for (j = 0; j < n; j++) {
				queue[j] = c->queue(s, j);
				sent[queue[j]] += c->bytes(s, j) + FRAMING;
				for (k = 0; k < queue[j] % QUEUES; k++)
					if (queued[queue[j] / QUEUES * QUEUES + k]) {
						inverted++;
						break;
					}
				queued[queue[j]]--;
			}
			packets += n;
			if (c->give_back(s, queue) != n) {
				fprintf(stderr, "%s: refused\n", c->name);
				exit(1);
			}
			for (j = 0; j < n; j++)
				queued[queue[j]]++;
			if (n < BATCH)
				break;
		}
	}
	expected = (w->class_rate ? w->class_rate : w->pipe_rate) * (double)(end - start) / cycles_a_second;
	for (i = 0; i < w->pipes; i += ACTIVE) {
		double all = 0;

		for (k = 0; k < classes; k++) {
			double own = (double)sent[i * QUEUES + k];

			if (w->class_rate)
				a.rate_error = fmax(a.rate_error, (fabs(own - expected) - packet) / expected);
			all += own;
		}
		if (!w->class_rate && w->pipe_rate)
			a.rate_error = fmax(a.rate_error, (fabs(all - expected) - packet) / expected);
		sum += all;
		squares += all * all;
	}
	a.fairness = squares > 0 ? sum * sum / squares / (w->pipes / ACTIVE) : 0;
	a.inversions = packets ? (double)inverted / (double)packets : 0;
	c->close(s);
	simulated_cycles = 0;
	free(sent);
	free(queued);
	return a;
}

struct circulating {
	const char *name;
	unsigned int held_a_pipe, held, row, subports, bytes;
};

static const struct circulating circulating[] = {
	{ "random, 4 a pipe", 4, 0, 1, 1, 64 },     { "random, 16 a pipe", 16, 0, 1, 1, 64 },
	{ "64 in all", 0, 64, 1, 1, 64 },           { "bursts of 8", 4, 0, 8, 1, 64 },
	{ "bursts of 32", 4, 0, 32, 1, 64 },        { "random, 8 subports", 4, 0, 1, 8, 64 },
	{ "random, 1500 bytes", 4, 0, 1, 1, 1500 },
};

static void run_pipes(unsigned int pipes, const struct contender *const *contenders, unsigned int repeats, double seconds,
		      const char *only)
{
	struct work base = { .pipes = pipes, .subports = 1, .limit = 64, .bytes = 64, .port_rate = LINE };
	double dropped, mpps;
	unsigned int i, r, k;
	struct accuracy a;
	size_t bytes;

	for (i = 0; i < sizeof(circulating) / sizeof(*circulating); i++) {
		const struct circulating *x = &circulating[i];
		struct work w = base;

		if (only && strcmp(only, x->name) != 0)
			continue;
		w.held = x->held + x->held_a_pipe * pipes;
		w.subports = x->subports;
		w.bytes = x->bytes;
		/* So that no rate is reached. */
		w.port_rate = LINE * 8;
		make_sequence(pipes, x->row, 1);
		for (r = 1; r <= repeats; r++) {
			for (k = 0; contenders[k]; k++) {
				row(pipes, x->name, contenders[k], r, "mpps", circulate(contenders[k], &w, seconds, &bytes));
				if (r == 1 && !i)
					row(pipes, "memory", contenders[k], r, "mib", (double)bytes / 1048576);
			}
		}
	}
	if (!only || !strcmp(only, "half dropped")) {
		struct work w = base;

		/* Four queues a pipe, all of which fill. */
		w.limit = 4;
		w.held = 17 * pipes;
		w.pipe_burst = 1600;
		/* rte_sched divides by zero if a pipe has less than a millionth of it. */
		w.port_rate = LINE / 3;
		make_sequence(pipes, 1, 4);
		for (r = 1; r <= repeats; r++) {
			for (k = 0; contenders[k] && k < 3; k++) {
				if (!contenders[k]->exact_clock)
					continue;
				mpps = overload(contenders[k], &w, seconds, &dropped);
				row(pipes, "half dropped", contenders[k], r, "mpps", mpps);
				row(pipes, "half dropped", contenders[k], r, "dropped", dropped);
			}
		}
	}
	if (!only || !strcmp(only, "longest call")) {
		/* rte_sched needs minutes for more rounds, or more pipes. */
		for (k = 0; contenders[k] && k < 3; k++)
			if (contenders[k]->exact_clock && (pipes == 4096 || contenders[k] != &rte_sched_native))
				row(pipes, "all due at once", contenders[k], 1, "longest_ns",
				    longest_call(contenders[k], &base, contenders[k] == &rte_sched_native ? 2 : 40));
	}
	/* It does not depend on the number of pipes, and takes long. */
	if (pipes == 4096 && (!only || !strcmp(only, "accuracy"))) {
		for (k = 0; contenders[k] && k < 3; k++) {
			struct work w = base;

			if (!contenders[k]->exact_clock)
				continue;
			w.bytes = 1500;
			w.held = pipes * 4 * 3;
			/* In 10 ms, a pipe and its classes have more than a frame. */
			w.pipe_rate = 1e6 * 4096 / pipes + 200000;
			w.pipe_burst = 1524 * 2;
			a = account(contenders[k], &w, 3, 10, 20e-6);
			row(pipes, "pipes at their rate", contenders[k], 1, "rate_error", a.rate_error);
			row(pipes, "pipes at their rate", contenders[k], 1, "inversions", a.inversions);
			row(pipes, "pipes at their rate", contenders[k], 1, "jain", a.fairness);
			w.pipe_rate = 0;
			w.class_rate = 200000;
			a = account(contenders[k], &w, 3, 10, 20e-6);
			row(pipes, "classes at their limit", contenders[k], 1, "rate_error", a.rate_error);
			/* In a period, a class has less than a frame. */
			w.class_rate = 100000;
			a = account(contenders[k], &w, 3, 10, 20e-6);
			row(pipes, "classes at a lower limit", contenders[k], 1, "rate_error", a.rate_error);
			w.class_rate = 0;
			w.port_rate = LINE / 10;
			a = account(contenders[k], &w, 3, 1, 20e-6);
			row(pipes, "a port at its rate", contenders[k], 1, "jain", a.fairness);
			row(pipes, "a port at its rate", contenders[k], 1, "inversions", a.inversions);
		}
	}
}

int main(int argc, char **argv)
{
	static const struct contender *const few[] = { &rte_sched_library,  &rte_sched_native, &pipes_4096,
						       &pipes_4096_headers, &pipes_4096_codel, NULL };
	static const struct contender *const many[] = { &rte_sched_library,   &rte_sched_native,  &pipes_32768,
							&pipes_32768_headers, &pipes_32768_codel, NULL };
	unsigned int repeats = argc > 1 ? (unsigned int)atoi(argv[1]) : 5, cpu = 0;
	double seconds = argc > 2 ? atof(argv[2]) : 0.3;
	const char *only = argc > 3 ? argv[3] : NULL;
	char core[16];
	char *eal[] = {
		"bench", "-l", core, "-m", "1800", "--no-huge", "--no-shconf", "--no-pci", "--no-telemetry", "--log-level=error",
		NULL
	};
	cpu_set_t set;

	/* The last processor that this process may use. */
	sched_getaffinity(0, sizeof(set), &set);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &set))
			cpu = (unsigned int)i;
	snprintf(core, sizeof(core), "%u", cpu);
	if (rte_eal_init(10, eal) < 0)
		return 1;
	cycles_a_second = (double)rte_get_tsc_hz();
	puts("pipes,work,contender,repeat,figure,value");
	run_pipes(4096, few, repeats, seconds, only);
	run_pipes(32768, many, repeats, seconds, only);
	return 0;
}
