/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Earliest eligible virtual deadline first (Stoica and Abdel-Wahab, Old Dominion University TR-95-22, 1995; RTSS 1996).
 *
 * Virtual time V runs at served bytes / the weights of the ready classes: where every class would stand if all were served in
 * proportion at every moment. A class that stands at or before V has had no more than its share: it is eligible. Its deadline is where it will
 * stand after its request: quantum bytes, or its next packet if that is longer. Of the eligible classes the one with the earliest deadline sends. So a small
 * quantum means a low delay, and the weight alone decides the share.
 *
 * Lag is what a class is owed: weight * (V - where it stands). The lags of the ready classes sum to zero, so some class is always
 * eligible. While the set of ready classes stays, each lag is above -(largest packet) and below the largest of all quanta and packets
 * (theorem 1 and its corollary there). A class that leaves keeps its lag, and V moves by lag / the weights that stay, as if the
 * others had taken it over; when it returns, V moves back (strategy 2 there): no class gains by leaving. A class that is alone has no
 * lag, since there is no other to owe. A guarantee takes a class at most two packets ahead of its share (lag > -2 of its
 * largest); what it sends beyond that is not charged, so that no class is owed ever more, and a class that comes later need not wait for it.
 *
 * Cost: classes below EEVDF_FEW are looked at one by one, which is cheaper for a few. Once a higher one has joined, and until a class is alone,
 * O(log classes): a tournament of those not eligible, by where they stand, and one of those eligible, by deadline; a move from one to the
 * other is two changes. V steps back when a class that is owed service joins; a class that is no longer eligible moves back when it comes
 * first.
 */
#pragma once
#include "discipline.h"
#include "virtual_time.h"

#define EEVDF_FEW 8u

struct sl_eevdf_class {
	struct sl_virtual_class times;
	u64 deadline; /* of its request, in virtual time */
	s64 lag; /* what it was owed when it left; negative: what it owed */
};

struct sl_eevdf_sched {
	struct sl_virtual_sched times;
	u64 rest; /* of the last division */
	u64 weights; /* the sum of those of ready classes */
	u64 placed; /* either all ready classes stand in a tournament or none; one that is alone may be in neither */
	struct sl_tournament starts; /* those not eligible yet, by virtual start */
	struct sl_tournament deadlines; /* those eligible, and any that V has stepped back behind, until they come first */
};

SL_CLASS_STATE(eevdf)
SL_SCHED_STATE(eevdf)

/* weight * lag / weights, of either sign, for lags of up to 2^31 bytes. */
SL_FN s64 eevdf_shift(u64 weight, s64 lag, u64 weights)
{
	u64 owed = weight * (u64)(lag < 0 ? -lag : lag) / weights;

	return lag < 0 ? -(s64)owed : (s64)owed;
}

/* A new request, of the quantum or of the next packet if that is longer, where the present one does not reach beyond that packet. */
SL_FN void eevdf_request(struct sl_sched *s, struct sl_class *k)
{
	u64 next = k->by_flow ? 1 : sl_at(s->slot, k->queue.head)->len_bytes,
	    end = virtual_class(k)->start + next * k->virtual_cost;

	if (virtual_before(eevdf_class(k)->deadline, end))
		eevdf_class(k)->deadline = virtual_class(k)->start + sl_max(next, k->quantum_bytes) * k->virtual_cost;
}

/* Class k has joined: whatever it asked for before is void. */
SL_FN void eevdf_begin(struct sl_sched *s, struct sl_class *k)
{
	eevdf_class(k)->deadline = virtual_class(k)->start;
	eevdf_request(s, k);
}

SL_FN void eevdf_place(struct sl_sched *s, u32 c)
{
	struct sl_class *k = sl_at(s->classes, c);

	eevdf_sched(s)->placed |= SL_BIT(c);
	if (virtual_before(virtual_sched(s)->time, virtual_class(k)->start))
		tournament_put(&eevdf_sched(s)->starts, c, virtual_class(k)->start);
	else
		tournament_put(&eevdf_sched(s)->deadlines, c, eevdf_class(k)->deadline);
}

SL_FN void eevdf_unplace(struct sl_sched *s, u32 c)
{
	eevdf_sched(s)->placed &= ~SL_BIT(c);
	if (tournament_has(&eevdf_sched(s)->starts, c))
		tournament_cut(&eevdf_sched(s)->starts, c);
	else
		tournament_cut(&eevdf_sched(s)->deadlines, c);
}

