/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The buckets of the port, of subports and of their classes. A turn asks once for how many bytes a bucket holds, and charges it once for what
 * was sent, so packets only count down.
 */
#pragma once
#include "bucket.h"
#include "pipe_credits.h"

/* Bytes that a class of a subport takes out of its bucket at once: so much may its burst be longer. */
#define SL_SUBPORT_ADVANCE 16384LL
/* No turn is longer, whatever the buckets hold. */
#define SL_SUBPORT_MOST    (1LL << 30)

/* A bucket lets packets pass while fewer bytes than this have; 0 or less: it is not open. */
SL_FN s64 bucket_room(const struct sl_bucket *b, u64 now_ns)
{
	u64 until = now_ns + b->burst_ns, full = sl_max(b->tat_ns, now_ns);

	if (!b->cost)
		return SL_SUBPORT_MOST;
	if (full > until)
		return 0;
	return (s64)sl_min((sl_min(until - full, 1ULL << 40) << 20) / b->cost + 1, (u64)SL_SUBPORT_MOST);
}

/* A class of a subport has used up what it took in advance, or waits. Whether it may go on. */
SL_FN int subport_class_refill(struct sl_subport *sub, u32 class, u64 now_ns)
{
	struct sl_bucket *b = sl_at(sub->class_bucket, class);
	s32 *left = sl_at(sub->class_left, class);
	s64 room;

	/* Its last packet was longer than what was left. */
	bucket_charge(b, (u32) - *left, now_ns);
	room = sl_min(bucket_room(b, now_ns), SL_SUBPORT_ADVANCE);
	*left = (s32)room;
	bucket_charge(b, (u32)room, now_ns);
	return room > 0;
}

/* Classes of a subport whose buckets have tokens again open. */
SL_FN void subport_reopen(struct sl_subport *sub, u64 now_ns)
{
	u32 class;

	sl_for (class, SL_PIPE_CLASSES) {
		if (sub->closed & class_queues(class) && subport_class_refill(sub, class, now_ns))
			sub->closed &= (u16)~class_queues(class);
	}
}

/* The time at which the bucket of the first class that is closed, among these queues, has tokens again; SL_PIPE_NEVER: none is. */
SL_FN u64 subport_reopens_ns(const struct sl_subport *sub, u32 queues)
{
	u64 first = SL_PIPE_NEVER;
	u32 class;

	sl_for (class, SL_PIPE_CLASSES) {
		if (sub->closed & queues & class_queues(class))
			first = sl_min(first, bucket_opens_ns(sl_at(sub->class_bucket, class)));
	}
	return first;
}
