/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The tree of classes, which counts the nodes that it visits. */
#define SL_TREE_COUNTS
#include "../../src/hierarchy.c"
