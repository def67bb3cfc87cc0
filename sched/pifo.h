/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Push-in first-out (Sivaraman et al., SIGCOMM 2016): a packet's place is decided by its rank when it comes, and the smallest rank
 * leaves first. Which rank: ranks.h.
 *
 * The queue is a ring of SL_PIFO_BUCKETS buckets of 2^rank_shift ranks each, first in first out within a bucket, and two
 * levels of bitmaps find the first that is not empty (Eiffel: Saeed et al., NSDI 2019). So its order is that of an exact
 * priority queue, to 2^rank_shift ranks, as long as the ranks that are queued at one time span less than the ring. A rank
 * before the first moves the window back as far as the last allows; one beyond the window goes to its last bucket.
 *
 * A class with a ceiling waits in its own FIFO. Only its first packet is ranked, when the class has tokens: so
 * departures are shaped, and no class is held up by the packets of another that may not leave yet.
 *
 * Cost: O(1). Invariants: base <= the bucket of every packet <= top, top - base < the ring.
 */
#pragma once
#include "discipline.h"
#include "drops.h"
#include "ranks.h"

/* The first bucket that is not empty; base moves there. The PIFO is not empty. */
SL_FN u32 pifo_first(struct sl_sched *s)
{
	struct sl_pifo_ring *p = &pifo_sched(s)->ring;
	u32 shift = s->rank_shift & 63, from = (u32)(p->base >> shift) & (SL_PIFO_BUCKETS - 1), w = from >> 6, bucket;
	u64 word = *sl_at(p->word, w) & ~0ULL << (from & 63);

	if (!word) { /* not here: the next word that has any, which may be the lower part of this one */
		w = sl_lowest_from(p->summary, w + 1);
		word = *sl_at(p->word, w);
	}
	bucket = w << 6 | sl_lowest(word);
	p->base += (u64)((bucket - from) & (SL_PIFO_BUCKETS - 1)) << shift;
	return bucket;
}

/* The last bucket that is not empty. The PIFO is not empty. */
SL_FN u32 pifo_last(struct sl_sched *s)
{
	struct sl_pifo_ring *p = &pifo_sched(s)->ring;
	u32 from = (u32)(p->top >> (s->rank_shift & 63)) & (SL_PIFO_BUCKETS - 1), w = from >> 6;
	u64 word = *sl_at(p->word, w) & ~0ULL >> (63 - (from & 63));

	if (!word) { /* not here: the word before that has any, which may be the upper part of this one */
		u64 below = p->summary & (SL_BIT(w) - 1);

		w = sl_highest(below ? below : p->summary);
		word = *sl_at(p->word, w);
	}
	return w << 6 | sl_highest(word);
}

/* The bucket of a rank that is not in the window, which moves as far as it can. The PIFO is not empty. */
SL_GLOBAL u64 pifo_reach(struct sl_sched *s SL_NONNULL, u64 at)
{
	struct sl_pifo_ring *p = &pifo_sched(s)->ring;
	u64 reach = rank_most(s);

	if (virtual_before(at, p->base)) {
		if (virtual_before(at, p->top - reach))
			at = p->top - reach;
		p->base = at;
		return at;
	}
	pifo_first(s);
	if (virtual_before(p->base + reach, at))
		at = p->base + reach;
	return at;
}

SL_FN void pifo_push(struct sl_sched *s, u32 slot, u64 rank)
{
	struct sl_pifo_ring *p = &pifo_sched(s)->ring;
	u32 shift = s->rank_shift & 63, bucket;
	u64 at = rank >> shift << shift, *word;

	if (!p->summary)
		p->base = p->top = at;
	else if (sl_unlikely(at - p->base > rank_most(s)))
		at = pifo_reach(s, at);
	if (virtual_before(p->top, at))
		p->top = at;
	bucket = (u32)(at >> shift) & (SL_PIFO_BUCKETS - 1);
	word = sl_at(p->word, bucket >> 6);
	queue_push(s, sl_at(p->bucket, bucket), slot, !(*word >> (bucket & 63) & 1));
	*word |= SL_BIT(bucket);
	p->summary |= SL_BIT(bucket >> 6);
}

/* The first packet of a bucket that is not empty. */
SL_FN u32 pifo_pop(struct sl_sched *s, u32 bucket)
{
	struct sl_pifo_ring *p = &pifo_sched(s)->ring;
	struct sl_queue *q = sl_at(p->bucket, bucket);
	u64 *word = sl_at(p->word, bucket >> 6);
	u32 last = q->tail, slot = queue_pop(s, q);

	if (slot == last) {
		*word &= ~SL_BIT(bucket);
		if (!*word)
			p->summary &= ~SL_BIT(bucket >> 6);
	}
	return slot;
}

/* Whether the class waits in its own FIFO, all but the first packet. */
SL_FN int pifo_aside(const struct sl_class *k)
{
	return k->ceil.cost && !(k->ceiling & SL_CEILING_DROPS);
}

/* The packet of the slot gets its place. A function of its own, since stack is scarce. */
SL_GLOBAL int pifo_rank(struct sl_sched *s SL_NONNULL, u32 slot)
{
	struct sl_slot *q = sl_at(s->slot, slot);
	struct sl_class *k = sl_at(s->classes, q->class);

	pifo_push(s, slot, sl_rank(s, k, q));
	pifo_class(k)->ranked_pkts++;
	return 0;
}

/* The first packet of class k, if it is aside. */
SL_FN void pifo_rank_head(struct sl_sched *s, struct sl_class *k)
{
	if (pifo_aside(k))
		pifo_rank(s, queue_pop(s, &k->queue));
}

