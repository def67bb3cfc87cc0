/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Trees of classes (hierarchy.h) that share the rate of one link, a tree for each tx queue. Each has all nodes; the packets below a child of the link
 * come to one of the trees, its home (abi/shared_tree.h). The link shares by weights.
 *
 *	shared_tree_dequeue	send this slot, or wait until then, or idle; in the place of tree_dequeue
 *	shared_tree_stop	the tree ends, or is emptied: it wants nothing, and gives back what it has
 *
 * The rate of the link is that of its node, in each tree the same. It is drawn from one bucket, a batch at a time (shared_credit.h); the bucket in
 * the node itself never runs empty. Ceilings, guarantees and weights below a child of the link are kept by the child's home, as by one tree.
 *
 * Weights of the link's children hold over all trees by start-time fair queueing (Goyal, Vin & Cheng, SIGCOMM 1996) between trees. The virtual
 * service of a tree is what it has drawn, by the sum of the weights of its children that may send. A tree may draw while its service is no more than
 * a lag ahead of that of the slowest one that wants credit. One that begins to want some takes up the service of the slowest if its own is less.
 * Each tree shares among its own children. So all children of the link that stay ready get bytes by their weights, whichever trees they are in.
 *
 * While a tree has a child of the link whose guarantee has tokens, only such trees draw. Bytes that are sent by these guarantees are no service, as in a
 * tree alone.
 *
 * While the bucket lacks no more than a batch, every tree may draw (credit_abounds), and nothing counts as service. A tree that has not asked for
 * the horizon (credit_horizon_ns), since its tx queue is stopped, is passed by.
 *
 * Bounds: bytes of all trees <= rate * t + burst + trees * batch in any window of t seconds, as in shared_credit.h. Let W be the sum of all
 * weights that are ready, B the batch, and L SL_SHARED_BURST_BATCHES batches where credit is drawn in advance (credit_is_fast), else one. The bytes
 * of two children with weights w and w' that stayed ready, in trees whose ready weights stayed V and V', differ by
 *
 *	| sent / w - sent' / w' | <= 2 * (L / W + 2 * B / min(V, V'))
 *
 * and what their own trees' discipline adds to it. A guarantee of a child of the link waits for what other trees have drawn before: a batch each, and
 * where credit is drawn in advance, up to SL_SHARED_AHEAD_NS.
 * Cost: O(trees) for a draw while credit is scarce, which a batch pays for.
 */
#pragma once
#include "hierarchy.h"
#include "shared_credit.h"
#include "../abi/shared_tree.h"

/* The others that want credit, as a tree has seen them. */
struct sl_trees_view {
	u64 slowest; /* service of the slowest */
	u64 weights; /* the sum of theirs; 0: none wants any */
	u64 slowest_weights;
	u32 assured; /* one of them has a guarantee to keep */
};

/* The virtual service that so many bytes are for these weights. */
SL_FN u64 trees_service(u64 bytes, u64 weights)
{
	return (bytes << SL_TREE_SERVICE_BITS) / sl_max(weights, 1);
}

/* How far a tree may be ahead of the slowest one, where all weights are these. */
SL_FN u64 trees_lag(const struct sl_shared_rate *r, u64 weights)
{
	return trees_service((u64)r->batch_bytes * (credit_is_fast(r) ? SL_SHARED_BURST_BATCHES : 1), weights);
}

/* Looks at the others that want credit. */
SL_GLOBAL int trees_look(const struct sl_tree_part *x SL_NONNULL, struct sl_shared_trees *l SL_NONNULL, u64 now_ns,
			 struct sl_trees_view *v SL_NONNULL)
{
	u64 horizon_ns = credit_horizon_ns(&x->rate), claim, service;
	u32 i;

	v->slowest = v->weights = v->slowest_weights = 0;
	v->assured = 0;
	sl_for (i, SL_SHARED_TREES) {
		struct sl_tree_share *other = sl_at(l->share, i);

		if (i >= x->instances)
			break;
		if (i == x->number)
			continue;
		claim = shared_read(&other->claim);
		if (!claim || sl_since(now_ns, shared_read(&other->asked_ns)) > horizon_ns)
			continue;
		service = shared_read(&other->service);
		v->assured |= claim & 1;
		if (!v->weights || virtual_before(service, v->slowest)) {
			v->slowest = service;
			v->slowest_weights = claim >> 1;
		}
		v->weights += claim >> 1;
	}
	return 0;
}

/* The tree wants credit by this claim, or none, if that is 0. Others see its service before they see a claim. */
SL_FN void trees_claim(struct sl_tree_part *x, struct sl_shared_trees *l, u64 claim, u64 now_ns)
{
	struct sl_tree_share *own = sl_at(l->share, x->number);

	if (claim) {
		shared_write(&own->service, x->service);
		shared_write(&own->asked_ns, now_ns);
	}
	if (claim != x->joined)
		shared_write(&own->claim, claim);
	x->joined = claim;
}

/* The service of the last draw becomes that of what was sent since. */
SL_FN void trees_settle(struct sl_tree_part *x)
{
	if (x->drawn_weights)
		x->service += trees_service(x->sent_bytes, x->drawn_weights) - x->drawn_service;
	x->drawn_weights = x->drawn_service = x->sent_bytes = 0;
}

/* The tree has nothing that it may send: it wants no credit, and gives back what others lack. */
SL_GLOBAL int shared_tree_rest(struct sl_tree_part *x SL_NONNULL, struct sl_shared_trees *l SL_NONNULL, u64 now_ns)
{
	if (x->joined) {
		x->draws++;
		trees_settle(x);
		trees_claim(x, l, 0, now_ns);
	}
	if (!credit_rests(&x->credit, now_ns))
		return 0;
	x->draws++;
	credit_return(&l->bucket.value, &x->credit, &x->rate);
	return 0;
}

/* The tree ends, or has lost all packets: it gives back what it has. Debt is forgiven. */
SL_FN void shared_tree_stop(struct sl_tree_part *x, struct sl_shared_trees *l, u64 now_ns)
{
	trees_claim(x, l, 0, now_ns);
	if (x->rate.cost)
		credit_return(&l->bucket.value, &x->credit, &x->rate);
	x->credit.bytes = 0;
	x->credit.full = x->credit.opens_ns = x->retry_ns = 0;
	trees_settle(x);
}

/* The link's node has another rate: credit that was drawn by the one before is forgotten, of a batch at most, and debt stays. */
SL_GLOBAL int shared_tree_renew(struct sl_tree_part *x SL_NONNULL, const struct sl_node_bucket *link SL_NONNULL)
{
	x->link_cost = link->cost;
	x->link_burst_ns = link->burst_ns;
	x->rate.cost = 0;
	if (link->cost)
		credit_rate(&x->rate, (u64)link->cost << (20 - SL_NODE_COST_BITS), link->burst_ns, x->frame_bytes);
	x->credit.bytes = sl_min(x->credit.bytes, 0);
	x->credit.full = x->credit.opens_ns = x->retry_ns = 0;
	return 0;
}

/*
 * The time at which a tree ahead of the slowest asks again: the earlier one of two. The slowest would have caught up then, had it the whole link; or the
 * bucket lacks only a quarter of its burst, so that no credit is lost if the others have gone. Trees come one after the other (credit_turn_ns).
 */
SL_GLOBAL u64 trees_retry_ns(const struct sl_tree_part *x SL_NONNULL, const struct sl_trees_view *v SL_NONNULL, u64 bucket,
			     u64 ahead, u64 now_ns)
{
	const struct sl_shared_rate *r = &x->rate;
	u64 now = credit_time(now_ns), bytes, at, turn_ns = credit_turn_ns(r, bucket, x->credit.full, x->instances);

	bytes = (sl_min(ahead, 1ULL << 47) >> 16) * v->slowest_weights >> (SL_TREE_SERVICE_BITS - 16);
	at = now + credit_cost(sl_min(bytes, 1U << 24), r->cost);
	if (bucket > now + r->burst / 4)
		at = sl_min(at, bucket - r->burst / 4);
	else
		at = now;
	if (credit_is_fast(r))
		at = credit_ns(sl_max(at, now + r->batch / 2)) + turn_ns * (SL_SHARED_BURST_BATCHES / 4);
	else
		at = credit_ns(sl_max(at, now + r->batch / 16)) + turn_ns / 4;
	return sl_min(at, now_ns + credit_horizon_ns(r) / 2) + 1;
}

/*
 * Credit is scarce: the tree tells the others what it wants, and looks how far they are. 0: it may draw; else until when it waits. bucket: of the link,
 * as it was seen.
 */
SL_GLOBAL u64 trees_take_turn(struct sl_tree *t SL_NONNULL, struct sl_tree_part *x SL_NONNULL,
			      struct sl_shared_trees *l SL_NONNULL, u64 bucket, u64 now_ns)
{
	struct sl_tree_share *own = sl_at(l->share, x->number);
	struct sl_trees_view v;
	u64 claim, weights, lag = 0, most;
	s64 ahead = 0;

	tree_end_lone(t);
	if (wheel_due(&t->wheel[SL_TURN_SHARED], now_ns) || wheel_due(&t->wheel[SL_TURN_ASSURED], now_ns))
		tree_wake(t, now_ns);
	if (!(node_at(t, SL_FIRST_INNER)->state & SL_NODE_READY)) {
		shared_tree_rest(x, l, now_ns);
		return sl_max(wheel_next_ns(&t->wheel[SL_TURN_SHARED]), now_ns + 1);
	}
	weights = t->link_weights;
	claim = weights << 1 | (inner_at(t, SL_FIRST_INNER)->first[SL_TURN_ASSURED] != 0);
	trees_look(x, l, now_ns, &v);
	if (v.weights) {
		lag = trees_lag(&x->rate, v.weights + weights);
		most = lag + 2 * trees_service(x->rate.batch_bytes, weights);
		ahead = (s64)(x->service - v.slowest);
		if (ahead > (s64)most)
			x->service = v.slowest + most;
		else if (ahead < 0 && (!x->joined || sl_since(now_ns, shared_read(&own->asked_ns)) > credit_horizon_ns(&x->rate)))
			x->service = v.slowest;
		ahead = (s64)(x->service - v.slowest);
	}
	trees_claim(x, l, claim, now_ns);
	if (!v.weights || claim & 1 || (!v.assured && ahead <= (s64)lag))
		return 0;
	ahead -= (s64)(credit_is_fast(&x->rate) ? lag / 2 : lag);
	x->retry_ns = trees_retry_ns(x, &v, bucket, ahead > 0 ? (u64)ahead : 0, now_ns);
	return x->retry_ns;
}

/* A tree with packets that may not send yet asks for credit. 0: it may send now; else until when it waits. */
SL_GLOBAL u64 trees_ask(struct sl_tree *t SL_NONNULL, struct sl_tree_part *x SL_NONNULL, struct sl_shared_trees *l SL_NONNULL,
			u64 now_ns)
{
	u64 bucket, wake_ns;
	s32 had;

	if (now_ns < x->credit.opens_ns)
		return x->credit.opens_ns;
	if (now_ns < x->retry_ns)
		return x->retry_ns;
	x->retry_ns = 0;
	had = x->credit.bytes;
	if (had > 0)
		return 0;
	x->draws++;
	trees_settle(x);
	bucket = shared_read(&l->bucket.value);
	x->credit.scarce = !credit_abounds(&x->rate, bucket, credit_time(now_ns));
	if (x->credit.scarce) {
		wake_ns = trees_take_turn(t, x, l, bucket, now_ns);
		if (wake_ns)
			return wake_ns;
	}
	wake_ns = credit_draw_for(&l->bucket.value, &x->credit, &x->rate, x->instances, now_ns);
	if (x->credit.scarce && x->credit.bytes > had) {
		x->drawn_weights = t->link_weights;
		x->drawn_service = trees_service((u32)(x->credit.bytes - had), x->drawn_weights);
		x->service += x->drawn_service;
		shared_write(&sl_at(l->share, x->number)->service, x->service);
	}
	return wake_ns;
}

SL_FN struct sl_tree_verdict shared_tree_dequeue(struct sl_tree *t, struct sl_tree_part *x, struct sl_shared_trees *l, u64 now_ns)
{
	struct sl_tree_verdict v = { SL_TREE_IDLE, 0, 0, 0, 0, 0, 0 };
	struct sl_node_bucket *link = &node_at(t, SL_FIRST_INNER)->bucket[SL_TURN_SHARED];
	u32 bytes;

	if (sl_unlikely(link->cost != x->link_cost || link->burst_ns != x->link_burst_ns))
		shared_tree_renew(x, link);
	if (!x->link_cost)
		return tree_dequeue(t, now_ns);
	if (!t->pkts) {
		shared_tree_rest(x, l, now_ns);
		return v;
	}
	if (x->credit.bytes <= 0 || now_ns < x->credit.opens_ns) {
		v.wake_ns = trees_ask(t, x, l, now_ns);
		if (v.wake_ns) {
			v.action = SL_TREE_WAIT;
			return v;
		}
	}
	link->tat_64ths = 0;
	v = tree_dequeue(t, now_ns);
	if (sl_unlikely(v.action != SL_TREE_SEND)) {
		shared_tree_rest(x, l, now_ns);
		return v;
	}
	bytes = sl_at(t->slot, v.slot)->wire_bytes;
	x->credit.bytes -= (s32)bytes;
	if (!v.assured)
		x->sent_bytes += bytes;
	return v;
}
