/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Marks of congestion: owed to a flow by the queue, paid by the hook before it, which shares the map. Entries are words; what two CPUs do at once
 * loses one at most.
 */
#pragma once
#include "parse.h"

volatile struct sl_owed_marks sl_owed SEC(".data.owed");

#define SL_OWED_NS 1000000000ULL /* a flow that sends nothing for so long gets no mark any more */
#define SL_OVERDUE 48 /* in 2^20 ns: the hook has seen the flow since, and could not mark it */

static __always_inline u32 sl_ecn(const struct sl_headers *h)
{
	return h->is_ip >> 1;
}

static __always_inline u32 sl_owed_time(u64 now_ns)
{
	return (u32)(now_ns >> 20);
}

/* For how long the flow has been owed a mark, in 2^20 ns; negative: it is not. */
static __always_inline s64 sl_owed_since(u32 hash, u64 now_ns)
{
	u64 entry = *sl_at(sl_owed.flow, hash);
	u32 since = sl_owed_time(now_ns) - (u32)entry;

	return entry >> 32 == hash && entry && since <= SL_OWED_NS >> 20 ? (s64)since : -1;
}

static __always_inline void sl_owe_mark(u32 hash, u64 now_ns)
{
	if (sl_owed_since(hash, now_ns) < 0)
		*sl_at(sl_owed.flow, hash) = (u64)hash << 32 | sl_owed_time(now_ns);
	sl_owed.until_ns = now_ns + SL_OWED_NS;
}

/* Whether a packet that says so can be marked: its flow has been owed no mark for long. */
SL_GLOBAL int sl_takes_marks(u32 hash, u64 now_ns)
{
	return !sl_owed.until_ns || sl_owed_since(hash, now_ns) < SL_OVERDUE;
}
