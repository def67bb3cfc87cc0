/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Packets that a leaf has dropped. */
#pragma once
#include "world.h"
#include "../abi/hierarchy.h"

/* The number of packets that the queue of a leaf has dropped, for whatever reason. It wraps round. */
SL_FN u32 leaf_dropped_pkts(const struct sl_leaf *leaf)
{
	u32 reason, dropped = 0;

	SL_UNROLLED
	for (reason = 0; reason < SL_DROPS; reason++)
		dropped += leaf->dropped_pkts[reason];
	return dropped;
}
