/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Bins of sizes: those below 8 have a bin each, and each power of two above has 8 bins (as in HdrHistogram). */
#pragma once
#include "../abi/telemetry.h"
#include "../sched/world.h"

/* Floor of the logarithm to base 2; n is not 0. */
SL_FN u32 bins_log2(u64 n)
{
	return n >> 32 ? 32 + sl_log2((u32)(n >> 32)) : sl_log2((u32)n);
}

/* The bin of a size. At most 495. */
SL_FN u32 bin_of(u64 size)
{
	u32 power;

	if (size < 8)
		return (u32)size;
	power = bins_log2(size);
	return (power - 2) << 3 | ((u32)(size >> (power - 3)) & 7);
}

/* The least size of a bin. */
SL_FN u64 bin_first(u32 bin)
{
	return bin < 8 ? bin : (u64)(8 | (bin & 7)) << ((bin >> 3) - 1);
}