/* Places the ready classes that stand nowhere. */
SL_GLOBAL int eevdf_place_all(struct sl_sched *s SL_NONNULL)
{
	u64 left;
	u32 n;

	sl_for (n, SL_CLASSES) {
		left = s->ready & ~eevdf_sched(s)->placed;
		if (!left)
			break;
		eevdf_place(s, sl_lowest(left));
	}
	return 0;
}

/* Class c joins others. */
SL_GLOBAL int eevdf_enter(struct sl_sched *s SL_NONNULL, u32 c)
{
	struct sl_class *k = sl_at(s->classes, c);

	virtual_sched(s)->time -= (u64)eevdf_shift(k->weight, eevdf_class(k)->lag, sl_max(eevdf_sched(s)->weights, 1));
	eevdf_sched(s)->weights += k->weight;
	virtual_class(k)->start = virtual_sched(s)->time - (u64)eevdf_class(k)->lag;
	eevdf_begin(s, k);
	if (eevdf_sched(s)->placed || s->ready >> EEVDF_FEW)
		eevdf_place_all(s);
	return 0;
}

SL_FN void eevdf_join(struct sl_sched *s, struct sl_class *k, u32 c, u64 now_ns)
{
	(void)now_ns;
	if (!is_alone(s->ready)) {
		eevdf_enter(s, c);
		return;
	}
	virtual_class(k)->start = virtual_sched(s)->time;
	eevdf_sched(s)->weights = k->weight;
	eevdf_sched(s)->rest = 0;
	eevdf_begin(s, k);
}

/* Class c leaves others. */
SL_GLOBAL int eevdf_exit(struct sl_sched *s SL_NONNULL, u32 c)
{
	struct sl_class *k = sl_at(s->classes, c);
	s64 most = (s64)(SL_MOST_DEBT_BYTES * k->virtual_cost), lag = (s64)(virtual_sched(s)->time - virtual_class(k)->start);

	eevdf_sched(s)->weights -= k->weight;
	if (eevdf_sched(s)->placed & SL_BIT(c))
		eevdf_unplace(s, c);
	/* The others take over all of the lag, also what the class will not get back. */
	virtual_sched(s)->time += (u64)eevdf_shift(k->weight, lag, sl_max(eevdf_sched(s)->weights, 1));
	eevdf_class(k)->lag = sl_max(sl_min(lag, most), -most);
	return 0;
}

SL_FN void eevdf_leave(struct sl_sched *s, struct sl_class *k, u32 c)
{
	if (s->ready) {
		eevdf_exit(s, c);
		return;
	}
	eevdf_class(k)->lag = 0;
	eevdf_sched(s)->weights = 0;
	if (eevdf_sched(s)->placed)
		eevdf_unplace(s, c);
}

/* Puts class c, which stands in from, where it belongs now. */
SL_FN void eevdf_move(struct sl_sched *s, struct sl_tournament *from, u32 c)
{
	tournament_cut(from, c);
	eevdf_place(s, c);
}

/* The class to serve of several that stand in no tournament. */
SL_GLOBAL u32 eevdf_first_of_few(struct sl_sched *s SL_NONNULL)
{
	u64 now = virtual_sched(s)->time, start, deadline, first_start = 0, first_deadline = 0;
	u32 eligible = SL_CLASSES, earliest = SL_CLASSES, c;

#pragma GCC unroll 8
	for (c = 0; c < EEVDF_FEW; c++) {
		if (!(s->ready >> c & 1))
			continue;
		start = virtual_class(&s->classes[c])->start;
		if (virtual_before(now, start)) {
			if (earliest == SL_CLASSES || virtual_before(start, first_start)) {
				earliest = c;
				first_start = start;
			}
			continue;
		}
		deadline = eevdf_class(&s->classes[c])->deadline;
		if (eligible == SL_CLASSES || virtual_before(deadline, first_deadline)) {
			eligible = c;
			first_deadline = deadline;
		}
	}
	if (sl_likely(eligible != SL_CLASSES))
		return eligible;
	/* Rounding has left V before every class. */
	virtual_sched(s)->time = first_start;
	return earliest & (SL_CLASSES - 1);
}

