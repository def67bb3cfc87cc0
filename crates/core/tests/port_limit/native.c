/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The limit on what a port has under way. */
#include "../../src/port_limit.c"
