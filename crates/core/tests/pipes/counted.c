/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The scheduler of pipes, which counts its steps. */
#define SL_PIPE_COUNTS
#include "../../src/pipes.c"
