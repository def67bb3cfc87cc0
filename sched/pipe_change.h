/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Configuration of pipes.h. Everything but the pipes of a subport changes while packets are queued: they stay, and debts stay owed in bytes.
 */
#pragma once
#include "pipes.h"

/* Whether a change was made. */
enum sl_pipe_answer {
	SL_PIPE_DONE,
	SL_PIPE_NO_PIPE, /* there is no such pipe, or it is not configured */
	SL_PIPE_NO_SUBPORT, /* there is no such subport, the pipe is in none, or another one has the pipes */
	SL_PIPE_NO_PROFILE, /* there is no such profile */
	SL_PIPE_BUSY /* the pipe has packets, or the subport has pipes */
};

/* The port is so from now on. */
SL_FN void pipes_set_up(struct sl_pipes *t, const struct sl_pipes_conf *conf, u64 now_ns)
{
	t->slots = sl_min(conf->slots, (u32)SL_PIPE_SLOTS);
	t->overhead_bytes = conf->overhead_bytes;
	t->mpu_bytes = sl_min(conf->mpu_bytes, 1u << SL_PIPE_LEN_BITS);
	bucket_configure(&t->bucket, conf->cost, conf->burst_ns, now_ns);
}

/* Whether one of the pipes from number from up to number end is configured. */
SL_FN int pipes_are_configured(const struct sl_pipes *t, u32 from, u32 end)
{
	u32 p;

	for (p = from; p < end; p++) {
		if (*sl_at(t->profile_of, p))
			return 1;
	}
	return 0;
}

/* Subport n has other pipes: none of the present ones is configured, and the others belong to no subport. */
SL_FN void subport_move(struct sl_pipes *t, struct sl_subport *sub, u32 n, u32 first, u32 end)
{
	u32 word;

	for (word = sub->first_pipe / 64; word < sub->end_pipe / 64; word++) {
		*sl_at(t->subport_of, word) = 0;
		*sl_at(t->engaged, word) = 0;
		*sl_at(t->active, word) = 0;
		*sl_at(t->owed, word) = 0;
	}
	for (word = first / 64; word < end / 64; word++)
		*sl_at(t->subport_of, word) = (u8)(n + 1);
	sub->first_pipe = first;
	sub->end_pipe = end;
	sub->owed = 0;
	sl_for (word, SL_PIPE_PLACES)
		*sl_at(sub->cursor, word) = first;
	sl_for (word, SL_PIPE_GROUPS)
		*sl_at(sub->group, word) = (struct sl_pipe_group){ 0 };
}

/* Subport n is so from now on. enum sl_pipe_answer. */
SL_FN u32 pipes_set_subport(struct sl_pipes *t, u32 n, const struct sl_subport_conf *conf, u64 now_ns)
{
	u32 first = conf->first_pipe, end = first + conf->pipes, word, class;
	struct sl_subport *sub = sl_at(t->subport, n);

	if (n >= SL_PIPE_SUBPORTS || (first | end) % 64 || first > end || end > SL_PIPES)
		return SL_PIPE_NO_SUBPORT;
	for (word = first / 64; word < end / 64; word++) {
		if (*sl_at(t->subport_of, word) && *sl_at(t->subport_of, word) != n + 1)
			return SL_PIPE_NO_SUBPORT;
	}
	if (first != sub->first_pipe || end != sub->end_pipe) {
		if (pipes_are_configured(t, sub->first_pipe, sub->end_pipe))
			return SL_PIPE_BUSY;
		subport_move(t, sub, n, first, end);
	}
	bucket_configure(&sub->bucket, conf->cost, conf->burst_ns, now_ns);
	sub->limited = 0;
	sl_for (class, SL_PIPE_CLASSES) {
		bucket_configure(sl_at(sub->class_bucket, class), conf->class_cost[class], conf->class_burst_ns, now_ns);
		if (conf->class_cost[class])
			sub->limited |= (u16)class_queues(class);
		else
			*sl_at(sub->class_left, class) = 0;
	}
	sub->closed &= sub->limited;
	return SL_PIPE_DONE;
}

