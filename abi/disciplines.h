/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The disciplines and the rank functions. A new one takes the last line of its list; its number is its place there. */
#pragma once

/* Keys of a class that have an effect. */
#define SL_KEY_PRIORITY       1u
#define SL_KEY_WEIGHT         2u
#define SL_KEY_QUANTUM        4u
#define SL_KEY_LATENCY_BUDGET 8u

/* The measure by which classes share the link; with priorities, classes of equal priority. */
enum sl_share { SL_SHARE_QUANTUM, SL_SHARE_WEIGHT, SL_SHARE_PACKETS, SL_SHARE_RANK };

/*
 * X(NUMBER, name of its operations (sched/NAME.h) and in policies, keys, share, discipline that replaces it on engine tc (itself if
 * engine tc has it), the class that sends next). For the PIFO, the rank function has the keys and the replacement.
 */
#define SL_DISCIPLINES(X)                                                                                               \
	X(STRICT_PRIORITY, strict_priority, SL_KEY_PRIORITY | SL_KEY_QUANTUM, SL_SHARE_QUANTUM, SL_STRICT_PRIORITY,     \
	  "the most urgent class; equal ones share by bytes")                                                           \
	X(DEFICIT_ROUND_ROBIN, deficit_round_robin, SL_KEY_QUANTUM, SL_SHARE_QUANTUM, SL_DEFICIT_ROUND_ROBIN,           \
	  "each class in turn, with its quantum of bytes")                                                              \
	X(ROUND_ROBIN, round_robin, 0, SL_SHARE_PACKETS, SL_DEFICIT_ROUND_ROBIN, "each class in turn, with one packet") \
	X(WEIGHTED_FAIR_QUEUING, weighted_fair_queuing, SL_KEY_WEIGHT, SL_SHARE_WEIGHT, SL_WEIGHTED_FAIR_QUEUING,       \
	  "by weight in bytes, fair at every moment to one packet of each class")                                       \
	X(EEVDF, eevdf, SL_KEY_WEIGHT | SL_KEY_QUANTUM, SL_SHARE_WEIGHT, SL_WEIGHTED_FAIR_QUEUING,                      \
	  "by weight in bytes; a small request has a low delay")                                                        \
	X(PIFO, pifo, 0, SL_SHARE_RANK, SL_PIFO, "the class of the packet with the smallest rank")                      \
	X(ELASTIC_ROUND_ROBIN, elastic_round_robin, SL_KEY_WEIGHT, SL_SHARE_WEIGHT, SL_WEIGHTED_FAIR_QUEUING,           \
	  "each class in turn, by weight in bytes; turns are as short as the packets allow")

/* X(NUMBER, name of its function rank_NAME (sched/ranks.h) and in policies, keys, discipline that replaces it on engine tc, the rank). */
#define SL_RANK_FUNCTIONS(X)                                                                                  \
	X(PRIORITY, priority, SL_KEY_PRIORITY, SL_STRICT_PRIORITY, "the priority of the class, then arrival") \
	X(EARLIEST_DEADLINE, earliest_deadline, SL_KEY_LATENCY_BUDGET, SL_STRICT_PRIORITY,                    \
	  "arrival and the latency budget of the class")                                                      \
	X(SHORTEST_PACKET, shortest_packet, 0, SL_STRICT_PRIORITY, "the length of the packet")                \
	X(LEAST_ATTAINED_SERVICE, least_attained_service, 0, SL_STRICT_PRIORITY,                              \
	  "the bytes that the class has brought since it was last empty")                                     \
	X(START_TIME_FAIR, start_time_fair, SL_KEY_WEIGHT, SL_WEIGHTED_FAIR_QUEUING,                          \
	  "the virtual start time, by the weight of the class")                                               \
	X(SLACK, slack, SL_KEY_LATENCY_BUDGET, SL_STRICT_PRIORITY,                                            \
	  "the latest time at which sending may begin to keep the latency budget")

enum sl_kind {
#define X(upper, ...) SL_##upper,
	SL_DISCIPLINES(X)
#undef X
		SL_KINDS
};

enum sl_rank {
#define X(upper, ...) SL_RANK_##upper,
	SL_RANK_FUNCTIONS(X)
#undef X
		SL_RANKS
};

/* A line of either list, for userspace. Strings end with 0. */
struct sl_discipline_line {
	unsigned int keys; /* SL_KEY_ */
	unsigned int share; /* enum sl_share; unused for a rank function */
	unsigned int on_tc; /* enum sl_kind */
	const char *name;
	const char *text;
};
