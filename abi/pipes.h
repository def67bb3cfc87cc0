/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The state of the scheduler of pipes: a port, subports, pipes (a pipe is a customer), and 16 queues of 13 classes in each pipe. Plain old
 * data, as in sched.h. All zeroes is an empty scheduler without slots, subports and pipes. sched/pipes.h explains it.
 */
#pragma once
#include "reason.h"
#include "sched.h"
#include "wheel.h"

/* Both are powers of two; SL_PIPES is from 4096 to 32768. */
#ifndef SL_PIPES
#define SL_PIPES 32768
#endif
#ifndef SL_PIPE_SLOTS
#define SL_PIPE_SLOTS 1048576
#endif

#define SL_PIPE_WORDS    (SL_PIPES / 64) /* of a bitmap of all pipes */
#define SL_PIPE_SUBPORTS 64
#define SL_PIPE_PROFILES 256
#define SL_PIPE_QUEUES   16 /* of a pipe */
#define SL_PIPE_CLASSES  13
#define SL_PIPE_BEST_EFFORT \
	12 /* the last class, and the first of its four queues; other classes have a queue of the same number */
#define SL_PIPE_PLACES       16 /* of arrays by class: SL_PIPE_CLASSES, rounded up to a power of two */
#define SL_PIPE_GROUP        16 /* pipes that are fetched from memory together */
#define SL_PIPE_GROUPS       4
#define SL_PIPE_BATCH        64 /* packets of a call at most */
#define SL_PIPE_LEN_BITS     14 /* of a packet's length */
#define SL_PIPE_INDEX_BITS   22 /* of a slot's number in sl_pipe_queue.chain */
#define SL_PIPE_PKTS_MOST    ((1u << 20) - 1) /* of a queue */
/* Time of arrival, of the wait that CoDel looks at: units of 65 us, and how many of them until it wraps round (17 s). */
#define SL_PIPE_STAMP_SHIFT  16
#define SL_PIPE_STAMP_BITS   18
/* Fraction bits of sl_pipe.cost: 2^14 are 1 ns a byte. From 31 kbit/s to 100 Gbit/s a cost is exact to 0.04 %. */
#define SL_PIPE_COST_BITS    14
/* A period of class limits: 2^14 to 2^23 ns (16 us to 8.4 ms), so that no class has more than SL_PIPE_CREDIT_MAX bytes in one. */
#define SL_PIPE_PERIOD_LEAST 14
#define SL_PIPE_PERIOD_MOST  23
#define SL_PIPE_CREDIT_MAX   32000u
/* Fraction bits of sl_pipe_profile.credit. */
#define SL_PIPE_CREDIT_BITS  16
/* sl_pipe_profile.share_cost of weight 1; of another weight, so much less. */
#define SL_PIPE_SHARE_COST   8192
#define SL_PIPE_NO_SLOT      0xffffffff
#define SL_PIPE_NEVER        0xffffffffffffffff

/* Why pipes wait: a wheel for each reason. */
enum sl_pipe_wait {
	SL_PIPE_TOKENS, /* the bucket of the pipe is empty */
	SL_PIPE_CREDITS, /* classes of the pipe have used up their period; the others may send */
	SL_PIPE_WAITS
};

struct sl_pipe_slot {
	u32 next; /* of its queue, or of the stack that it is in */
	u32 packet; /* its length (SL_PIPE_LEN_BITS), and the time of its arrival (SL_PIPE_STAMP_BITS) */
};

struct sl_pipe_queue {
	u64 chain; /* first slot, last slot (SL_PIPE_INDEX_BITS each), packets */
	u32 backlog_bytes;
	u32 sent_bytes; /* wraps round: whoever reads it every second adds up */
};

/* A cache line: what a pipe's turn needs beside its queues. */
struct sl_pipe {
	u64 tat_64ths; /* of its token bucket: when it is full again, in 1/64 ns */
	u32 cost; /* ns per byte, with SL_PIPE_COST_BITS fraction bits; 0: no limit */
	u16 burst_ticks; /* of 2^SL_WHEEL_TICK_BITS ns */
	s16 left_bytes; /* of its turn */
	u64 share_used; /* by the four queues of best effort, 16 bits each: sched/pipe_shares.h */
	u32 period; /* the number of the one that credits are for */
	u32 sent_pkts;
	s16 credit[SL_PIPE_CLASSES]; /* bytes that a class may still send in this period */
	u16 closed; /* queues of classes without credit */
	u16 shut; /* those of them that have packets and are not in sl_pipes.ready */
	u16 watched; /* queues whose struct sl_pipe_codel is in use */
} __attribute__((aligned(64)));

/* CoDel's state of a queue, as of struct sl_codel; times in units of 2^SL_PIPE_STAMP_SHIFT ns, of which the lower 22 bits are kept. */
struct sl_pipe_codel {
	u32 above; /* above_ns, count_before (9 bits), dropping (1 bit) */
	u32 next; /* next_ns, count (10 bits) */
};

/* Neighbours of a pipe in a bucket of a wheel. */
struct sl_pipe_link {
	u16 next; /* 1 + its number; 0: it is the last */
	u16 before; /* 1 + its number; SL_WHEEL_HEAD + bucket: it is the first; 0: the pipe is not in the wheel */
};

struct sl_pipe_wheel {
	struct sl_wheel wheel; /* first: 1 + the number of a pipe */
	struct sl_pipe_link link[SL_PIPES];
};

