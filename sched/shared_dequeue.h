/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The flat scheduler (core.h) as one of several instances that share a link: the rate, the ceilings and guarantees of classes, and their weights
 * hold for all of them together. Its own configuration has the limits and queues of classes, and no rates.
 *
 *	shared_begin	an instance begins: it has nothing
 *	shared_dequeue	send this slot, or wait until then, or idle; in the place of sl_dequeue
 *	shared_waits	whether sl_dequeue may send now; then shared_charge is to follow each packet
 *	shared_stop	the instance ends: it gives back what it has
 *	shared_renew	the link has another configuration: the instance leaves all classes, and keeps its debts alone
 *
 * A guarantee counts for the link alone: in an instance, its class takes turns with the other classes that may draw by a guarantee.
 *
 * An instance that has credit sends as its own discipline chooses. When it has none, it asks for all of its classes with packets (shared_draw): it
 * reports what it has sent, looks at the active classes, and draws a batch if one of its own may. While the bucket has plenty, every class may. A
 * class that may not is held in the scheduler, where it waits like one without tokens, until a later draw lets it go. A class that gets packets between
 * two draws sends until the next.
 *
 * An instance with packets that may not send knows until when, and touches no shared word before. One that has nothing to send leaves the active
 * classes at once, and gives its credit back if the bucket lacks it, but once in SL_SHARED_REST_NS at most: a queue that is empty after every packet
 * would otherwise draw and give back for each. Credit that it keeps is no loss to others, since it draws that much less later.
 */
#pragma once
#include "hold_back.h"
#include "shared_shares.h"

/* Gives back the credit of the ceilings of these classes, a bitmap. */
SL_GLOBAL int shared_give_back_ceilings(struct sl_shared_instance *x SL_NONNULL, struct sl_shared_link *l SL_NONNULL,
					const struct sl_shared_conf *f SL_NONNULL, u64 classes)
{
	u64 left = f->ceilings & classes;
	u32 n, c;

	sl_for_bits (n, c, left) {
		s32 *bytes = sl_at(x->ceiling_bytes, c);

		if (*bytes <= 0)
			continue;
		credit_give_back(&sl_at(l->ceiling, c)->value, &sl_at(f->classes, c)->ceiling, (u32)*bytes);
		*bytes = 0;
	}
	return 0;
}

/* The instance has nothing that it may send: it gives its credit back, if others lack it. */
SL_FN void shared_rest(struct sl_sched *s, struct sl_shared_instance *x, struct sl_shared_link *l, const struct sl_shared_conf *f,
		       u64 now_ns)
{
	if (!credit_rests(&x->credit, now_ns))
		return;
	x->draws++;
	credit_return(&l->bucket.value, &x->credit, &f->link);
	shared_give_back_ceilings(x, l, f, ~(hold_back_ready(s) | s->held));
}

/* Leaves classes of which it has no packets, or none that it may send. */
SL_GLOBAL int shared_leave(struct sl_shared_instance *x SL_NONNULL, struct sl_shared_link *l SL_NONNULL,
			   const struct sl_shared_conf *f SL_NONNULL, u64 gone, u64 now_ns)
{
	u32 n, c;

	x->draws++;
	shares_report(&l->classes, f, x, now_ns);
	sl_for_bits (n, c, gone)
		shares_leave(&l->classes, x, c);
	return 0;
}

/* The instance ends: it leaves all classes, and gives back what it has, at the rates at which it drew that. Debt is forgiven. */
SL_FN void shared_stop(struct sl_shared_instance *x, struct sl_shared_link *l, const struct sl_shared_conf *f, u64 now_ns)
{
	shared_leave(x, l, f, x->joined, now_ns);
	credit_return(&l->bucket.value, &x->credit, &f->link);
	shared_give_back_ceilings(x, l, f, ~0ULL);
}

