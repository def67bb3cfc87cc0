/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Instances that share a link, as a table of functions that Rust can call: struct SharedCore of shared_credit.rs. */
#include "shared_dequeue.h"

static void core_rate(struct sl_shared_rate *rate, u64 cost, u64 burst_ns, u32 frame_bytes)
{
	credit_rate(rate, cost, burst_ns, frame_bytes);
}

static u64 core_fill(u64 *bucket, const struct sl_shared_rate *rate, s32 *bytes, u64 now, u64 ahead)
{
	return credit_fill(bucket, rate, bytes, now, ahead);
}

static void core_give_back(u64 *bucket, const struct sl_shared_rate *rate, u32 bytes)
{
	credit_give_back(bucket, rate, bytes);
}

static void core_join(struct sl_shared_siblings *classes, const struct sl_shared_conf *conf, struct sl_shared_instance *x,
		      u32 class, u64 now_ns)
{
	shares_join(classes, conf, x, class, now_ns);
}

static void core_leave(struct sl_shared_siblings *classes, struct sl_shared_instance *x, u32 class)
{
	shares_leave(classes, x, class);
}

static void core_dequeue(struct sl_sched *s, struct sl_shared_instance *x, struct sl_shared_link *link,
			 const struct sl_shared_conf *conf, u64 now_ns, struct sl_verdict *verdict)
{
	*verdict = shared_dequeue(s, x, link, conf, now_ns);
}

static void core_stop(struct sl_shared_instance *x, struct sl_shared_link *link, const struct sl_shared_conf *conf, u64 now_ns)
{
	shared_stop(x, link, conf, now_ns);
}

static void core_renew(struct sl_shared_instance *x, struct sl_shared_link *link)
{
	shared_renew(x, link);
}

const struct sl_shared_core_table {
	u32 sched_bytes;
	u32 link_bytes;
	u32 instance_bytes;
	u32 conf_bytes;
	void (*rate)(struct sl_shared_rate *rate, u64 cost, u64 burst_ns, u32 frame_bytes);
	u64 (*fill)(u64 *bucket, const struct sl_shared_rate *rate, s32 *bytes, u64 now, u64 ahead);
	void (*give_back)(u64 *bucket, const struct sl_shared_rate *rate, u32 bytes);
	void (*join)(struct sl_shared_siblings *classes, const struct sl_shared_conf *conf, struct sl_shared_instance *x,
		     u32 class, u64 now_ns);
	void (*leave)(struct sl_shared_siblings *classes, struct sl_shared_instance *x, u32 class);
	void (*dequeue)(struct sl_sched *s, struct sl_shared_instance *x, struct sl_shared_link *link,
			const struct sl_shared_conf *conf, u64 now_ns, struct sl_verdict *verdict);
	void (*stop)(struct sl_shared_instance *x, struct sl_shared_link *link, const struct sl_shared_conf *conf, u64 now_ns);
	void (*renew)(struct sl_shared_instance *x, struct sl_shared_link *link);
} sl_shared_core = {
	.sched_bytes = sizeof(struct sl_sched),
	.link_bytes = sizeof(struct sl_shared_link),
	.instance_bytes = sizeof(struct sl_shared_instance),
	.conf_bytes = sizeof(struct sl_shared_conf),
	.rate = core_rate,
	.fill = core_fill,
	.give_back = core_give_back,
	.join = core_join,
	.leave = core_leave,
	.dequeue = core_dequeue,
	.stop = core_stop,
	.renew = core_renew,
};
