/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Priority-aware backpressure, as a table of functions that Rust can call: struct BackpressureCore of backpressure.rs. */
#include "../abi/types.h"
#include "backpressure.h"

struct sl_pipes_table;
extern const struct sl_pipes_table sl_pipes_core;

static void core_backpressure_configure(struct sl_backpressure *b, const struct sl_backpressure_conf *conf)
{
	backpressure_configure(b, conf);
}

static u32 core_backpressure_held(const struct sl_backpressure *b)
{
	return backpressure_held(b);
}

static const struct sl_pipe_packet *core_backpressure_run(const struct sl_backpressure *b, u32 class, u32 from, u32 *n)
{
	return backpressure_run(b, class, from, n);
}

static void core_backpressure_taken(struct sl_backpressure *b, struct sl_pipes *t, u32 class, u32 n)
{
	backpressure_taken(b, t, class, n);
}

static u32 core_backpressure_dequeue(struct sl_backpressure *b, struct sl_pipes *t, u32 n, u32 classes, u64 now_ns)
{
	return backpressure_dequeue(b, t, n, classes, now_ns);
}

static u64 core_backpressure_wake_ns(const struct sl_backpressure *b, struct sl_pipes *t, u32 classes, u64 now_ns)
{
	return backpressure_wake_ns(b, t, classes, now_ns);
}

const struct {
	u32 state_bytes;
	u32 conf_bytes;
	/* The scheduler of pipes of the same build. */
	const struct sl_pipes_table *pipes;
	void (*configure)(struct sl_backpressure *b, const struct sl_backpressure_conf *conf);
	u32 (*held)(const struct sl_backpressure *b);
	const struct sl_pipe_packet *(*run)(const struct sl_backpressure *b, u32 class, u32 from, u32 *n);
	void (*taken)(struct sl_backpressure *b, struct sl_pipes *t, u32 class, u32 n);
	u32 (*dequeue)(struct sl_backpressure *b, struct sl_pipes *t, u32 n, u32 classes, u64 now_ns);
	u64 (*wake_ns)(const struct sl_backpressure *b, struct sl_pipes *t, u32 classes, u64 now_ns);
} sl_backpressure_core = {
	.state_bytes = sizeof(struct sl_backpressure),
	.conf_bytes = sizeof(struct sl_backpressure_conf),
	.pipes = &sl_pipes_core,
	.configure = core_backpressure_configure,
	.held = core_backpressure_held,
	.run = core_backpressure_run,
	.taken = core_backpressure_taken,
	.dequeue = core_backpressure_dequeue,
	.wake_ns = core_backpressure_wake_ns,
};
