/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The rank functions of a PIFO. The packet with the smallest rank leaves first. A rank function is
 *
 *	rank_NAME(s, k, q) -> rank	of the packet in slot q, of class k; once for each packet, in the order of its class
 *
 * and one line in SL_RANK_FUNCTIONS (abi/disciplines.h). Ranks are compared by the sign of their difference, so they may wrap round.
 * How many ranks share a bucket (s->rank_shift) is part of the configuration. A rank that grows with
 * time moves the window of the PIFO along; one that stays below the window's length is always exact to its bucket.
 */
#pragma once
#include "virtual_time.h"

struct sl_pifo_class {
	struct sl_virtual_class times;
	u64 attained_bytes; /* by least attained service: that have come since it was last empty */
	u32 ranked_pkts; /* of the backlog, those that stand in the ring */
};

/* Slots by rank: see pifo.h. */
struct sl_pifo_ring {
	u64 base;  /* rank: no packet is before its bucket */
	u64 top;  /* rank: no packet is behind its bucket */
	u64 summary; /* words that are not 0 */
	u64 word[SL_PIFO_BUCKETS / 64]; /* buckets that are not empty */
	struct sl_queue bucket[SL_PIFO_BUCKETS];
};

struct sl_pifo_sched {
	struct sl_virtual_sched times;
	struct sl_pifo_ring ring;
};

SL_CLASS_STATE(pifo)
SL_SCHED_STATE(pifo)

/* The greatest rank that the window holds beside 0. */
SL_FN u64 rank_most(const struct sl_sched *s)
{
	return (SL_PIFO_BUCKETS - 1ULL) << s->rank_shift;
}

/* Class priority, then arrival: strict priority as a PIFO. Exact. */
SL_FN u64 rank_priority(struct sl_sched *s, struct sl_class *k, const struct sl_slot *q)
{
	(void)s;
	(void)q;
	return k->level;
}

/* Earliest deadline first (Liu and Layland 1973): if any order meets all deadlines, this one does, to one packet. In ns. */
SL_FN u64 rank_earliest_deadline(struct sl_sched *s, struct sl_class *k, const struct sl_slot *q)
{
	(void)s;
	return q->arrived_ns + k->budget_ns;
}

/* Shortest packet first: the least mean wait (Smith 1956). Long packets can starve. In bytes. */
SL_FN u64 rank_shortest_packet(struct sl_sched *s, struct sl_class *k, const struct sl_slot *q)
{
	(void)k;
	return sl_min((u64)q->len_bytes, rank_most(s));
}

/*
 * Least attained service (foreground-background: Kleinrock, Queueing Systems 2, 1976): what a class has brought since it was last
 * empty. Short bursts go before long ones, without being told which is which. In bytes; beyond the window all count alike.
 */
SL_FN u64 rank_least_attained_service(struct sl_sched *s, struct sl_class *k, const struct sl_slot *q)
{
	u64 rank = sl_min(pifo_class(k)->attained_bytes, rank_most(s));

	pifo_class(k)->attained_bytes += q->len_bytes;
	return rank;
}

/* The virtual start time of a packet of so many bytes. */
SL_FN u64 rank_by_start(struct sl_sched *s, struct sl_class *k, u32 bytes, u64 arrived_ns)
{
	u64 rank;

	if (!pifo_sched(s)->ring.summary)
		virtual_begin(s, arrived_ns);
	rank = virtual_resume(virtual_sched(s)->time, virtual_class(k)->start);
	virtual_class(k)->start = rank + bytes * k->virtual_cost;
	virtual_reach(s, virtual_class(k)->start);
	return rank;
}

/* Start-time fair (see weighted_fair_queuing.h; as a rank: Sivaraman et al. 2016, section 3.1). In virtual time. */
SL_FN u64 rank_start_time_fair(struct sl_sched *s, struct sl_class *k, const struct sl_slot *q)
{
	return rank_by_start(s, k, q->len_bytes, q->arrived_ns);
}

/* Least slack (Leung 1989): the latest time at which sending may begin to meet the deadline on the shaped link. In ns. */
SL_FN u64 rank_slack(struct sl_sched *s, struct sl_class *k, const struct sl_slot *q)
{
	return q->arrived_ns + k->budget_ns - (q->wire_bytes * s->link.cost >> 20);
}

SL_FN u64 sl_rank(struct sl_sched *s, struct sl_class *k, const struct sl_slot *q)
{
	switch (s->rank) {
#define X(upper, lower, ...)  \
	case SL_RANK_##upper: \
		return rank_##lower(s, k, q);
		SL_RANK_FUNCTIONS(X)
#undef X
	}
	return 0;
}
