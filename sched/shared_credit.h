/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * One rate for up to 64 scheduler instances, one for each tx queue. They draw credit from one bucket, a batch at a time, and spend it without looking
 * at the bucket again.
 *
 *	credit_rate		a rate as instances draw it, from a cost of a byte and a burst
 *	credit_draw		takes credit out of a bucket, or tells when a draw can succeed
 *	credit_give_back	puts back what was not spent
 *	credit_fill		draws as much as an instance lacks
 *	credit_draw_for		the same, of the link, with the time at which to ask again
 *	credit_rests		whether an idle instance is to give back what it has
 *	credit_return		gives that back
 *
 * The bucket is one word, the time at which it is full again (police.h), changed by compare-and-swap; credit that comes back is one atomic addition.
 * A draw takes all that was asked for or nothing. If the bucket has less, the draw tells from when the credit may be spent, and takes it in advance
 * if that is soon: then the instance waits for a moment of its own, and draws of several instances follow each other in the order in which
 * they were made. An instance sends while it has credit, and a packet may take it into debt, since its length is known only then; the next draw pays
 * for that first.
 *
 * Bound. Let B be the batch, of at least one frame, and N the number of instances. An instance draws until it has B - frame + 1 bytes, and sends while
 * it has one. So what it has stays within B bytes, for packets up to a frame. Credit in the bucket is at most the burst and grows with the rate; draws
 * and returns move credit between bucket and instances, and make none. Hence in any window of t seconds
 *
 *	bytes of all instances <= rate * t + burst + N * B
 *
 * Packets of up to L bytes, longer than a frame, make B longer by L - frame, and the burst counts as B if it is less. A bucket that would be
 * overfull by a return forgets what is too much, so credit may be lost there, and only there: the link had nothing to send. An instance that ends
 * forgives its debt, of a packet at most.
 *
 * A batch is SL_SHARED_BATCH_FRAMES frames or what the rate sends in SL_SHARED_BATCH_NS, whichever is less, but at least a frame. The burst is at
 * least SL_SHARED_BURST_BATCHES, or two where the time of a batch is long: one so that a batch fits, and the rest for what instances that wait are late.
 *
 * At low rates, where the time of a batch is long, nothing is drawn in advance, since the choice of the class would be too old. Then the bucket opens
 * for one draw at a time, and every instance that waits learns of the same moment. The instance that others have overtaken for the longest time
 * comes first: it waits until that moment, and others up to half a batch's time more, the longer the less the bucket was drawn from since
 * their last draw (credit_turn_ns). So draws go round without a word that says whose turn it is.
 */
#pragma once
#include "world.h"
#include "../abi/shared_credit.h"

/* Attempts to change a word. An instance that loses all of them comes again. */
#define SL_SHARED_TRIES 8

/* The time between two returns of credit by one instance, at least. */
#define SL_SHARED_REST_NS 1000000u

/* Before each access to a shared word: tests let other instances go on there. */
#ifndef SL_SHARED_STEP
#define SL_SHARED_STEP()
#endif

SL_FN u64 shared_read(const u64 *word)
{
	SL_SHARED_STEP();
	return *(const volatile u64 *)word;
}

SL_FN void shared_write(u64 *word, u64 value)
{
	SL_SHARED_STEP();
	*(volatile u64 *)word = value;
}

/*
 * An operation on a word, which says the value before and is a full barrier. In BPF only atomic operations that return a value are, so the compiler
 * must not see that nobody reads it.
 */
#define SL_SHARED_OPERATION(name, fetch_and)       \
	SL_FN u64 name(u64 *word, u64 operand)     \
	{                                          \
		u64 before;                        \
                                                   \
		SL_SHARED_STEP();                  \
		before = fetch_and(word, operand); \
		sl_opaque(before);                 \
		return before;                     \
	}
SL_SHARED_OPERATION(shared_add, __sync_fetch_and_add)
SL_SHARED_OPERATION(shared_set, __sync_fetch_and_or)
SL_SHARED_OPERATION(shared_keep, __sync_fetch_and_and)

/* Whether the word was as seen, and has the other value now. */
SL_FN int shared_swap(u64 *word, u64 seen, u64 value)
{
	SL_SHARED_STEP();
	return __sync_val_compare_and_swap(word, seen, value) == seen;
}

/* Time in the unit of a bucket, 1/64 ns, and back, rounded up. */
SL_FN u64 credit_time(u64 ns)
{
	return ns << 6;
}

SL_FN u64 credit_ns(u64 time)
{
	return (time + 63) >> 6;
}

/* The cost of so many bytes in 1/64 ns, rounded up. */
SL_FN u64 credit_cost(u64 bytes, u64 cost)
{
	return (bytes * cost + (1 << 14) - 1) >> 14;
}

/* The cost of bytes that come back, rounded down. */
SL_FN u64 credit_worth(u64 bytes, u64 cost)
{
	return bytes * cost >> 14;
}

/* Whether the time of a batch is short, so that credit is drawn in advance. */
SL_FN int credit_is_fast(const struct sl_shared_rate *r)
{
	return r->batch <= credit_time(2 * SL_SHARED_BATCH_NS);
}

/* The time after which one that has not asked for credit is passed by. */
SL_FN u64 credit_horizon_ns(const struct sl_shared_rate *r)
{
	return sl_max(8 * (r->batch >> 6), 1000000);
}