/* Pipes with profile n are so from now on; those that wait for a limit of the old one see it when their wheel is round, in 67 ms at most. */
SL_FN u32 pipes_set_profile(struct sl_pipes *t, u32 n, const struct sl_pipe_profile *profile)
{
	struct sl_pipe_profile *own = sl_at(t->profile, n);
	u32 i;

	if (!n || n >= SL_PIPE_PROFILES)
		return SL_PIPE_NO_PROFILE;
	*own = *profile;
	own->period_bits = sl_min(sl_max(own->period_bits, SL_PIPE_PERIOD_LEAST), SL_PIPE_PERIOD_MOST);
	own->limited = 0;
	sl_for (i, SL_PIPE_CLASSES) {
		own->credit[i] = sl_min(own->credit[i], SL_PIPE_CREDIT_MAX << SL_PIPE_CREDIT_BITS);
		own->limited |= (u16)((own->credit[i] != 0) << i);
	}
	sl_for (i, SL_PIPE_QUEUES)
		own->limit_pkts[i] = sl_min(own->limit_pkts[i], SL_PIPE_PKTS_MOST);
	return SL_PIPE_DONE;
}

/* Whether pipe p has packets. */
SL_FN int pipe_has_packets(struct sl_pipes *t, u32 p)
{
	return (*sl_at(t->ready, p) | sl_at(t->pipe, p)->shut) != 0;
}

/* Pipe p waits for nothing that depends on its limits any more. */
SL_FN void pipe_stop_waiting(struct sl_pipes *t, u32 p)
{
	if (pipe_waits(sl_at(t->wheel, SL_PIPE_TOKENS), p)) {
		pipe_wheel_remove(sl_at(t->wheel, SL_PIPE_TOKENS), p);
		pipe_release(t, p);
	}
	pipe_wheel_remove(sl_at(t->wheel, SL_PIPE_CREDITS), p);
}

/* Pipe p is so from now on, also if it was configured before. enum sl_pipe_answer. */
SL_FN u32 pipes_configure(struct sl_pipes *t, u32 p, const struct sl_pipe_conf *conf, u64 now_ns)
{
	struct sl_pipe *k = sl_at(t->pipe, p);
	u32 period;

	if (p >= SL_PIPES)
		return SL_PIPE_NO_PIPE;
	if (!*sl_at(t->subport_of, p >> 6))
		return SL_PIPE_NO_SUBPORT;
	if (!conf->profile || conf->profile >= SL_PIPE_PROFILES)
		return SL_PIPE_NO_PROFILE;
	pipe_bucket_configure(k, conf->cost, conf->burst_ticks, now_ns);
	*sl_at(t->profile_of, p) = (u8)conf->profile;
	/* A period of the new limits begins, with what is owed. */
	period = (u32)period_now(p, profile_of_pipe(t, p)->period_bits, now_ns);
	k->period = period - 1;
	credits_renew(k, profile_of_pipe(t, p), period);
	pipe_stop_waiting(t, p);
	if (k->shut) {
		pipe_ready(t, p, k->shut);
		k->shut = 0;
	}
	return SL_PIPE_DONE;
}

/* Pipe p, which has no packets, is configured no longer. enum sl_pipe_answer. */
SL_FN u32 pipes_remove(struct sl_pipes *t, u32 p)
{
	if (p >= SL_PIPES || !*sl_at(t->profile_of, p))
		return SL_PIPE_NO_PIPE;
	if (pipe_has_packets(t, p))
		return SL_PIPE_BUSY;
	pipe_stop_waiting(t, p);
	*sl_at(t->owed, p >> 6) &= ~SL_BIT(p);
	*sl_at(t->profile_of, p) = 0;
	return SL_PIPE_DONE;
}

/* Drops a packet of pipe p. Its slot, which is free again; SL_PIPE_NO_SLOT: there is none. */
SL_FN u32 pipes_drop(struct sl_pipes *t, u32 p)
{
	struct sl_pipe *k = sl_at(t->pipe, p);
	struct sl_pipe_queue *q;
	u32 number, bit, slot;

	if (p >= SL_PIPES || !pipe_has_packets(t, p))
		return SL_PIPE_NO_SLOT;
	bit = sl_lowest(*sl_at(t->ready, p) | k->shut);
	number = p * SL_PIPE_QUEUES + bit;
	q = sl_at(t->queue, number);
	slot = pipe_queue_take(t, q);
	pipe_count_drop(t, number, SL_DROP_RESET);
	pipe_slot_give(t, slot, sl_at(t->slot, slot));
	subport_shrinks(t, subport_of_pipe(t, p), 1);
	if (!queue_pkts(q->chain)) {
		*sl_at(t->ready, p) &= (u16) ~(1u << bit);
		k->shut &= (u16) ~(1u << bit);
		if (!*sl_at(t->ready, p))
			*sl_at(t->active, p >> 6) &= ~SL_BIT(p);
	}
	return slot;
}