/* Whether the class that starts first may be served by now; it stands among the deadlines then. The verifier follows this step once. */
SL_GLOBAL int eevdf_start_one(struct sl_sched *s SL_NONNULL)
{
	u32 c;

	if (tournament_empty(&eevdf_sched(s)->starts))
		return 0;
	c = tournament_first(&eevdf_sched(s)->starts);
	if (virtual_before(virtual_sched(s)->time, virtual_class(sl_at(s->classes, c))->start))
		return 0;
	eevdf_move(s, &eevdf_sched(s)->starts, c);
	return 1;
}

#define EEVDF_MOVED (SL_CLASSES + 1)

/*
 * The class of the earliest deadline, if it may be served. EEVDF_MOVED: it may not yet, and stands among the starts now; SL_CLASSES: there is none.
 */
SL_GLOBAL u32 eevdf_due(struct sl_sched *s SL_NONNULL)
{
	u32 c;

	if (tournament_empty(&eevdf_sched(s)->deadlines))
		return SL_CLASSES;
	c = tournament_first(&eevdf_sched(s)->deadlines);
	if (!virtual_before(virtual_sched(s)->time, virtual_class(sl_at(s->classes, c))->start))
		return c;
	eevdf_move(s, &eevdf_sched(s)->deadlines, c);
	return EEVDF_MOVED;
}

/* The class to serve of several that stand in the tournaments. */
SL_GLOBAL u32 eevdf_first(struct sl_sched *s SL_NONNULL)
{
	u32 n, c;

	for (n = 0; n < SL_CLASSES; n++)
		if (!eevdf_start_one(s))
			break;
	for (n = 0; n < SL_CLASSES; n++) {
		c = eevdf_due(s);
		if (c < SL_CLASSES)
			return c;
		if (c == SL_CLASSES)
			break;
	}
	/* Rounding has left V before every class. */
	c = tournament_first(&eevdf_sched(s)->starts);
	virtual_sched(s)->time = virtual_class(sl_at(s->classes, c))->start;
	eevdf_move(s, &eevdf_sched(s)->starts, c);
	return c;
}

SL_FN u32 eevdf_pick(struct sl_sched *s)
{
	if (is_alone(s->ready))
		return sl_lowest(s->ready);
	return eevdf_sched(s)->placed ? eevdf_first(s) : eevdf_first_of_few(s);
}

SL_FN void eevdf_charge(struct sl_sched *s, struct sl_class *k, u32 bytes)
{
	u64 weights = sl_max(eevdf_sched(s)->weights, 1), sum;

	/* Only a guarantee gets a class so far ahead. What it sends there is no service that others are owed. */
	if (!is_alone(s->ready) && virtual_before(virtual_sched(s)->time + bytes * k->virtual_cost, virtual_class(k)->start))
		return;
	virtual_charge(s, k, bytes);
	sum = bytes * k->virtual_cost * k->weight + eevdf_sched(s)->rest;
	virtual_sched(s)->time += sum / weights;
	eevdf_sched(s)->rest = sum % weights;
}

/* Class c has been served and stays. */
SL_GLOBAL int eevdf_settle(struct sl_sched *s SL_NONNULL, u32 c)
{
	struct sl_class *k = sl_at(s->classes, c);
	int early = virtual_before(virtual_sched(s)->time, virtual_class(k)->start);

	if (is_alone(s->ready) || early == !tournament_has(&eevdf_sched(s)->starts, c))
		eevdf_unplace(s, c);
	if (!is_alone(s->ready))
		eevdf_place(s, c);
	return 0;
}

SL_FN void eevdf_stay(struct sl_sched *s, struct sl_class *k, u32 c)
{
	eevdf_request(s, k);
	if (eevdf_sched(s)->placed & SL_BIT(c))
		eevdf_settle(s, c);
}

/* A lone packet: virtual time goes on by its worth, and no class is owed anything. The class stands nowhere when it is away. */
SL_FN void eevdf_pass(struct sl_sched *s, struct sl_class *k, u32 c, u32 bytes, u64 arrived_ns)
{
	(void)c;
	(void)arrived_ns;
	virtual_sched(s)->time += bytes * k->virtual_cost;
	eevdf_class(k)->lag = 0;
}

static const struct sl_discipline eevdf = {
	.join = eevdf_join,
	.leave = eevdf_leave,
	.pick = eevdf_pick,
	.charge = eevdf_charge,
	.pass = eevdf_pass,
	.stay = eevdf_stay,
};
