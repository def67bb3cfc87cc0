/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The flat scheduler and its backpressure by level. */
#include "../../src/native.c"
#include "../../src/level_backpressure.c"
