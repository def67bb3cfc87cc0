/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Sluice's scheduler of pipes as a contender, CONTENDER, for SL_PIPES pipes. CODEL: every queue has it. HEADERS: a packet has a line of memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "../../abi/types.h"
#include "pipe_change.h"
#include "contender.h"

#define NS 1000000000.0

struct state {
	struct sl_pipe_packet left[BATCH]; /* packets that have left */
	u32 n, len;
	/* A line for each packet, written and read once, as of an mbuf. */
	struct header {
		u32 queue, len;
		u32 rest[30];
	} *header;
	struct sl_pipes t;
};

static u32 cost_of(double rate, u32 bits)
{
	return (u32)(NS / rate * (1u << bits) + 0.5);
}

static void *open_port(const struct work *w, size_t *bytes)
{
	struct state *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	struct sl_pipes_conf conf = { .slots = SL_PIPE_SLOTS, .overhead_bytes = FRAMING };
	struct sl_subport_conf subport = { .pipes = w->pipes / w->subports };
	struct sl_pipe_profile profile = { .period_bits = w->bytes > 256 ? 21 : SL_PIPE_PERIOD_MOST,
					   .codel_target = 15259,
					   .codel_interval = 15259 };
	struct sl_pipe_conf pipe = { .profile = 1, .burst_ticks = 2 };
	u64 now = clock_ns();
	u32 i;

	if (s == MAP_FAILED || w->pipes != SL_PIPES || w->held > SL_PIPE_SLOTS) {
		fprintf(stderr, "no memory, or compiled for %u pipes\n", SL_PIPES);
		exit(1);
	}
	conf.cost = cost_of(w->port_rate, 20);
	conf.burst_ns = (u64)((1 << 24) / w->port_rate * NS);
	pipes_set_up(&s->t, &conf, now);
	subport.cost = conf.cost;
	subport.burst_ns = subport.class_burst_ns = conf.burst_ns;
	for (i = 0; i < SL_PIPE_CLASSES; i++) {
		subport.class_cost[i] = conf.cost;
		profile.credit[i] = SL_PIPE_CREDIT_MAX << SL_PIPE_CREDIT_BITS;
		if (w->class_rate)
			profile.credit[i] = (u32)(w->class_rate * (1 << profile.period_bits) / NS * (1 << SL_PIPE_CREDIT_BITS));
	}
	for (i = 0; i < SL_PIPE_QUEUES; i++) {
		profile.limit_pkts[i] = w->limit;
		profile.limit_bytes[i] = 1u << 30;
	}
	for (i = 0; i < 4; i++)
		profile.share_cost[i] = SL_PIPE_SHARE_COST;
#ifdef CODEL
	profile.codel = 0xffff;
#endif
	pipes_set_profile(&s->t, 1, &profile);
	for (i = 0; i < w->subports; i++) {
		subport.first_pipe = i * subport.pipes;
		if (pipes_set_subport(&s->t, i, &subport, now) != SL_PIPE_DONE)
			exit(1);
	}
	if (w->pipe_rate) {
		pipe.cost = cost_of(w->pipe_rate, SL_PIPE_COST_BITS);
		pipe.burst_ticks = (u32)(w->pipe_burst / w->pipe_rate * NS / (1 << SL_WHEEL_TICK_BITS)) + 1;
		pipe.burst_ticks = sl_max(pipe.burst_ticks, 2);
	}
	for (i = 0; i < w->pipes; i++)
		if (pipes_configure(&s->t, i, &pipe, now) != SL_PIPE_DONE)
			exit(1);
	s->len = w->bytes;
#ifdef HEADERS
	s->header = mmap(NULL, SL_PIPE_SLOTS * sizeof(*s->header), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
#endif
	*bytes = sizeof(s->t);
	return s;
}

static void close_port(void *state)
{
	struct state *s = state;

#ifdef HEADERS
	munmap(s->header, SL_PIPE_SLOTS * sizeof(*s->header));
#endif
	munmap(s, sizeof(*s));
}

static void reap(struct state *s)
{
#ifdef CODEL
	while (pipes_reap(&s->t) != SL_PIPE_NO_SLOT)
		;
#else
	(void)s;
#endif
}

static u32 enqueue(struct state *s, struct sl_pipe_packet *packet, u32 n)
{
	u64 refused = pipes_enqueue(&s->t, packet, n, clock_ns());

#ifdef HEADERS
	for (u32 i = 0; i < n; i++) {
		if (packet[i].slot == SL_PIPE_NO_SLOT)
			continue;
		s->header[packet[i].slot].queue = packet[i].queue;
		s->header[packet[i].slot].len = packet[i].len_bytes;
	}
#endif
	return n - (u32)__builtin_popcountll(refused);
}

static unsigned int bring(void *state, const uint32_t *queue, unsigned int n)
{
	struct sl_pipe_packet packet[BATCH];
	struct state *s = state;

	for (u32 i = 0; i < n; i++)
		packet[i] = (struct sl_pipe_packet){ queue[i], 0, s->len };
	return enqueue(s, packet, n);
}

static unsigned int take(void *state)
{
	struct state *s = state;

	s->n = pipes_dequeue(&s->t, s->left, BATCH, (1u << SL_PIPE_CLASSES) - 1, NULL, clock_ns());
	reap(s);
#ifdef HEADERS
	for (u32 i = 0; i < s->n; i++)
		__builtin_prefetch(&s->header[s->left[i].slot], 1);
#endif
	return s->n;
}

static unsigned int give_back(void *state, const uint32_t *queue)
{
	struct state *s = state;

	for (u32 i = 0; i < s->n; i++) {
#ifdef HEADERS
		s->left[i].len_bytes = s->header[s->left[i].slot].len;
#endif
		s->left[i].queue = queue[i];
	}
	return enqueue(s, s->left, s->n);
}

static void forget(void *state)
{
	(void)state;
}

static uint32_t queue_of(void *state, unsigned int i)
{
	return ((struct state *)state)->left[i].queue;
}

static uint32_t bytes_of(void *state, unsigned int i)
{
	return ((struct state *)state)->left[i].len_bytes;
}

#if defined(CODEL)
#define NAME "sluice, CoDel"
#elif defined(HEADERS)
#define NAME "sluice, headers"
#else
#define NAME "sluice"
#endif

const struct contender CONTENDER = {
	.name = NAME,
	.exact_clock = 1,
	.open = open_port,
	.close = close_port,
	.bring = bring,
	.take = take,
	.give_back = give_back,
	.forget = forget,
	.queue = queue_of,
	.bytes = bytes_of,
};
