/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Classes of the flat scheduler (core.h) that something outside of it holds back: a link that other instances share (shared_dequeue.h), or a port
 * that takes no more of them (level_backpressure.h). In the scheduler, such a class waits like one without tokens.
 */
#pragma once
#include "core.h"

/* Classes that could send now as far as the scheduler knows, as bits. */
SL_FN u64 hold_back_ready(struct sl_sched *s)
{
	return sl_unlikely(s->lone) ? SL_BIT(sl_at(s->slot, s->free)->class) : s->ready;
}

/* Class c, which is ready, is held until this time. */
SL_GLOBAL int hold_back(struct sl_sched *s SL_NONNULL, u32 c, u64 until_ns)
{
	sl_leave(s, class_at(s, c), c);
	sl_hold_until(s, c, until_ns);
	return 0;
}

/* Class c is held no more, and not ready yet. */
SL_FN void hold_back_end(struct sl_sched *s, u32 c)
{
	tournament_cut(&s->ceilings, c);
	s->held &= ~SL_BIT(c);
	s->held_until_ns = sl_first_opening(&s->ceilings);
}

/* Class c, which is held and has no ceiling of its own, is ready again. */
SL_GLOBAL int hold_back_let_go(struct sl_sched *s SL_NONNULL, u32 c, u64 now_ns)
{
	hold_back_end(s, c);
	sl_join(s, class_at(s, c), c, now_ns);
	return 0;
}
