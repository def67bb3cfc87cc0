/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Calls the operations of the discipline that runs. A discipline is one header, which ends with the table of its operations
 * (discipline.h) and is included here, and one line of abi/disciplines.h. To order packets by a rank, write
 * only a rank function (ranks.h).
 */
#pragma once
#include "deficit_round_robin.h"
#include "drops.h"
#include "eevdf.h"
#include "elastic_round_robin.h"
#include "pifo.h"
#include "round_robin.h"
#include "strict_priority.h"
#include "weighted_fair_queuing.h"

/* The number of the discipline that s runs. A constant here leaves the others out: one discipline, compiled in. */
#ifndef SL_KIND_OF
#define SL_KIND_OF(s) ((s)->kind)
#endif

SL_FN void sl_join(struct sl_sched *s, struct sl_class *k, u32 c, u64 now_ns)
{
	s->ready |= SL_BIT(c);
	switch (SL_KIND_OF(s)) {
#define X(upper, lower, ...)                         \
	case SL_##upper:                             \
		if (lower.join)                      \
			lower.join(s, k, c, now_ns); \
		break;
		SL_DISCIPLINES(X)
#undef X
	}
}

SL_FN void sl_leave(struct sl_sched *s, struct sl_class *k, u32 c)
{
	s->ready &= ~SL_BIT(c);
	switch (SL_KIND_OF(s)) {
#define X(upper, lower, ...)                  \
	case SL_##upper:                      \
		if (lower.leave)              \
			lower.leave(s, k, c); \
		break;
		SL_DISCIPLINES(X)
#undef X
	}
}

SL_FN void sl_stay(struct sl_sched *s, struct sl_class *k, u32 c)
{
	switch (SL_KIND_OF(s)) {
#define X(upper, lower, ...)                 \
	case SL_##upper:                     \
		if (lower.stay)              \
			lower.stay(s, k, c); \
		break;
		SL_DISCIPLINES(X)
#undef X
	}
}

SL_FN u32 sl_pick(struct sl_sched *s)
{
	switch (SL_KIND_OF(s)) {
#define X(upper, lower, ...) \
	case SL_##upper:     \
		return lower.pick(s);
		SL_DISCIPLINES(X)
#undef X
	}
	return sl_lowest(s->ready);
}

SL_FN void sl_charge(struct sl_sched *s, struct sl_class *k, u32 bytes)
{
	switch (SL_KIND_OF(s)) {
#define X(upper, lower, ...)                       \
	case SL_##upper:                           \
		if (lower.charge)                  \
			lower.charge(s, k, bytes); \
		break;
		SL_DISCIPLINES(X)
#undef X
	}
}

/* Whether a discipline lets a lone packet pass. */
SL_FN int sl_has_pass(u32 kind)
{
	switch (kind) {
#define X(upper, lower, ...) \
	case SL_##upper:     \
		return lower.pass != 0;
		SL_DISCIPLINES(X)
#undef X
	}
	return 0;
}

SL_FN void sl_pass(struct sl_sched *s, struct sl_class *k, u32 c, u32 bytes, u64 arrived_ns)
{
	switch (SL_KIND_OF(s)) {
#define X(upper, lower, ...)                                    \
	case SL_##upper:                                        \
		if (lower.pass)                                 \
			lower.pass(s, k, c, bytes, arrived_ns); \
		break;
		SL_DISCIPLINES(X)
#undef X
	}
}

/* Whether a discipline keeps the packets itself, in an order of its own. Its packets have no flow queues, its classes no guarantee. */
SL_FN int sl_ranks_packets(u32 kind)
{
	switch (kind) {
#define X(upper, lower, ...) \
	case SL_##upper:     \
		return lower.push != 0;
		SL_DISCIPLINES(X)
#undef X
	}
	return 0;
}

SL_FN void sl_push(struct sl_sched *s, struct sl_class *k, u32 slot)
{
	switch (SL_KIND_OF(s)) {
#define X(upper, lower, ...)                    \
	case SL_##upper:                        \
		if (lower.push) {               \
			lower.push(s, k, slot); \
			return;                 \
		}                               \
		break;
		SL_DISCIPLINES(X)
#undef X
	}
	queue_push(s, &k->queue, slot, !k->backlog_pkts);
}

SL_FN u32 sl_pop(struct sl_sched *s, struct sl_class *k)
{
	switch (SL_KIND_OF(s)) {
#define X(upper, lower, ...)                    \
	case SL_##upper:                        \
		if (lower.pop)                  \
			return lower.pop(s, k); \
		break;
		SL_DISCIPLINES(X)
#undef X
	}
	return queue_pop(s, &k->queue);
}

/* Every packet returns to the FIFO of its class. */
SL_FN void sl_dissolve(struct sl_sched *s)
{
	switch (SL_KIND_OF(s)) {
#define X(upper, lower, ...)               \
	case SL_##upper:                   \
		if (lower.dissolve)        \
			lower.dissolve(s); \
		break;
		SL_DISCIPLINES(X)
#undef X
	}
}

/* The discipline takes the packets of the FIFOs, if it ranks packets. */
SL_FN void sl_form(struct sl_sched *s)
{
	switch (SL_KIND_OF(s)) {
#define X(upper, lower, ...)           \
	case SL_##upper:               \
		if (lower.form)        \
			lower.form(s); \
		break;
		SL_DISCIPLINES(X)
#undef X
	}
}

/* A packet makes room for another: the second of class c, which holds most, or one that the discipline chooses. Which enum sl_room. */
SL_FN u32 sl_give(struct sl_sched *s, u32 c)
{
	switch (SL_KIND_OF(s)) {
#define X(upper, lower, ...)                     \
	case SL_##upper:                         \
		if (lower.give)                  \
			return lower.give(s, c); \
		break;
		SL_DISCIPLINES(X)
#undef X
	}
	return c < SL_CLASSES ? fifo_give(s, c) : SL_ROOM_NONE;
}