/* Pipes whose turn it is or will be next. */
struct sl_pipe_group {
	u32 live; /* of its pipes, those whose turn is not over */
	u32 todo; /* of these, those that have not sent in this round */
	u32 count;
	u32 pad;
	u16 pipe[SL_PIPE_GROUP];
	s16 before[SL_PIPE_GROUP]; /* sl_pipe.left_bytes of each before its turn */
	u8 last[SL_PIPE_GROUP]; /* the last queue that the turn of each is for */
};

struct sl_subport {
	struct sl_bucket bucket;
	struct sl_bucket class_bucket[SL_PIPE_PLACES];
	s32 class_left[SL_PIPE_PLACES]; /* bytes that a class has taken out of its bucket in advance */
	u32 first_pipe, end_pipe; /* its pipes; none: it is not configured */
	u32 cursor[SL_PIPE_PLACES]; /* the pipe at which the search goes on, by the last class that is searched for */
	s32 left_bytes; /* of its turn */
	u32 pkts;
	u32 at; /* the group whose turn it is */
	u16 limited; /* queues of classes with a bucket */
	u16 closed; /* those of them without tokens */
	u32 owed; /* queues for which a pipe of it may be owed a turn */
	struct sl_pipe_group group[SL_PIPE_GROUPS];
	u64 sent_pkts[SL_PIPE_PLACES], sent_bytes[SL_PIPE_PLACES];
	u64 dropped_pkts[SL_PIPE_PLACES][SL_DROPS];
};

/* Limits, weights and CoDel that pipes have in common. Profile 0 is that of pipes that are not configured: its limits stay 0. */
struct sl_pipe_profile {
	u32 limit_pkts[SL_PIPE_QUEUES]; /* of each queue */
	u32 limit_bytes[SL_PIPE_QUEUES]; /* a queue takes packets while it has fewer */
	u32 credit
		[SL_PIPE_PLACES]; /* of each class: bytes of a period, with SL_PIPE_CREDIT_BITS fraction bits; 0: the class has no limit */
	u32 period_bits; /* a period is 2^period_bits ns */
	u16 share_cost[4]; /* of a byte, for each queue of best effort: SL_PIPE_SHARE_COST / weight */
	u32 codel_target, codel_interval; /* units of 2^SL_PIPE_STAMP_SHIFT ns */
	u16 codel; /* queues that have CoDel */
	u16 limited; /* classes with a limit; follows from credit */
	u32 pad;
};

struct sl_pipes {
	u32 free; /* returned slots: a stack of free_count */
	u32 free_count;
	u32 fresh; /* slots from here on were never used */
	u32 slots; /* how many may be used */
	u32 pkts;
	u32 dropped; /* slots whose packets CoDel has dropped: a stack of dropped_count */
	u32 dropped_count;
	s32 overhead_bytes; /* of the link below, added to each frame */
	u32 mpu_bytes; /* the least that a frame takes there */
	u32 turn; /* the subport whose turn it is */
	u32 unfinished; /* the last dequeue ended because it had taken enough steps */
	u32 pad;
	u64 busy_subports; /* those with packets */
	struct sl_bucket bucket; /* of the port */
	u64 summary[SL_PIPE_WORDS / 64]; /* words of active that may have pipes which are not engaged */
	u64 active[SL_PIPE_WORDS]; /* pipes with a queue that is ready */
	u64 engaged[SL_PIPE_WORDS]; /* pipes in a group, and those that wait for tokens */
	u64 owed[SL_PIPE_WORDS]; /* pipes whose turn had come, or begun, when the caller held back all that they might send */
	u64 owed_summary[SL_PIPE_WORDS / 64]; /* words of owed that may have pipes */
	u16 owed_any[SL_PIPE_WORDS]; /* queues for which one of 64 pipes may be owed a turn */
	u16 any[SL_PIPE_WORDS]; /* queues that may be ready in one of 64 pipes */
	u16 ready[SL_PIPES]; /* queues that have packets, but those that are shut */
	u8 profile_of[SL_PIPES];
	u8 subport_of[SL_PIPE_WORDS]; /* 1 + its number; 0: none */
	u32 dropped_pkts[SL_PIPES];
	struct sl_pipe_wheel wheel[SL_PIPE_WAITS];
	struct sl_subport subport[SL_PIPE_SUBPORTS];
	struct sl_pipe_profile profile[SL_PIPE_PROFILES];
	struct sl_pipe pipe[SL_PIPES];
	struct sl_pipe_queue queue[SL_PIPES * SL_PIPE_QUEUES];
	struct sl_pipe_codel codel[SL_PIPES * SL_PIPE_QUEUES];
	struct sl_pipe_slot slot[SL_PIPE_SLOTS];
};

/* A packet that comes or goes. */
struct sl_pipe_packet {
	u32 queue; /* pipe * SL_PIPE_QUEUES + queue */
	u32 slot;
	u32 len_bytes;
};

/* The number of packets of each class that may leave in a call. */
struct sl_pipe_allowance {
	u32 pkts[SL_PIPE_PLACES];
};

/* The configuration of the port. */
struct sl_pipes_conf {
	u32 slots; /* packets that it may hold, up to SL_PIPE_SLOTS */
	s32 overhead_bytes;
	u32 mpu_bytes;
	u32 pad;
	u64 cost, burst_ns; /* as in sl_bucket */
};

struct sl_subport_conf {
	u32 first_pipe, pipes; /* multiples of 64 */
	u64 cost, burst_ns; /* as in sl_bucket; no cost: no limit */
	u64 class_cost[SL_PIPE_CLASSES], class_burst_ns;
};

struct sl_pipe_conf {
	u32 profile; /* 1 to SL_PIPE_PROFILES - 1 */
	u32 cost, burst_ticks; /* as in sl_pipe; at least two ticks */
};
