/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Weighted fair queueing by virtual start times (start-time fair queueing: Goyal, Vin and Cheng, SIGCOMM 1996; IEEE/ACM ToN 1997).
 *
 * A class's next packet has a virtual start: where the class's last one ended, or the virtual time at which it came to an empty
 * queue, whichever is later. Its end is length / weight further. The smallest start is served, and is the virtual time
 * then. When no class has packets and the link is idle, virtual time goes on to the greatest end. Only heads of queues need a start, so a
 * class has one.
 *
 * Fairness: while classes f and m are both ready, what they are served, each divided by its weight, differs by at most
 * l_f / w_f + l_m / w_m, l the largest packet of each. That holds whatever the link's rate does, so also below a shaper, behind
 * guarantees and on a radio. Delay: on a link of rate C, a packet leaves no later than its expected arrival + the sum over
 * the other classes of l_max / C + its own length / C (theorem 4 there). Self-clocked fair queueing is later by one packet at the class's rate. WF2Q+ is earlier
 * for classes of great weight, at the cost of a second order, by eligibility: EEVDF is built for that. So this one is the
 * cheap one.
 *
 * Cost: O(log classes) for a packet, at most six matches; nothing while a class is alone.
 */
#pragma once
#include "discipline.h"
#include "virtual_time.h"

struct sl_wfq_sched {
	struct sl_virtual_sched times;
	u64 placed; /* classes that stand in the tournament; one that is alone need not */
	struct sl_tournament starts; /* ready classes, by virtual start */
};

SL_SCHED_STATE(wfq)

SL_FN void wfq_place(struct sl_sched *s, u32 c)
{
	wfq_sched(s)->placed |= SL_BIT(c);
	tournament_put(&wfq_sched(s)->starts, c, virtual_class(sl_at(s->classes, c))->start);
}

SL_FN void wfq_unplace(struct sl_sched *s, u32 c)
{
	wfq_sched(s)->placed &= ~SL_BIT(c);
	tournament_cut(&wfq_sched(s)->starts, c);
}

/* Where class k stands that was away, with classes that are ready or alone. */
SL_FN void wfq_begin(struct sl_sched *s, struct sl_class *k, int alone, u64 now_ns)
{
	if (alone)
		virtual_begin(s, now_ns);
	virtual_class(k)->start = virtual_resume(virtual_sched(s)->time, virtual_class(k)->start);
}

SL_FN void wfq_join(struct sl_sched *s, struct sl_class *k, u32 c, u64 now_ns)
{
	u64 others = s->ready & ~SL_BIT(c);

	wfq_begin(s, k, !others, now_ns);
	if (!others)
		return;
	if (others & ~wfq_sched(s)->placed)
		wfq_place(s, sl_lowest(others)); /* it was alone */
	wfq_place(s, c);
}

SL_FN void wfq_leave(struct sl_sched *s, struct sl_class *k, u32 c)
{
	(void)k;
	if (wfq_sched(s)->placed & SL_BIT(c))
		wfq_unplace(s, c);
}

SL_FN void wfq_stay(struct sl_sched *s, struct sl_class *k, u32 c)
{
	(void)k;
	if (!(wfq_sched(s)->placed & SL_BIT(c)))
		return;
	if (is_alone(s->ready))
		wfq_unplace(s, c);
	else
		wfq_place(s, c);
}

SL_FN u32 wfq_pick(struct sl_sched *s)
{
	u32 c = is_alone(s->ready) ? sl_lowest(s->ready) : tournament_first(&wfq_sched(s)->starts);

	virtual_advance(s, virtual_class(sl_at(s->classes, c))->start);
	return c;
}

SL_FN void wfq_charge(struct sl_sched *s, struct sl_class *k, u32 bytes)
{
	virtual_charge(s, k, bytes);
	virtual_reach(s, virtual_class(k)->start);
}

SL_FN void wfq_pass(struct sl_sched *s, struct sl_class *k, u32 c, u32 bytes, u64 arrived_ns)
{
	(void)c;
	wfq_begin(s, k, 1, arrived_ns);
	virtual_advance(s, virtual_class(k)->start);
	wfq_charge(s, k, bytes);
}

static const struct sl_discipline weighted_fair_queuing = {
	.join = wfq_join,
	.leave = wfq_leave,
	.pick = wfq_pick,
	.charge = wfq_charge,
	.pass = wfq_pass,
	.stay = wfq_stay,
};
