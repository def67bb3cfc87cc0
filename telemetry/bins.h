/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Bins of sizes: those below 8 have a bin each, and each power of two above has 8 bins (as in HdrHistogram). */
#pragma once
#include "../abi/telemetry.h"
#include "../sched/world.h"

/* The place of the highest bit that is set; of 0, 0. Without branches: cheap to verify. */
SL_FN u32 bins_log2(u64 n)
{
	u32 log = 0, above;

	above = (n >> 32 != 0) << 5;
	n >>= above;
	log |= above;
	above = (n >> 16 != 0) << 4;
	n >>= above;
	log |= above;
	above = (n >> 8 != 0) << 3;
	n >>= above;
	log |= above;
	above = (n >> 4 != 0) << 2;
	n >>= above;
	log |= above;
	above = (n >> 2 != 0) << 1;
	n >>= above;
	log |= above;
	return log | (u32)(n >> 1 & 1);
}

/* The bin of a size. At most 495. */
SL_FN u32 bin_of(u64 size)
{
	u32 power = bins_log2(size);

	return size < 8 ? (u32)size : (power - 2) << 3 | ((u32)(size >> (power - 3)) & 7);
}

/* The least size of a bin. */
SL_FN u64 bin_first(u32 bin)
{
	return bin < 8 ? bin : (u64)(8 | (bin & 7)) << ((bin >> 3) - 1);
}