/* Forgets what the instance has drawn and sent, and until when it waits; its debts are kept, or not. */
SL_GLOBAL int shared_forget(struct sl_shared_instance *x SL_NONNULL, u32 keeps_debts)
{
	u32 c;

	x->credit.bytes = keeps_debts ? sl_min(x->credit.bytes, 0) : 0;
	sl_for (c, SL_CLASSES) {
		s32 *bytes = sl_at(x->ceiling_bytes, c);

		*bytes = keeps_debts ? sl_min(*bytes, 0) : 0;
		*sl_at(x->spent_bytes, c) = 0;
		*sl_at(x->ceiling_full, c) = 0;
	}
	x->refused = x->assured = x->unreported = x->charged = 0;
	x->credit.full = x->credit.opens_ns = x->retry_ns = 0;
	return 0;
}

/*
 * The link has another configuration than that by which the instance drew: it leaves all classes and forgets its credit, of a batch at most, since the
 * rates at which that was drawn may be gone. Debt stays. Of a class that was charged for a draw, and of which less was sent, the service stays ahead by
 * up to a batch.
 */
SL_GLOBAL int shared_renew(struct sl_shared_instance *x SL_NONNULL, struct sl_shared_link *l SL_NONNULL)
{
	u64 gone = x->joined;
	u32 n, c;

	sl_for_bits (n, c, gone)
		shares_leave(&l->classes, x, c);
	shared_forget(x, 1);
	return 0;
}

/* An instance begins. What a former one of this number had is gone: it has ended by shared_stop or shared_renew. */
SL_FN void shared_begin(struct sl_shared_instance *x, u32 number)
{
	shared_forget(x, 0);
	x->joined = x->draws = x->credit.gave_back_ns = 0;
	x->credit.scarce = 0;
	x->number = number & (SL_SHARED_INSTANCES - 1);
}

/* Draws for those of these ready classes that have a ceiling and no credit of it; the others are held. */
SL_GLOBAL u64 shared_ceilings(struct sl_sched *s SL_NONNULL, struct sl_shared_instance *x SL_NONNULL,
			      struct sl_shared_link *l SL_NONNULL, const struct sl_shared_conf *f SL_NONNULL, u64 now_ns)
{
	u64 left = hold_back_ready(s) & f->ceilings, opens, wake_ns = 0;
	u32 n, c;

	sl_for_bits (n, c, left) {
		const struct sl_shared_rate *r;
		u64 *bucket, *full;

		if (*sl_at(x->ceiling_bytes, c) > 0)
			continue;
		r = &sl_at(f->classes, c)->ceiling;
		bucket = &sl_at(l->ceiling, c)->value;
		x->draws++;
		opens = credit_fill(bucket, r, sl_at(x->ceiling_bytes, c), credit_time(now_ns), 0);
		full = sl_at(x->ceiling_full, c);
		if (opens <= credit_time(now_ns)) {
			*full = credit_time(now_ns) + r->burst;
			continue;
		}
		wake_ns = credit_ns(opens) + credit_turn_ns(r, opens + r->burst, *full, f->instances);
		if (!s->lone)
			hold_back(s, c, sl_max(wake_ns, now_ns + 1));
	}
	return s->lone ? wake_ns : 0;
}

/* The answer of shared_judge about the classes of an instance. */
struct sl_shared_judgement {
	u64 may; /* classes that may draw, as bits */
	u64 ahead; /* the least service by which one that may not is too far ahead */
	struct sl_shares_view view;
};

/* Which of an instance's classes with packets, a bitmap, may draw. Those that may not are held in the scheduler, and others let go. */
SL_GLOBAL int shared_judge(struct sl_sched *s SL_NONNULL, struct sl_shared_link *l SL_NONNULL,
			   const struct sl_shared_conf *f SL_NONNULL, struct sl_shared_judgement *j SL_NONNULL, u64 now_ns)
{
	u64 left = hold_back_ready(s) | j->may, asks = left, ahead;
	u32 n, c;

	j->may = 0;
	j->ahead = SL_SHARED_LOST;
	sl_for_bits (n, c, left) {
		ahead = j->view.weights ? shares_may(&l->classes, f, &j->view, c, now_ns) : 0;
		if (!ahead)
			j->may |= SL_BIT(c);
		else
			j->ahead = sl_min(j->ahead, ahead);
	}
	if (s->lone)
		return 0;
	sl_for_bits (n, c, asks) {
		if (j->may & ~s->ready & SL_BIT(c))
			hold_back_let_go(s, c, now_ns);
		else if (~j->may & s->ready & SL_BIT(c))
			hold_back(s, c, now_ns + SL_HOLD_NEVER_NS);
	}
	return 0;
}

