/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The ceiling of a class, and its peak: two token buckets, of which the first limits the average and has the longer burst, and the second
 * limits how fast that burst passes (as rate and peakrate of tc-tbf(8), and the two rates of RFC 2698). A packet goes while both
 * are open, and is charged to both. So in any window of t seconds no more departs than min(peak * t + its burst, ceil * t + its burst)
 * and one packet, and a class waits no longer than until the later of the two opens.
 *
 * A class without a peak is not asked for one: k->ceiling is 0.
 */
#pragma once
#include "bucket.h"

/* When class *k may send as far as its ceiling and its peak go. */
SL_FN u64 class_opens_ns(const struct sl_class *k)
{
	u64 ceil = bucket_opens_ns(&k->ceil), peak = bucket_opens_ns(&k->peak);

	return sl_max(ceil, peak);
}

/* The same for a class with a peak, or one that drops what exceeds its ceiling. A function of its own, so that it is verified once. */
SL_GLOBAL int class_open_otherwise(const struct sl_class *k SL_NONNULL, u64 now_ns)
{
	return k->ceiling & SL_CEILING_DROPS || (bucket_open(&k->ceil, now_ns) && bucket_open(&k->peak, now_ns));
}

/* Whether class *k may send now as far as its ceiling and its peak go. */
SL_FN int class_open(const struct sl_class *k, u64 now_ns)
{
	return sl_likely(!k->ceiling) ? bucket_open(&k->ceil, now_ns) : class_open_otherwise(k, now_ns);
}

/* Charges a packet to the ceiling of class c and to its peak. */
SL_GLOBAL int sl_charge_peaked(struct sl_sched *s SL_NONNULL, u32 c, u32 bytes, u64 now_ns)
{
	struct sl_class *k = sl_at(s->classes, c);

	bucket_charge(&k->ceil, bytes, now_ns);
	bucket_charge(&k->peak, bytes, now_ns);
	return 0;
}

/* Which bucket refuses a packet of class *k, which drops what exceeds them; SL_DROPS: none does. */
SL_FN u32 sl_is_over(const struct sl_class *k, u64 now_ns)
{
	if (!bucket_open(&k->ceil, now_ns))
		return SL_DROP_POLICED;
	return bucket_open(&k->peak, now_ns) ? SL_DROPS : SL_DROP_PEAK;
}
