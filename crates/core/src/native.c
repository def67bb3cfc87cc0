/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The core's inline functions, as functions that Rust can call. */
#include "core.h"

s32 sl_core_enqueue(struct sl_sched *s, u32 class, u32 len_bytes, u32 segments, u64 now_ns)
{
	struct sl_packet packet = { class, len_bytes, segments };

	return sl_enqueue(s, &packet, now_ns);
}

void sl_core_dequeue(struct sl_sched *s, u64 now_ns, struct sl_verdict *verdict)
{
	*verdict = sl_dequeue(s, now_ns);
}

void sl_core_configure(struct sl_sched *s, const struct sl_sched_conf *conf, u64 now_ns)
{
	sl_configure(s, conf, now_ns);
}

void sl_core_clear(struct sl_sched *s)
{
	sl_clear(s);
}

void sl_core_wipe(struct sl_sched *s)
{
	sl_wipe(s);
}

u32 sl_core_wire_bytes(const struct sl_sched *s, u32 len_bytes, u32 segments)
{
	return wire_bytes(s, len_bytes, segments);
}

u32 sl_core_sojourn_bucket(u64 ns)
{
	return sojourn_bucket(ns);
}
