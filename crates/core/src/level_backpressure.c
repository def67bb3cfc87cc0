/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Backpressure by level, as a table of functions that Rust can call: struct LevelCore of level_backpressure.rs. */
#include "level_backpressure.h"

struct sl_core_table;
extern const struct sl_core_table sl_core;

static void core_level_configure(struct sl_level_backpressure *b, const struct sl_level_backpressure_conf *conf)
{
	level_backpressure_configure(b, conf);
}

static void core_level_follow(struct sl_level_backpressure *b, const struct sl_sched *s)
{
	level_backpressure_follow(b, s);
}

static void core_level_begin(struct sl_level_backpressure *b)
{
	level_backpressure_begin(b);
}

static void core_level_dequeue(struct sl_level_backpressure *b, struct sl_sched *s, u64 now_ns, struct sl_level_verdict *verdict)
{
	*verdict = level_backpressure_dequeue(b, s, now_ns);
}

static u32 core_level_run(const struct sl_level_backpressure *b, u32 list, u32 from, u32 *n)
{
	return port_list_run(&b->lists, list, from, n);
}

static u32 core_level_taken(struct sl_level_backpressure *b, u32 list, u32 n)
{
	return port_list_taken(&b->lists, list, n);
}

const struct {
	u32 state_bytes;
	u32 conf_bytes;
	/* The flat scheduler of the same build. */
	const struct sl_core_table *core;
	void (*configure)(struct sl_level_backpressure *b, const struct sl_level_backpressure_conf *conf);
	void (*follow)(struct sl_level_backpressure *b, const struct sl_sched *s);
	void (*begin)(struct sl_level_backpressure *b);
	void (*dequeue)(struct sl_level_backpressure *b, struct sl_sched *s, u64 now_ns, struct sl_level_verdict *verdict);
	u32 (*run)(const struct sl_level_backpressure *b, u32 list, u32 from, u32 *n);
	u32 (*taken)(struct sl_level_backpressure *b, u32 list, u32 n);
} sl_level_core = {
	.state_bytes = sizeof(struct sl_level_backpressure),
	.conf_bytes = sizeof(struct sl_level_backpressure_conf),
	.core = &sl_core,
	.configure = core_level_configure,
	.follow = core_level_follow,
	.begin = core_level_begin,
	.dequeue = core_level_dequeue,
	.run = core_level_run,
	.taken = core_level_taken,
};
