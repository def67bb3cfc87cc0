/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The state of priority-aware backpressure: for each class of the scheduler of pipes, a list of packets that have left the scheduler and that the
 * port has not taken. Plain old data, as in sched.h. All zeroes has no room, so that no class leaves. sched/backpressure.h explains it.
 */
#pragma once
#include "pipes.h"

#define SL_BACKPRESSURE_PLACES 64 /* of a list; a power of two */

struct sl_backpressure {
	u32 burst_pkts; /* of a class in one dequeue */
	u32 pad;
	u32 room_pkts[SL_PIPE_PLACES]; /* that the list of a class may hold */
	u32 pkts[SL_PIPE_PLACES]; /* that it holds */
	u32 first[SL_PIPE_PLACES]; /* the place of the packet that the port is to have next; the others follow, round the end */
	u32 came_pkts[SL_PIPE_PLACES]; /* of pkts, those that the last dequeue has added */
	u64 taken_pkts[SL_PIPE_PLACES]; /* by the port, ever */
	u64 refused_pkts[SL_PIPE_PLACES]; /* that the port did not take when it was offered them: one may count often */
	struct sl_pipe_packet packet[SL_PIPE_PLACES][SL_BACKPRESSURE_PLACES];
};

struct sl_backpressure_conf {
	u32 room_pkts[SL_PIPE_CLASSES]; /* up to SL_BACKPRESSURE_PLACES; 0: the class does not leave */
	u32 burst_pkts;
};
