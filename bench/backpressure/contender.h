/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The scheduler of pipes before a port, as the bench runs it: compiled for a number of pipes, and for a way of comparing pipes (pipe_vectors.h). */
#pragma once
#include "../pipes.h"

#define BATCH  32 /* packets of a dequeue */
#define QUEUES 16 /* of a pipe */

enum port {
	TAKES_ALL,
	HOLDS_LOW, /* it takes nothing of the classes from HELD_FROM on */
	HOLDS_SOME, /* it takes nothing of half of the classes, of others after each HOLDS_ROUNDS rounds */
	DRAINS, /* it has a queue of PORT_PKTS for each class, and sends BATCH packets a round, of the first class that has some */
	IS_FULL, /* the same, and it sends half as many */
};

#define HELD_FROM    4
#define HOLDS_ROUNDS 64
#define PORT_PKTS    64

struct work {
	unsigned int pipes;
	unsigned int circulating; /* packets */
	unsigned int standing; /* packets of classes that HOLDS_LOW holds back */
	unsigned int room; /* of a list; 0: no backpressure, the port takes everything */
	enum port port;
	const uint32_t *sequence;
};

struct figures {
	double mpps; /* packets that the port took, millions a second of processor time */
	double held_classes; /* that had no allowance, of a dequeue */
	double got; /* packets of a dequeue */
};

typedef struct figures circulate(const struct work *w, double seconds);

/* The time of the scheduler. */
uint64_t clock_ns(void);

extern circulate few_native, few_avx2, few_sse2, few_plain, many_native, many_avx2, many_sse2, many_plain;
