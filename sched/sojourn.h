/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Histogram of the time that packets spend in their queue. Four buckets an octave: a value is known to 25 %. */
#pragma once
#include "world.h"
#include "../abi/sched.h"

/* Of a time that is the difference of two CPUs' clocks: a negative one, as u64 has it, is 0. */
SL_FN u32 sojourn_bucket(u64 ns)
{
	u64 us = ns >> 10;
	u32 v, octave;

	if (us < 4)
		return (u32)us;
	if (sl_unlikely(us >> 53))
		return 0;
	v = us >> 32 ? ~0u : (u32)us;
	octave = sl_log2(v);
	return 4 * (octave - 1) + (v >> (octave - 2) & 3);
}

SL_FN void sojourn_count(struct sl_histogram *h, u64 ns)
{
	(*sl_at(h->count, sojourn_bucket(ns)))++;
}
