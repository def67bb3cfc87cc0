/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* DPDK's rte_sched as a contender. CONTENDER is its name; compiled once for the distribution's library, and once for its source. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_sched.h>
#include "contender.h"

struct state {
	struct rte_sched_port *port;
	struct rte_mempool *pool;
	struct rte_mbuf *left[BATCH]; /* packets that have left */
	unsigned int n, len;
	struct rte_mbuf **spare; /* packets that are not queued */
	unsigned int spares;
};

static unsigned int configure(struct rte_sched_port *port, const struct work *w, double pipe_rate)
{
	struct rte_sched_subport_params subport = { 0 };
	struct rte_sched_pipe_params pipe = { 0 };
	unsigned int i, s, p, each = w->pipes / w->subports;

	pipe.tb_rate = (uint64_t)pipe_rate;
	pipe.tb_size = w->pipe_rate ? w->pipe_burst : 1 << 24;
	pipe.tc_period = 40;
	for (i = 0; i < RTE_SCHED_TRAFFIC_CLASSES_PER_PIPE; i++) {
		pipe.tc_rate[i] = w->class_rate ? (uint64_t)w->class_rate : pipe.tb_rate;
		subport.qsize[i] = (uint16_t)w->limit;
	}
	for (i = 0; i < RTE_SCHED_BE_QUEUES_PER_PIPE; i++)
		pipe.wrr_weights[i] = 1;
	pipe.tc_ov_weight = 1;
	subport.n_pipes_per_subport_enabled = each;
	subport.pipe_profiles = &pipe;
	subport.n_pipe_profiles = subport.n_max_pipe_profiles = 1;
	for (s = 0; s < w->subports; s++) {
		if (rte_sched_subport_config(port, s, &subport, 0))
			return 0;
		for (p = 0; p < each; p++)
			if (rte_sched_pipe_config(port, s, p, 0))
				return 0;
	}
	return 1;
}

static void *open_port(const struct work *w, size_t *bytes)
{
	struct rte_sched_subport_profile_params profile = { 0 };
	struct rte_sched_port_params params = { 0 };
	struct rte_malloc_socket_stats before, after;
	struct state *s = calloc(1, sizeof(*s));
	unsigned int packets = w->held + 1024, i;
	static unsigned int number;
	char name[32];

	snprintf(name, sizeof(name), "pool%u", number++);
	s->pool = rte_pktmbuf_pool_create(name, packets, 0, 0, RTE_PKTMBUF_HEADROOM, 0);
	s->spare = calloc(packets, sizeof(*s->spare));
	if (!s->pool || rte_pktmbuf_alloc_bulk(s->pool, s->spare, w->held)) {
		fprintf(stderr, "no memory for %u packets\n", packets);
		exit(1);
	}
	s->spares = w->held;
	for (i = 0; i < w->held; i++)
		s->spare[i]->pkt_len = s->spare[i]->data_len = (uint16_t)w->bytes;
	s->len = w->bytes;
	rte_malloc_get_socket_stats(0, &before);
	profile.tb_rate = (uint64_t)w->port_rate;
	profile.tb_size = 1 << 24;
	profile.tc_period = 10;
	for (i = 0; i < RTE_SCHED_TRAFFIC_CLASSES_PER_PIPE; i++)
		profile.tc_rate[i] = profile.tb_rate;
	params.name = name;
	params.rate = (uint64_t)w->port_rate;
	params.mtu = 1522;
	params.frame_overhead = FRAMING;
	params.n_subports_per_port = w->subports;
	params.subport_profiles = &profile;
	params.n_subport_profiles = params.n_max_subport_profiles = 1;
	params.n_pipes_per_subport = w->pipes / w->subports;
	s->port = rte_sched_port_config(&params);
	if (!s->port || !configure(s->port, w, w->pipe_rate ? w->pipe_rate : w->port_rate)) {
		fprintf(stderr, "rte_sched refuses %u pipes in %u subports\n", w->pipes, w->subports);
		exit(1);
	}
	rte_malloc_get_socket_stats(0, &after);
	*bytes = after.heap_allocsz_bytes - before.heap_allocsz_bytes;
	return s;
}

static void close_port(void *state)
{
	struct state *s = state;

	rte_sched_port_free(s->port);
	/* Packets that were queued are freed with their pool: the port leaves some behind. */
	rte_mempool_free(s->pool);
	free(s->spare);
	free(s);
}

static unsigned int bring(void *state, const uint32_t *queue, unsigned int n)
{
	struct state *s = state;
	struct rte_mbuf *m[BATCH];
	unsigned int i;

	/* A full queue frees the packet that it refuses. */
	if (s->spares < n) {
		unsigned int more = BATCH * 8;

		if (!rte_pktmbuf_alloc_bulk(s->pool, s->spare + s->spares, more)) {
			for (i = s->spares; i < s->spares + more; i++)
				s->spare[i]->pkt_len = s->spare[i]->data_len = (uint16_t)s->len;
			s->spares += more;
		}
	}
	n = n < s->spares ? n : s->spares;
	s->spares -= n;
	for (i = 0; i < n; i++) {
		m[i] = s->spare[s->spares + i];
		rte_mbuf_sched_set(m[i], queue[i], (uint8_t)class_of(queue[i] % QUEUES), 0);
	}
	return n ? (unsigned int)rte_sched_port_enqueue(s->port, m, n) : 0;
}

static unsigned int take(void *state)
{
	struct state *s = state;

	s->n = (unsigned int)rte_sched_port_dequeue(s->port, s->left, BATCH);
	return s->n;
}

static unsigned int give_back(void *state, const uint32_t *queue)
{
	struct state *s = state;
	unsigned int i;

	for (i = 0; i < s->n; i++)
		rte_mbuf_sched_set(s->left[i], queue[i], (uint8_t)class_of(queue[i] % QUEUES), 0);
	return s->n ? (unsigned int)rte_sched_port_enqueue(s->port, s->left, s->n) : 0;
}

static void forget(void *state)
{
	struct state *s = state;

	memcpy(s->spare + s->spares, s->left, s->n * sizeof(*s->left));
	s->spares += s->n;
}

static uint32_t queue_of(void *state, unsigned int i)
{
	return rte_mbuf_sched_queue_get(((struct state *)state)->left[i]);
}

static uint32_t bytes_of(void *state, unsigned int i)
{
	return ((struct state *)state)->left[i]->pkt_len;
}

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

const struct contender CONTENDER = {
	.name = TEXT(CONTENDER),
	.exact_clock = EXACT_CLOCK,
	.open = open_port,
	.close = close_port,
	.bring = bring,
	.take = take,
	.give_back = give_back,
	.forget = forget,
	.queue = queue_of,
	.bytes = bytes_of,
};
