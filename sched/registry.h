/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The disciplines that are built in. A discipline is one header that defines, under its prefix,
 *
 *	join(s, k, c, now_ns)	class c, which is *k, may be picked from now on; its bit in s->ready is set
 *	leave(s, k, c)		it may not (no packets, or no tokens); its bit is cleared
 *	pick(s) -> c		a class of s->ready, which is not empty
 *	charge(s, k, bytes)	class k has sent so many
 *	stay(s, k, c)		after that, it may be picked again
 *
 * and one line here. Its state belongs into struct sl_class and struct sl_sched (abi/sched.h), its number into
 * enum sl_kind there. Who would rather give each packet a rank writes a rank function instead: ranks.h.
 */
#pragma once
#include "deficit_round_robin.h"
#include "eevdf.h"
#include "pifo.h"
#include "round_robin.h"
#include "strict_priority.h"
#include "weighted_fair_queuing.h"

/* Which discipline s runs. A constant here leaves the others out: one discipline, compiled in. */
#ifndef SL_KIND_OF
#define SL_KIND_OF(s) ((s)->kind)
#endif

#define SL_DISCIPLINES(X)                \
	X(SL_STRICT_PRIORITY, sp)        \
	X(SL_DEFICIT_ROUND_ROBIN, drr)   \
	X(SL_ROUND_ROBIN, rr)            \
	X(SL_WEIGHTED_FAIR_QUEUING, wfq) \
	X(SL_EEVDF, eevdf)               \
	X(SL_PIFO, pifo)

SL_FN void sl_join(struct sl_sched *s, struct sl_class *k, u32 c, u64 now_ns)
{
	s->ready |= SL_BIT(c);
	switch (SL_KIND_OF(s)) {
#define X(kind, prefix)                         \
	case kind:                              \
		prefix##_join(s, k, c, now_ns); \
		break;
		SL_DISCIPLINES(X)
#undef X
	}
}

SL_FN void sl_leave(struct sl_sched *s, struct sl_class *k, u32 c)
{
	s->ready &= ~SL_BIT(c);
	switch (SL_KIND_OF(s)) {
#define X(kind, prefix)                  \
	case kind:                       \
		prefix##_leave(s, k, c); \
		break;
		SL_DISCIPLINES(X)
#undef X
	}
}

SL_FN void sl_stay(struct sl_sched *s, struct sl_class *k, u32 c)
{
	switch (SL_KIND_OF(s)) {
#define X(kind, prefix)                 \
	case kind:                      \
		prefix##_stay(s, k, c); \
		break;
		SL_DISCIPLINES(X)
#undef X
	}
}

SL_FN u32 sl_pick(struct sl_sched *s)
{
	switch (SL_KIND_OF(s)) {
#define X(kind, prefix) \
	case kind:      \
		return prefix##_pick(s);
		SL_DISCIPLINES(X)
#undef X
	}
	return sl_lowest(s->ready);
}

SL_FN void sl_charge(struct sl_sched *s, struct sl_class *k, u32 bytes)
{
	switch (SL_KIND_OF(s)) {
#define X(kind, prefix)                       \
	case kind:                            \
		prefix##_charge(s, k, bytes); \
		break;
		SL_DISCIPLINES(X)
#undef X
	}
}
