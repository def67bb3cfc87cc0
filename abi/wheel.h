/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* A timing wheel of nodes of a tree, or of pipes, that wait: by the time at which they are looked at again. */
#pragma once
#include "types.h"

/* A wheel has so many buckets of 2^SL_WHEEL_TICK_BITS ns: 67 ms. */
#define SL_WHEEL_BUCKETS   4096
#define SL_WHEEL_TICK_BITS 14
/* The neighbour before the first of a bucket is this + the bucket: more than any number of a node or a pipe. */
#define SL_WHEEL_HEAD      40960

struct sl_wheel {
	u16 first[SL_WHEEL_BUCKETS]; /* as sched/wheel.h and sched/pipe_wheel.h number them; 0: none */
	u64 used[SL_WHEEL_BUCKETS / 64]; /* buckets that are not empty */
	u64 words; /* of used, that are not 0 */
	u64 tick; /* buckets before it are empty */
};