/* A packet comes to class k. */
SL_FN void pifo_enqueue(struct sl_sched *s, struct sl_class *k, u32 slot)
{
	if (pifo_aside(k))
		queue_push(s, &k->queue, slot, k->backlog_pkts == pifo_class(k)->ranked_pkts);
	else
		pifo_rank(s, slot);
}

SL_FN void pifo_join(struct sl_sched *s, struct sl_class *k, u32 c, u64 now_ns)
{
	(void)c;
	(void)now_ns;
	pifo_rank_head(s, k);
}

SL_FN void pifo_leave(struct sl_sched *s, struct sl_class *k, u32 c)
{
	(void)s;
	(void)c;
	if (!k->backlog_pkts)
		pifo_class(k)->attained_bytes = 0;
}

SL_FN void pifo_stay(struct sl_sched *s, struct sl_class *k, u32 c)
{
	(void)c;
	pifo_rank_head(s, k);
}

/* The class of the packet that is first. */
SL_FN u32 pifo_pick(struct sl_sched *s)
{
	return sl_at(s->slot, sl_at(pifo_sched(s)->ring.bucket, pifo_first(s))->head)->class;
}

/* The packet that pifo_pick has found, of class k. */
SL_FN u32 pifo_take(struct sl_sched *s, struct sl_class *k)
{
	u32 slot = pifo_pop(s, (u32)(pifo_sched(s)->ring.base >> (s->rank_shift & 63)));

	pifo_class(k)->ranked_pkts--;
	if (s->rank == SL_RANK_START_TIME_FAIR && virtual_before(virtual_sched(s)->time, pifo_sched(s)->ring.base))
		virtual_advance(s, pifo_sched(s)->ring.base);
	return slot;
}

/* Every packet returns to the FIFO of its class, in the order of the ranks. */
SL_GLOBAL int pifo_dissolve(struct sl_sched *s SL_NONNULL)
{
	u64 filled = 0; /* classes whose FIFO has packets */
	u32 n, c, slot;

	sl_for (c, SL_CLASSES) {
		struct sl_class *k = sl_at(s->classes, c);

		if (k->backlog_pkts != pifo_class(k)->ranked_pkts)
			filled |= SL_BIT(c);
		pifo_class(k)->ranked_pkts = 0;
	}
	sl_for (n, SL_SLOTS) {
		struct sl_class *k;

		if (!pifo_sched(s)->ring.summary)
			break;
		slot = pifo_pop(s, pifo_first(s));
		c = sl_at(s->slot, slot)->class;
		k = sl_at(s->classes, c);
		if (pifo_aside(k) && filled & SL_BIT(c)) {
			sl_at(s->slot, slot)->next = k->queue.head;
			k->queue.head = (u16)slot;
		} else {
			queue_push(s, &k->queue, slot, !(filled & SL_BIT(c)));
			filled |= SL_BIT(c);
		}
	}
	return 0;
}

/* Every packet of the FIFOs is ranked, but those of classes that are aside. */
SL_GLOBAL int pifo_form(struct sl_sched *s SL_NONNULL)
{
	u32 n, c, slot;

	sl_for (c, SL_CLASSES) {
		struct sl_class *k = sl_at(s->classes, c);

		if (pifo_aside(k))
			continue;
		sl_for (n, SL_SLOTS) {
			if (n >= k->backlog_pkts)
				break;
			slot = queue_pop(s, &k->queue);
			pifo_rank(s, slot);
		}
	}
	return 0;
}

/* The packet that would leave last drops, unless its class has no other. */
SL_FN u32 pifo_give_last(struct sl_sched *s)
{
	u32 bucket, slot, class;
	struct sl_class *k;

	if (!pifo_sched(s)->ring.summary)
		return SL_ROOM_NONE;
	bucket = pifo_last(s);
	class = sl_at(s->slot, sl_at(pifo_sched(s)->ring.bucket, bucket)->head)->class;
	k = sl_at(s->classes, class);
	if (k->backlog_pkts < 2)
		return SL_ROOM_NONE;
	if (pifo_aside(k)) {
		slot = queue_pop(s, &k->queue);
	} else {
		slot = pifo_pop(s, bucket);
		pifo_class(k)->ranked_pkts--;
	}
	slot_drop(s, k, slot, SL_DROP_OVERFLOW);
	class_shrunk(s, k, class);
	return SL_ROOM_MADE;
}

/* Class c gives where it has two packets in its FIFO, else the packet that would leave last goes. */
SL_FN u32 pifo_give(struct sl_sched *s, u32 c)
{
	struct sl_class *k = sl_at(s->classes, c);

	if (c >= SL_CLASSES || !pifo_aside(k) || k->backlog_pkts - pifo_class(k)->ranked_pkts < 2)
		return pifo_give_last(s);
	return fifo_give(s, c);
}

/* A lone packet goes first whatever its rank; virtual time goes on to the bucket in which it would have stood. */
SL_FN void pifo_pass(struct sl_sched *s, struct sl_class *k, u32 c, u32 bytes, u64 arrived_ns)
{
	u32 shift = s->rank_shift & 63;
	u64 base;

	(void)c;
	if (s->rank != SL_RANK_START_TIME_FAIR)
		return;
	base = rank_by_start(s, k, bytes, arrived_ns) >> shift << shift;
	if (virtual_before(virtual_sched(s)->time, base))
		virtual_advance(s, base);
}

static const struct sl_discipline pifo = {
	.join = pifo_join,
	.leave = pifo_leave,
	.pick = pifo_pick,
	.pass = pifo_pass,
	.stay = pifo_stay,
	.push = pifo_enqueue,
	.pop = pifo_take,
	.dissolve = pifo_dissolve,
	.form = pifo_form,
	.give = pifo_give,
};
