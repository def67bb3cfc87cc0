/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Shares of classes over all scheduler instances of a link, wherever the packets of each class wait. The siblings are classes here; they may be
 * children of a node of a tree as well.
 *
 *	shares_join	an instance has packets of a class that it would send
 *	shares_leave	it has none any more, or may not send them
 *	shares_charge	the instance has drawn for some of its classes
 *	shares_report	what the instance has sent of each class since
 *	shares_look	how far the classes are that have packets anywhere
 *	shares_may	whether a class may draw
 *
 * Start-time fair queueing (Goyal, Vin & Cheng, SIGCOMM 1996) over instances. The virtual service of a class is what all instances have sent of it,
 * by its weight, in one word. A draw is charged to the classes that may send, and corrected when the instance reports what it has sent. A class is
 * active while an instance has packets of it. It may draw while its service is no more than a lag ahead of the slowest active class. A class that
 * becomes active takes up the service of the slowest one if its own is less: time without packets is no credit. So two classes that stay active get
 * bytes by their weights, whether they wait on one queue or on all. The slowest of the lowest level is never refused but by guarantees, so the link
 * always has a class that may draw.
 *
 * Let w be weights, W their sum, N the number of instances and B the batch. The lag is L / W, where L is SL_SHARED_BURST_BATCHES batches, or one
 * where the time of a batch is long. What two classes have sent that were active throughout a window differs by
 *
 *	| sent / w - sent' / w' | <= 2 * (L / W + (N + 1) * B / min(w, w'))
 *
 * since each instance may draw at the moment at which a class reaches its lag, and may send other classes than were charged until it reports. Where a
 * batch is one frame, instances draw one after the other, and the difference is of one or two frames. While the bucket lacks no more than
 * a batch, every class may draw (credit_abounds): then the link sends all that comes, and no class has to wait for another.
 *
 * Classes of a lower level go first: while one of them is active, those of higher levels may not draw, and only classes of one level share. What an
 * instance has drawn before is spent all the same: a batch of each instance, and where credit is drawn in advance, what that lasts for
 * (SL_SHARED_AHEAD_NS). A class that comes back takes up the service of the slowest active one of its own level.
 *
 * A guarantee is a bucket that is charged for what its class has sent while the bucket was open. While an active class has an open one, only such
 * classes draw. In any window of t seconds a class sends no more than rate * t + burst + (N + 1) * B by its guarantee.
 *
 * An instance whose tx queue is stopped does not ask. A class that has not asked for the horizon is passed by, and begins like one that becomes
 * active when it asks again.
 *
 * Two instances may make classes active at once, and each move its own by what it sees of the other. A class that is further ahead than the bound
 * allows is therefore brought back to it when it asks (shares_may). So no interleaving makes a class wait for more than a few batches.
 */
#pragma once
#include "shared_credit.h"

/* In sl_shares_view.level: look for the lowest level that has active classes. */
#define SL_SHARED_FIRST_LEVEL (~0u)

/* The active classes of a level, as an instance has seen them. */
struct sl_shares_view {
	u64 slowest; /* service of the slowest */
	u64 weights; /* the sum of theirs; 0: none is active */
	u64 assured; /* classes of any level whose guarantee is open, as bits */
	u32 least_weight;
	u32 slowest_weight;
	u32 level; /* to look at, set by the caller; shares_look replaces SL_SHARED_FIRST_LEVEL by the level that it has found */
};

SL_FN struct sl_shared_share *share_at(struct sl_shared_siblings *g, u32 c)
{
	return sl_at(g->share, c);
}

/* The virtual service that so many bytes are for a weight. */
SL_FN u64 share_service(u64 bytes, u64 weight)
{
	return ((bytes << SL_SHARED_SERVICE_BITS) + weight / 2) / sl_max(weight, 1);
}

/* How far a class may be ahead of the slowest. */
SL_FN u64 shares_lag(const struct sl_shared_conf *f, const struct sl_shares_view *v)
{
	return share_service((u64)f->link.batch_bytes * (credit_is_fast(&f->link) ? SL_SHARED_BURST_BATCHES : 1), v->weights);
}

/* How far one may be ahead at all: others sent a batch each before they reported. */
SL_FN u64 shares_most(const struct sl_shared_conf *f, const struct sl_shares_view *v)
{
	return shares_lag(f, v) + share_service(((u64)f->instances + 1) * f->link.batch_bytes, v->least_weight);
}

/* Looks at the active classes of level v->level, but for those of a bitmap. */
SL_GLOBAL int shares_look(struct sl_shared_siblings *g SL_NONNULL, const struct sl_shared_conf *f SL_NONNULL, u64 but, u64 now_ns,
			  struct sl_shares_view *v SL_NONNULL)
{
	u64 left = shared_read(&g->active.value) & ~but, service;
	u32 n, c, weight, level, first = v->level == SL_SHARED_FIRST_LEVEL;

	v->slowest = v->weights = v->assured = 0;
	v->least_weight = v->slowest_weight = 0;
	sl_for_bits (n, c, left) {
		struct sl_shared_share *share;

		share = share_at(g, c);
		if (!shared_read(&share->instances) || sl_since(now_ns, shared_read(&share->asked_ns)) > f->horizon_ns)
			continue;
		if (f->guarantees >> c & 1 &&
		    shared_read(&share->guarantee) <= credit_time(now_ns) + sl_at(f->classes, c)->guarantee.burst)
			v->assured |= SL_BIT(c);
		level = sl_at(f->classes, c)->level;
		if (first && level < v->level) {
			v->level = level;
			v->weights = 0;
		}
		if (level != v->level)
			continue;
		service = shared_read(&share->service);
		weight = sl_at(f->classes, c)->weight;
		if (!v->weights || virtual_before(service, v->slowest)) {
			v->slowest = service;
			v->slowest_weight = weight;
		}
		if (!v->weights || weight < v->least_weight)
			v->least_weight = weight;
		v->weights += weight;
	}
	return 0;
}

/* Brings a service into these bounds: no less than from, and no more than that and most. */
SL_GLOBAL int shares_settle(u64 *service SL_NONNULL, u64 from, u64 most)
{
	u64 seen, next;
	u32 i;

	if (!service)
		return 0;
	for (i = 0; i < SL_SHARED_TRIES; i++) {
		seen = next = shared_read(service);
		if (virtual_before(seen, from))
			next = from;
		else if (virtual_before(from + most, seen))
			next = from + most;
		if (next == seen || shared_swap(service, seen, next))
			break;
	}
	return 0;
}

/* Instance x has packets of class c, for which it asks from now on. Other instances may have done so before. */
SL_GLOBAL int shares_join(struct sl_shared_siblings *g SL_NONNULL, const struct sl_shared_conf *f SL_NONNULL,
			  struct sl_shared_instance *x SL_NONNULL, u32 c, u64 now_ns)
{
	struct sl_shared_share *share = share_at(g, c);
	u64 before = shared_set(&share->instances, SL_BIT(x->number));
	struct sl_shares_view v = { .level = sl_at(f->classes, c)->level };

	x->joined |= SL_BIT(c);
	if (before && sl_since(now_ns, shared_read(&share->asked_ns)) <= f->horizon_ns)
		return 0;
	/* Both before it looks at others: of two classes that become active at once, one sees the other. */
	shared_write(&share->asked_ns, now_ns);
	shared_set(&g->active.value, SL_BIT(c));
	shares_look(g, f, SL_BIT(c), now_ns, &v);
	if (v.weights) {
		v.weights += sl_at(f->classes, c)->weight;
		shares_settle(&share->service, v.slowest, shares_lag(f, &v));
	}
	return 0;
}

/* Instance x has no packets of class c any more that it could send. */
SL_GLOBAL int shares_leave(struct sl_shared_siblings *g SL_NONNULL, struct sl_shared_instance *x SL_NONNULL, u32 c)
{
	struct sl_shared_share *share = share_at(g, c);

	x->joined &= ~SL_BIT(c);
	if (shared_keep(&share->instances, ~SL_BIT(x->number)) & ~SL_BIT(x->number))
		return 0;
	shared_keep(&g->active.value, ~SL_BIT(c));
	/* Another instance may have joined in between, and its bit been cleared. */
	if (shared_read(&share->instances))
		shared_set(&g->active.value, SL_BIT(c));
	return 0;
}

/* Charges what instance x has sent of class c, in the place of what was charged when it drew. */
SL_GLOBAL int shares_report_class(struct sl_shared_siblings *g SL_NONNULL, const struct sl_shared_conf *f SL_NONNULL,
				  struct sl_shared_instance *x SL_NONNULL, u32 c, u64 now_ns)
{
	const struct sl_shared_class_conf *k = sl_at(f->classes, c);
	struct sl_shared_share *share = share_at(g, c);
	u32 bytes = *sl_at(x->spent_bytes, c);
	u64 cost = credit_cost(bytes, k->guarantee.cost), service = share_service(bytes, k->weight);

	*sl_at(x->spent_bytes, c) = 0;
	if (x->charged >> (c & 63) & 1)
		service -= x->charged_service;
	shared_add(&share->service, service);
	if (x->assured >> (c & 63) & 1)
		credit_charge(&share->guarantee, credit_time(now_ns), cost);
	return 0;
}

SL_FN void shares_report(struct sl_shared_siblings *g, const struct sl_shared_conf *f, struct sl_shared_instance *x, u64 now_ns)
{
	u64 left = x->unreported | x->charged;
	u32 n, c;

	sl_for_bits (n, c, left)
		shares_report_class(g, f, x, c, now_ns);
	x->unreported = x->charged = 0;
}

/* Charges classes for which instance x has drawn, a bitmap, with what they would send if they shared a batch by weight. */
SL_GLOBAL int shares_charge(struct sl_shared_siblings *g SL_NONNULL, const struct sl_shared_conf *f SL_NONNULL,
			    struct sl_shared_instance *x SL_NONNULL, u64 classes)
{
	u64 left = classes, weights = 0;
	u32 n, c;

	sl_for_bits (n, c, left)
		weights += sl_at(f->classes, c)->weight;
	x->charged = left = classes;
	x->charged_service = share_service(f->link.batch_bytes, weights);
	sl_for_bits (n, c, left) {
		shared_add(&share_at(g, c)->service, x->charged_service);
	}
	return 0;
}

/*
 * Whether class c, for which an instance asks, may draw: 0, or the service that the slowest class has to gain first; SL_SHARED_LOST: guarantees of others go
 * first, or classes of a lower level.
 */
SL_GLOBAL u64 shares_may(struct sl_shared_siblings *g SL_NONNULL, const struct sl_shared_conf *f SL_NONNULL,
			 const struct sl_shares_view *v SL_NONNULL, u32 c, u64 now_ns)
{
	struct sl_shared_share *share = share_at(g, c);
	u64 lag = shares_lag(f, v), most = shares_most(f, v), service;

	if (sl_since(now_ns, shared_read(&share->asked_ns)) > f->horizon_ns >> 3)
		shared_write(&share->asked_ns, now_ns);
	if (v->assured)
		return v->assured >> (c & 63) & 1 ? 0 : SL_SHARED_LOST;
	if (v->weights && sl_at(f->classes, c)->level > v->level)
		return SL_SHARED_LOST;
	service = shared_read(&share->service);
	if (!v->weights || !virtual_before(v->slowest + lag, service))
		return 0;
	if (virtual_before(v->slowest + most, service))
		shares_settle(&share->service, v->slowest, most);
	return sl_min(service - v->slowest - (credit_is_fast(&f->link) ? lag / 2 : lag), most);
}
