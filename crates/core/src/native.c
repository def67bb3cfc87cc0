/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The core's inline functions, as a table of functions that Rust can call: struct Core of lib.rs. */
#include "core.h"
#include "early.h"

static s32 core_enqueue(struct sl_sched *s, const struct sl_packet *packet, u64 now_ns)
{
	return sl_enqueue(s, packet, now_ns);
}

static u32 core_reap(struct sl_sched *s)
{
	return sl_reap(s);
}

static void core_dequeue(struct sl_sched *s, u64 now_ns, struct sl_verdict *verdict)
{
	*verdict = sl_dequeue(s, now_ns);
}

static void core_configure(struct sl_sched *s, const struct sl_sched_conf *conf, u64 now_ns)
{
	sl_configure(s, conf, now_ns);
}

static void core_clear(struct sl_sched *s)
{
	sl_clear(s);
}

static void core_wipe(struct sl_sched *s)
{
	sl_wipe(s);
}

static u32 core_wire_bytes(const struct sl_sched *s, u32 len_bytes, u32 segments)
{
	return wire_bytes(s, len_bytes, segments);
}

static u32 core_drops_early(const struct sl_sched *s, struct sl_underway *underway, const struct sl_packet *packet, u64 now_ns)
{
	return (u32)early_drops(s, underway, packet, now_ns);
}

static u32 core_sojourn_bucket(u64 ns)
{
	return sojourn_bucket(ns);
}

const struct sl_core_table {
	u32 state_bytes;
	u32 conf_bytes;
	s32 (*enqueue)(struct sl_sched *s, const struct sl_packet *packet, u64 now_ns);
	void (*dequeue)(struct sl_sched *s, u64 now_ns, struct sl_verdict *verdict);
	u32 (*reap)(struct sl_sched *s);
	void (*configure)(struct sl_sched *s, const struct sl_sched_conf *conf, u64 now_ns);
	void (*clear)(struct sl_sched *s);
	void (*wipe)(struct sl_sched *s);
	u32 (*wire_bytes)(const struct sl_sched *s, u32 len_bytes, u32 segments);
	u32 (*sojourn_bucket)(u64 ns);
	u32 (*drops_early)(const struct sl_sched *s, struct sl_underway *underway, const struct sl_packet *packet, u64 now_ns);
} sl_core = {
	.state_bytes = sizeof(struct sl_sched),
	.conf_bytes = sizeof(struct sl_sched_conf),
	.enqueue = core_enqueue,
	.dequeue = core_dequeue,
	.reap = core_reap,
	.configure = core_configure,
	.clear = core_clear,
	.wipe = core_wipe,
	.wire_bytes = core_wire_bytes,
	.sojourn_bucket = core_sojourn_bucket,
	.drops_early = core_drops_early,
};
