/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The scheduler of pipes, as a table of functions that Rust can call: struct PipesCore of pipes.rs. */
#include "../abi/types.h"

static _Thread_local u64 pipe_steps;

#ifdef SL_PIPE_COUNTS
#define SL_PIPE_STEP() (pipe_steps++)
#else
#define SL_PIPE_ALL_WAYS
#endif
#include "pipe_change.h"

static void core_set_up(struct sl_pipes *t, const struct sl_pipes_conf *conf, u64 now_ns)
{
	pipes_set_up(t, conf, now_ns);
}

static u32 core_set_subport(struct sl_pipes *t, u32 subport, const struct sl_subport_conf *conf, u64 now_ns)
{
	return pipes_set_subport(t, subport, conf, now_ns);
}

static u32 core_set_profile(struct sl_pipes *t, u32 number, const struct sl_pipe_profile *profile)
{
	return pipes_set_profile(t, number, profile);
}

static u32 core_configure(struct sl_pipes *t, u32 pipe, const struct sl_pipe_conf *conf, u64 now_ns)
{
	return pipes_configure(t, pipe, conf, now_ns);
}

static u32 core_remove(struct sl_pipes *t, u32 pipe)
{
	return pipes_remove(t, pipe);
}

static u64 core_enqueue(struct sl_pipes *t, struct sl_pipe_packet *packet, u32 n, u64 now_ns)
{
	return pipes_enqueue(t, packet, n, now_ns);
}

static u32 core_dequeue(struct sl_pipes *t, struct sl_pipe_packet *out, u32 n, u32 classes, struct sl_pipe_allowance *allowance,
			u64 now_ns)
{
	return pipes_dequeue(t, out, n, classes, allowance, now_ns);
}

static u32 core_drop(struct sl_pipes *t, u32 pipe)
{
	return pipes_drop(t, pipe);
}

static u32 core_reap(struct sl_pipes *t)
{
	return pipes_reap(t);
}

static u64 core_wake_ns(struct sl_pipes *t, u32 classes, u64 now_ns)
{
	return pipes_wake_ns(t, classes, now_ns);
}

/* Those of 64 elements that have a bit in common with queues: the way that is compiled in, and the plain one. */
static u64 core_in_common(const u16 *element, u32 queues)
{
	return pipes_in_common(element, queues);
}

static u64 core_in_common_plainly(const u16 *element, u32 queues)
{
	return pipes_in_common_plainly(element, queues);
}

/* The elements that a way of pipe_vectors.h finds, by its name. 0: this build lacks the way, or this processor cannot run it. */
static u32 core_in_common_by(const char *way, const u16 *element, u32 queues, u64 *found)
{
#ifdef SL_PIPE_AVX512
	if (!__builtin_strcmp(way, "AVX-512") && __builtin_cpu_supports("avx512bw")) {
		*found = pipes_in_common_avx512(element, queues);
		return 1;
	}
#endif
#ifdef SL_PIPE_AVX2
	if (!__builtin_strcmp(way, "AVX2") && __builtin_cpu_supports("avx2")) {
		*found = pipes_in_common_avx2(element, queues);
		return 1;
	}
#endif
#ifdef SL_PIPE_SSE2
	if (!__builtin_strcmp(way, "SSE2")) {
		*found = pipes_in_common_sse2(element, queues);
		return 1;
	}
#endif
#ifdef SL_PIPE_NEON
	if (!__builtin_strcmp(way, "NEON")) {
		*found = pipes_in_common_neon(element, queues);
		return 1;
	}
#endif
	(void)way;
	(void)element;
	(void)queues;
	(void)found;
	return 0;
}

/* Steps of calls of this thread, if it was compiled to count them. */
static u64 core_steps(void)
{
	return pipe_steps;
}

const struct sl_pipes_table {
	u32 state_bytes;
	u32 profile_bytes;
	void (*set_up)(struct sl_pipes *t, const struct sl_pipes_conf *conf, u64 now_ns);
	u32 (*set_subport)(struct sl_pipes *t, u32 subport, const struct sl_subport_conf *conf, u64 now_ns);
	u32 (*set_profile)(struct sl_pipes *t, u32 number, const struct sl_pipe_profile *profile);
	u32 (*configure)(struct sl_pipes *t, u32 pipe, const struct sl_pipe_conf *conf, u64 now_ns);
	u32 (*remove)(struct sl_pipes *t, u32 pipe);
	u64 (*enqueue)(struct sl_pipes *t, struct sl_pipe_packet *packet, u32 n, u64 now_ns);
	u32 (*dequeue)(struct sl_pipes *t, struct sl_pipe_packet *out, u32 n, u32 classes, struct sl_pipe_allowance *allowance,
		       u64 now_ns);
	u32 (*drop)(struct sl_pipes *t, u32 pipe);
	u32 (*reap)(struct sl_pipes *t);
	u64 (*wake_ns)(struct sl_pipes *t, u32 classes, u64 now_ns);
	u64 (*in_common)(const u16 *element, u32 queues);
	u64 (*in_common_plainly)(const u16 *element, u32 queues);
	u32 (*in_common_by)(const char *way, const u16 *element, u32 queues, u64 *found);
	u64 (*steps)(void);
} sl_pipes_core = {
	.state_bytes = sizeof(struct sl_pipes),
	.profile_bytes = sizeof(struct sl_pipe_profile),
	.set_up = core_set_up,
	.set_subport = core_set_subport,
	.set_profile = core_set_profile,
	.configure = core_configure,
	.remove = core_remove,
	.enqueue = core_enqueue,
	.dequeue = core_dequeue,
	.drop = core_drop,
	.reap = core_reap,
	.wake_ns = core_wake_ns,
	.in_common = core_in_common,
	.in_common_plainly = core_in_common_plainly,
	.in_common_by = core_in_common_by,
	.steps = core_steps,
};