/* The instance asks for those of these classes for which it does not ask yet, and for those that have been passed by. */
SL_GLOBAL int shared_join(struct sl_shared_instance *x SL_NONNULL, struct sl_shared_link *l SL_NONNULL,
			  const struct sl_shared_conf *f SL_NONNULL, u64 asks, u64 now_ns)
{
	u32 n, c;

	sl_for_bits (n, c, asks) {
		if (!(x->joined >> (c & 63) & 1) ||
		    sl_since(now_ns, shared_read(&share_at(&l->classes, c)->asked_ns)) > f->horizon_ns)
			shares_join(&l->classes, f, x, c, now_ns);
	}
	return 0;
}

/*
 * When an instance asks again whose classes are all refused: when the slowest class could have caught up, had it the whole link, or when the
 * bucket lacks only a quarter of its burst, whichever is first. Instances come one after the other, within a part of the burst: so no credit
 * is lost if the classes that go first have gone.
 */
SL_GLOBAL u64 shared_retry_ns(const struct sl_shared_instance *x SL_NONNULL, struct sl_shared_link *l SL_NONNULL,
			      const struct sl_shared_conf *f SL_NONNULL, const struct sl_shared_judgement *j SL_NONNULL,
			      u64 now_ns)
{
	u64 bucket = shared_read(&l->bucket.value), now = credit_time(now_ns), at = now, bytes, turn_ns;

	if (bucket > now + f->link.burst / 4)
		at = bucket - f->link.burst / 4;
	if (j->ahead != SL_SHARED_LOST) {
		bytes = sl_min(j->ahead, 1ULL << 40) * j->view.slowest_weight >> SL_SHARED_SERVICE_BITS;
		at = sl_min(at, now + credit_cost(sl_min(bytes, 1U << 24), f->link.cost));
	}
	turn_ns = credit_turn_ns(&f->link, bucket, x->credit.full, f->instances);
	if (credit_is_fast(&f->link))
		return credit_ns(sl_max(at, now + f->link.batch / 2)) + turn_ns * (SL_SHARED_BURST_BATCHES / 4);
	/* Packets are much shorter than a batch may be, and looking costs little at these rates. */
	return credit_ns(sl_max(at, now + f->link.batch / 16)) + turn_ns / 4;
}

/* An instance without credit, or without classes that may send, asks. 0, or until when it waits; SL_SHARED_LOST: ceilings hold all of its classes. */
SL_GLOBAL u64 shared_draw(struct sl_sched *s SL_NONNULL, struct sl_shared_instance *x SL_NONNULL,
			  struct sl_shared_link *l SL_NONNULL, const struct sl_shared_conf *f SL_NONNULL, u64 now_ns)
{
	struct sl_shared_judgement j = { .view = { .level = SL_SHARED_FIRST_LEVEL } };
	u64 wake_ns;

	x->refused &= s->held;
	if (!(hold_back_ready(s) | x->refused))
		return SL_SHARED_LOST;
	if (now_ns < x->credit.opens_ns && hold_back_ready(s))
		return x->credit.opens_ns;
	if (now_ns < x->retry_ns && !s->ready)
		return x->retry_ns;
	x->draws++;
	shares_report(&l->classes, f, x, now_ns);
	x->credit.scarce = !credit_abounds(&f->link, shared_read(&l->bucket.value), credit_time(now_ns));
	if (x->credit.scarce) {
		shared_join(x, l, f, hold_back_ready(s) | x->refused, now_ns);
		shares_look(&l->classes, f, 0, now_ns, &j.view);
	}
	j.may = x->refused;
	x->refused |= hold_back_ready(s);
	shared_judge(s, l, f, &j, now_ns);
	x->refused &= ~j.may;
	x->retry_ns = 0;
	x->assured = j.may & j.view.assured;
	if (!j.may) {
		x->retry_ns = sl_min(shared_retry_ns(x, l, f, &j, now_ns), now_ns + f->horizon_ns / 2) + 1;
		return x->retry_ns;
	}
	if (x->credit.bytes <= 0)
		wake_ns = credit_draw_for(&l->bucket.value, &x->credit, &f->link, f->instances, now_ns);
	else
		wake_ns = now_ns < x->credit.opens_ns ? x->credit.opens_ns : 0;
	if (x->credit.bytes > 0)
		shares_charge(&l->classes, f, x, j.may);
	return wake_ns;
}

