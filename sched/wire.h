/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The bytes of a packet on the link below: overhead of each frame, the least frame, cells (as tc-cake(8) counts them). */
#pragma once
#include "scheduler.h"

SL_FN u32 wire_frame(const SL_SCHEDULER *s, u32 bytes)
{
	u32 n = bytes + (u32)s->overhead_bytes;

	if ((s32)n < (s32)s->mpu_bytes)
		n = s->mpu_bytes;
	if (s->cells == SL_CELLS_ATM)
		n = (n + 47) / 48 * 53;
	else if (s->cells == SL_CELLS_PTM)
		n = n + (n + 63) / 64;
	return n;
}

/* len_bytes of segments frames in all, equally long as near as makes no difference; segments is not 0. */
SL_FN u32 wire_bytes(const SL_SCHEDULER *s, u32 len_bytes, u32 segments)
{
	if (!s->framed)
		return len_bytes;
	if (sl_likely(segments < 2))
		return wire_frame(s, len_bytes);
	return segments * wire_frame(s, len_bytes / segments);
}
