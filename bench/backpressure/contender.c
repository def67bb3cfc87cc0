/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The scheduler of pipes, with backpressure or without, as the function CONTENDER, for SL_PIPES pipes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "../../abi/types.h"
#include "pipe_change.h"
#include "backpressure.h"
#include "contender.h"

#define MAY_SEND   ((1u << SL_PIPE_CLASSES) - 1)
/* Packets that a port takes in a round: of each class what is in its list before and after the dequeue. */
#define TAKEN_MOST (2 * SL_PIPE_CLASSES * SL_BACKPRESSURE_PLACES)

struct state {
	struct sl_backpressure b;
	u32 port_pkts[SL_PIPE_PLACES]; /* in the queues of the port */
	u32 refused; /* classes of which it takes none */
	u32 at; /* of the sequence */
	u64 rounds, random;
	u32 n; /* packets that the port has taken in this round */
	struct sl_pipe_packet left[TAKEN_MOST];
	struct sl_pipes t;
};

static void set_up(struct state *s, const struct work *w)
{
	/* 800 Gbit/s, so that no rate is reached; limits of classes are in use. */
	struct sl_pipes_conf conf = {
		.slots = SL_PIPE_SLOTS, .overhead_bytes = 24, .cost = (1 << 20) / 100, .burst_ns = 1000000
	};
	struct sl_subport_conf subport = {
		.pipes = w->pipes, .cost = conf.cost, .burst_ns = conf.burst_ns, .class_burst_ns = 1000000
	};
	struct sl_pipe_profile profile = { .period_bits = SL_PIPE_PERIOD_MOST };
	struct sl_pipe_conf pipe = { .profile = 1, .burst_ticks = 2 };
	struct sl_backpressure_conf lists = { .burst_pkts = BATCH };
	u64 now = clock_ns();
	u32 i;

	pipes_set_up(&s->t, &conf, now);
	sl_for (i, SL_PIPE_CLASSES) {
		subport.class_cost[i] = conf.cost;
		profile.credit[i] = SL_PIPE_CREDIT_MAX << SL_PIPE_CREDIT_BITS;
		lists.room_pkts[i] = w->room;
	}
	sl_for (i, SL_PIPE_QUEUES) {
		profile.limit_pkts[i] = 1 << 20;
		profile.limit_bytes[i] = 1u << 30;
	}
	sl_for (i, 4)
		profile.share_cost[i] = SL_PIPE_SHARE_COST;
	pipes_set_profile(&s->t, 1, &profile);
	if (w->pipes != SL_PIPES || pipes_set_subport(&s->t, 0, &subport, now) != SL_PIPE_DONE)
		exit(1);
	sl_for (i, w->pipes)
		pipes_configure(&s->t, i, &pipe, now);
	backpressure_configure(&s->b, &lists);
	s->random = 88172645463325252ULL;
}

/* Packets come, in batches, to these queues. */
static void bring(struct state *s, struct sl_pipe_packet *packet, u32 n)
{
	u32 i;

	for (i = 0; i < n; i += SL_PIPE_BATCH)
		if (pipes_enqueue(&s->t, packet + i, n - i, clock_ns())) {
			fprintf(stderr, "a packet is refused\n");
			exit(1);
		}
}

static void come_back(struct state *s, const struct work *w)
{
	u32 i;

	sl_for (i, s->n)
		s->left[i].queue = w->sequence[s->at++ & (SEQUENCE - 1)];
	bring(s, s->left, s->n);
	s->n = 0;
}

/* A round of the port's time. */
static void port_round(struct state *s, const struct work *w)
{
	u32 i, most = w->port == IS_FULL ? BATCH / 2 : BATCH, n;

	if (w->port == HOLDS_LOW) {
		s->refused = MAY_SEND & ~0u << HELD_FROM;
	} else if (w->port == HOLDS_SOME && s->rounds % HOLDS_ROUNDS == 0) {
		s->random ^= s->random << 13;
		s->random ^= s->random >> 7;
		s->random ^= s->random << 17;
		s->refused = (u32)(s->random >> 32) & MAY_SEND;
	}
	s->rounds++;
	if (w->port != DRAINS && w->port != IS_FULL)
		return;
	for (i = 0; i < SL_PIPE_CLASSES && most; i++) {
		n = sl_min(s->port_pkts[i], most);
		s->port_pkts[i] -= n;
		most -= n;
	}
}

/* The number of packets of a class that the port takes. */
static u32 port_room(const struct state *s, const struct work *w, u32 class)
{
	if (s->refused >> class & 1)
		return 0;
	return w->port == DRAINS || w->port == IS_FULL ? PORT_PKTS - s->port_pkts[class] : SL_BACKPRESSURE_PLACES;
}

/* The port is offered what the lists of these classes hold. */
static void offer(struct state *s, const struct work *w, u32 classes)
{
	for (; classes; classes &= classes - 1) {
		u32 class = sl_lowest(classes), room = port_room(s, w, class), from = 0, n;
		const struct sl_pipe_packet *run;

		while (from < room && (run = backpressure_run(&s->b, class, from, &n), n)) {
			n = sl_min(n, room - from);
			memcpy(&s->left[s->n], run, n * sizeof(*run));
			s->n += n;
			from += n;
		}
		s->port_pkts[class] += from;
		backpressure_taken(&s->b, &s->t, class, from);
	}
}

struct figures CONTENDER(const struct work *w, double seconds) {
	struct state *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	u64 left = 0, rounds = 0, held = 0, got = 0;
	struct sl_pipe_allowance allowance;
	struct figures f = { 0 };
	double begin, now;
	int warm = 0;
	u32 i, n;

	if (s == MAP_FAILED) {
		fprintf(stderr, "no memory\n");
		exit(1);
	}
	set_up(s, w);
	for (i = 0; i < w->standing; i++) {
		struct sl_pipe_packet packet = { i % w->pipes * QUEUES + HELD_FROM + i / w->pipes % (QUEUES - HELD_FROM), 0, 64 };

		bring(s, &packet, 1);
	}
	for (i = 0; i < w->circulating; i += BATCH) {
		for (n = 0; n < BATCH; n++)
			s->left[n].len_bytes = 64;
		s->n = BATCH;
		come_back(s, w);
	}
	begin = spent();
	for (;;) {
		if (w->room) {
			port_round(s, w);
			offer(s, w, backpressure_held(&s->b));
			if (!(rounds & 63))
				held += (u64)__builtin_popcount(MAY_SEND & ~backpressure_allow(&s->b, &allowance));
			got += backpressure_dequeue(&s->b, &s->t, BATCH, MAY_SEND, clock_ns());
			offer(s, w, backpressure_held(&s->b));
		} else {
			s->n = pipes_dequeue(&s->t, s->left, BATCH, MAY_SEND, NULL, clock_ns());
			got += s->n;
		}
		left += s->n;
		come_back(s, w);
		if (++rounds & 511)
			continue;
		now = spent();
		if (!warm && now - begin > seconds / 3) {
			warm = 1;
			begin = now;
			left = held = got = rounds = 0;
		} else if (warm && now - begin > seconds) {
			break;
		}
	}
	munmap(s, sizeof(*s));
	f.mpps = (double)left / (now - begin) / 1e6;
	f.held_classes = (double)held * 64 / (double)rounds;
	f.got = (double)got / (double)rounds;
	return f;
}
