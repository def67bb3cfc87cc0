/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* A scheduler of port, subports, pipes and 16 queues a pipe, as the bench drives it: all of them by the same calls. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#define BATCH   32 /* packets of a call */
#define QUEUES  16 /* of a pipe: 12 strict classes, and best effort with four */
#define FRAMING 24 /* bytes that the wire adds to a frame */

struct work {
	unsigned int pipes, subports;
	unsigned int held; /* packets that circulate, or for which there is room */
	unsigned int limit; /* packets of a queue */
	unsigned int bytes; /* of a packet */
	double port_rate, pipe_rate; /* bytes a second; pipe_rate 0: none */
	unsigned int pipe_burst; /* bytes */
	double class_rate; /* of each class of a pipe; 0: as much as the scheduler can say */
};

struct contender {
	const char *name;
	int exact_clock; /* it takes its time from clock_cycles() */
	void *(*open)(const struct work *w, size_t *bytes);
	void (*close)(void *s);
	/* New packets come to these queues, up to BATCH. How many are taken. */
	unsigned int (*bring)(void *s, const uint32_t *queue, unsigned int n);
	/* Up to BATCH packets leave. How many. */
	unsigned int (*take)(void *s);
	/* The packets that have left come back, to these queues. How many are taken. */
	unsigned int (*give_back)(void *s, const uint32_t *queue);
	/* They do not come back. */
	void (*forget)(void *s);
	/* The queue and the length of a packet that has left. */
	uint32_t (*queue)(void *s, unsigned int i);
	uint32_t (*bytes)(void *s, unsigned int i);
};

/* Time in cycles: the real one without what other processes took, or a simulated one. */
uint64_t clock_cycles(void);
/* The same in ns. */
uint64_t clock_ns(void);

/* Classes of queues. */
static inline unsigned int class_of(unsigned int queue)
{
	return queue < 12 ? queue : 12;
}

extern const struct contender rte_sched_library, rte_sched_native, pipes_4096, pipes_32768, pipes_4096_codel, pipes_32768_codel,
	pipes_4096_headers, pipes_32768_headers;