/* Charges a packet of class c to what the instance has. */
SL_FN void shared_charge(struct sl_shared_instance *x, const struct sl_shared_conf *f, u32 c, u32 bytes)
{
	x->credit.bytes -= (s32)bytes;
	*sl_at(x->spent_bytes, c) += bytes;
	x->unreported |= SL_BIT(c);
	if (f->ceilings >> (c & 63) & 1)
		*sl_at(x->ceiling_bytes, c) -= (s32)bytes;
}

/* Whether the instance can send without a look at what it has left, joined or waited for. */
SL_FN int shared_has_credit(struct sl_sched *s, const struct sl_shared_instance *x, const struct sl_shared_conf *f, u64 now_ns)
{
	u64 ready = hold_back_ready(s);

	if (x->credit.bytes <= 0 || now_ns < x->credit.opens_ns || !ready)
		return 0;
	return !((ready & f->ceilings) | (x->joined & ~(ready | x->refused))) && !(s->held && now_ns >= s->held_until_ns);
}

/* Gets credit, leaves and gives back. 0: a packet can be sent; else until when none can, or any time, if there is none. */
SL_GLOBAL u64 shared_prepare(struct sl_sched *s SL_NONNULL, struct sl_shared_instance *x SL_NONNULL,
			     struct sl_shared_link *l SL_NONNULL, const struct sl_shared_conf *f SL_NONNULL, u64 now_ns)
{
	u64 gone, wake_ns = 0;

	if (sl_unlikely(s->held && now_ns >= s->held_until_ns))
		sl_release(s, now_ns);
	if (sl_unlikely(hold_back_ready(s) & f->ceilings))
		wake_ns = shared_ceilings(s, x, l, f, now_ns);
	gone = x->joined & ~(wake_ns ? 0 : hold_back_ready(s) | (x->refused & s->held));
	if (sl_unlikely(gone))
		shared_leave(x, l, f, gone, now_ns);
	if (!s->backlog_pkts) {
		shared_rest(s, x, l, f, now_ns);
		return SL_SHARED_LOST;
	}
	if (!wake_ns && (x->credit.bytes <= 0 || !hold_back_ready(s) || now_ns < x->credit.opens_ns))
		wake_ns = shared_draw(s, x, l, f, now_ns);
	if (!hold_back_ready(s))
		shared_rest(s, x, l, f, now_ns);
	else if (!wake_ns)
		return 0;
	return s->held ? sl_min(wake_ns ? wake_ns : SL_SHARED_LOST, s->held_until_ns) : wake_ns;
}

/* Draws credit if the instance lacks it. 0: sl_dequeue may send; else the time before which it may not, which means nothing without packets. */
SL_FN u64 shared_waits(struct sl_sched *s, struct sl_shared_instance *x, struct sl_shared_link *l, const struct sl_shared_conf *f,
		       u64 now_ns)
{
	return sl_likely(shared_has_credit(s, x, f, now_ns)) ? 0 : shared_prepare(s, x, l, f, now_ns);
}

SL_FN struct sl_verdict shared_dequeue(struct sl_sched *s, struct sl_shared_instance *x, struct sl_shared_link *l,
				       const struct sl_shared_conf *f, u64 now_ns)
{
	struct sl_verdict v = { SL_IDLE, 0, 0, 0, 0, 0 };

	v.wake_ns = shared_waits(s, x, l, f, now_ns);
	if (v.wake_ns) {
		v.action = s->backlog_pkts ? SL_WAIT : SL_IDLE;
		return v;
	}
	v = sl_dequeue(s, now_ns);
	if (sl_likely(v.action == SL_SEND))
		shared_charge(x, f, v.class, sl_at(s->slot, v.slot)->wire_bytes);
	return v;
}
