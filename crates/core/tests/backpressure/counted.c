/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The scheduler of pipes and its backpressure, which count their steps. */
#define SL_PIPE_COUNTS
#include "../../src/pipes.c"
#include "../../src/backpressure.c"