/* The rate of this cost of a byte (ns << 20), which is not 0, for frames of so many bytes at most. The burst is longer where the header says so. */
SL_FN void credit_rate(struct sl_shared_rate *r, u64 cost, u64 burst_ns, u32 frame_bytes)
{
	u64 most = ((u64)SL_SHARED_BATCH_NS << 20) / cost;

	r->cost = cost;
	r->frame_bytes = frame_bytes;
	r->batch_bytes = (u32)sl_max(sl_min(most, (u64)SL_SHARED_BATCH_FRAMES * frame_bytes), frame_bytes);
	r->batch = credit_cost(r->batch_bytes, cost);
	r->burst = sl_max(credit_time(burst_ns), (credit_is_fast(r) ? SL_SHARED_BURST_BATCHES : 2) * r->batch);
}

/*
 * Whether a bucket has so much that none needs to wait for others: it lacks no more than a batch, or where batches are long, nothing.
 */
SL_FN int credit_abounds(const struct sl_shared_rate *r, u64 bucket, u64 now)
{
	return bucket <= now + (credit_is_fast(r) ? r->batch : 0);
}

#define SL_SHARED_LOST (~0ULL) /* another instance has changed the word meanwhile */

/*
 * One attempt of credit_draw; SL_SHARED_LOST: none of it has happened. A function of its own: the verifier follows it once.
 */
SL_GLOBAL u64 credit_try(u64 *bucket SL_NONNULL, u64 now, u64 ahead, u64 cost, u64 burst)
{
	u64 room = burst > cost ? burst - cost : 0, seen, from;

	if (!bucket)
		return SL_SHARED_LOST;
	seen = shared_read(bucket);
	from = seen > now + room ? seen - room : now;
	if (from > now + ahead)
		return from;
	return shared_swap(bucket, seen, sl_max(seen, now) + cost) ? from : SL_SHARED_LOST;
}

/*
 * Draws this cost from a bucket if it can be spent within a time ahead, all in 1/64 ns. Says from when it can be spent; if that is later, nothing is
 * drawn.
 */
SL_FN u64 credit_draw(u64 *bucket, u64 now, u64 ahead, u64 cost, u64 burst)
{
	u64 from;
	u32 i;

	for (i = 0; i < SL_SHARED_TRIES; i++) {
		from = credit_try(bucket, now, ahead, cost, burst);
		if (from != SL_SHARED_LOST)
			return from;
	}
	return now + ahead + cost;
}

/* Charges this cost to a bucket, in 1/64 ns, whatever it has. */
SL_FN void credit_charge(u64 *bucket, u64 now, u64 cost)
{
	const u64 any = 1ULL << 62;

	if (credit_draw(bucket, now, any, cost, any) > now + any)
		shared_add(bucket, cost);
}

/* Puts back what was drawn of this rate and not spent. */
SL_FN void credit_give_back(u64 *bucket, const struct sl_shared_rate *r, u32 bytes)
{
	shared_add(bucket, -credit_worth(bytes, r->cost));
}

/*
 * Draws what an instance lacks that has so many bytes, none or fewer: debt first, then up to a batch. Says from when they can be spent, in 1/64 ns; if
 * that is later than the time ahead, the instance has what it had.
 */
SL_FN u64 credit_fill(u64 *bucket, const struct sl_shared_rate *r, s32 *bytes, u64 now, u64 ahead)
{
	s32 most = (s32)(r->batch_bytes - r->frame_bytes + 1);
	u64 from = credit_draw(bucket, now, ahead, credit_cost((u32)(most - *bytes), r->cost), r->burst);

	if (from <= now + ahead)
		*bytes = most;
	return from;
}

/*
 * How long after a bucket opens an instance is to come that last left it full at this time, of so many instances: half a batch's time, less the
 * more others have drawn since.
 */
SL_FN u64 credit_turn_ns(const struct sl_shared_rate *r, u64 bucket, u64 full, u32 instances)
{
	u64 since = bucket > full ? bucket - full : 0, most = r->batch * sl_max(instances, 1);

	if (since >= most)
		return 0;
	return (r->batch / 2 - since / (2 * sl_max(instances, 1))) >> 6;
}

/* The credit of the link that an instance has left goes back into the bucket. */
SL_FN void credit_return(u64 *bucket, struct sl_link_credit *c, const struct sl_shared_rate *r)
{
	if (c->bytes <= 0)
		return;
	credit_give_back(bucket, r, (u32)c->bytes);
	c->bytes = 0;
	c->opens_ns = 0;
}

/* Whether an instance that has nothing to send is to give back its credit now, since others lack it; it notes that it does. */
SL_FN int credit_rests(struct sl_link_credit *c, u64 now_ns)
{
	if (c->bytes <= 0 || !c->scarce || sl_since(now_ns, c->gave_back_ns) < SL_SHARED_REST_NS)
		return 0;
	c->gave_back_ns = now_ns;
	return 1;
}

/* Draws credit of the link for one of so many instances, which has none: 0, or until when the instance waits. */
SL_GLOBAL u64 credit_draw_for(u64 *bucket SL_NONNULL, struct sl_link_credit *c SL_NONNULL,
			      const struct sl_shared_rate *r SL_NONNULL, u32 instances, u64 now_ns)
{
	u64 now = credit_time(now_ns), ahead = 0, seen, from;

	if (credit_is_fast(r))
		ahead = credit_time(SL_SHARED_AHEAD_NS);
	seen = shared_read(bucket);
	from = credit_fill(bucket, r, &c->bytes, now, ahead);
	if (from > now + ahead) {
		c->opens_ns = credit_ns(from - ahead) + credit_turn_ns(r, seen, c->full, instances);
		c->opens_ns = sl_max(sl_min(c->opens_ns, now_ns + credit_horizon_ns(r) / 2), now_ns + 1);
		return c->opens_ns;
	}
	c->full = from > now ? from + r->burst : sl_max(seen, now) + r->batch;
	c->opens_ns = from > now ? credit_ns(from) : 0;
	return c->opens_ns;
}
