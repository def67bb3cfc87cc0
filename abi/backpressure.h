/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The state of priority-aware backpressure: lists of packets that have left a scheduler and that the port has not taken. The scheduler of pipes has
 * a list for each class (sched/backpressure.h), the flat scheduler one for each level (sched/level_backpressure.h). Plain old data, as in
 * sched.h. All zeroes has no room, so that nothing leaves.
 */
#pragma once
#include "pipes.h"

#define SL_BACKPRESSURE_PLACES 64 /* of a list; a power of two */

#define SL_BACKPRESSURE_LISTS 16 /* a power of two */

/* The numbers of each list. Its packets are elsewhere, each at the place that it has in its list. */
struct sl_port_lists {
	u32 burst_pkts; /* that come to a list in one dequeue */
	u32 pad;
	u32 room_pkts[SL_BACKPRESSURE_LISTS]; /* that a list may hold */
	u32 pkts[SL_BACKPRESSURE_LISTS]; /* that it holds */
	/* the place of the packet that the port is to have next; the others follow, round the end */
	u32 first[SL_BACKPRESSURE_LISTS];
	u32 came_pkts[SL_BACKPRESSURE_LISTS]; /* of pkts, those that the last dequeue has added */
	u64 taken_pkts[SL_BACKPRESSURE_LISTS]; /* by the port, ever */
	u64 refused_pkts[SL_BACKPRESSURE_LISTS]; /* that the port did not take when it was offered them: one may count often */
};

/* The scheduler of pipes has a list for each class. */
struct sl_backpressure {
	struct sl_port_lists lists;
	struct sl_pipe_packet packet[SL_PIPE_PLACES][SL_BACKPRESSURE_PLACES];
};

/* The flat scheduler has a list for each level; the last list is also that of all later levels. */
struct sl_level_backpressure {
	struct sl_port_lists lists;
	u64 classes[SL_BACKPRESSURE_LISTS]; /* whose packets come to a list, as bits */
	u64 held; /* classes that are held back in the scheduler, as bits */
	u32 used; /* lists */
	u32 full; /* lists without allowance in this dequeue, as bits */
};

struct sl_backpressure_conf {
	u32 room_pkts[SL_PIPE_CLASSES]; /* up to SL_BACKPRESSURE_PLACES; 0: the class does not leave */
	u32 burst_pkts;
};

struct sl_level_backpressure_conf {
	u32 lists; /* from 1 to SL_BACKPRESSURE_LISTS */
	u32 room_pkts; /* of each list, up to SL_BACKPRESSURE_PLACES */
	u32 burst_pkts;
};
