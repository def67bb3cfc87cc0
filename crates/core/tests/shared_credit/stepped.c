/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Instances that share a link, whose calls stop before every access to a shared word. */
static void stepped_yield(void);
#define SL_SHARED_STEP() stepped_yield()
#include "../../src/shared_credit.c"

enum stepped_kind { STEPPED_FILL, STEPPED_GIVE_BACK, STEPPED_JOIN, STEPPED_LEAVE, STEPPED_DEQUEUE, STEPPED_STOP, STEPPED_RENEW };

/* A call: what it is about, and its answer. */
struct stepped_call {
	u32 kind; /* enum stepped_kind */
	u32 class;
	u64 now; /* FILL: in 1/64 ns; else ns */
	u64 ahead;
	u64 answer;
	u32 bytes;
	u32 pad;
	u64 *bucket;
	const struct sl_shared_rate *rate;
	s32 *credit;
	struct sl_sched *sched;
	struct sl_shared_instance *own;
	struct sl_shared_link *link;
	const struct sl_shared_conf *conf;
	struct sl_verdict verdict;
};

static void stepped_make(struct stepped_call *c)
{
	switch (c->kind) {
	case STEPPED_FILL:
		c->answer = credit_fill(c->bucket, c->rate, c->credit, c->now, c->ahead);
		break;
	case STEPPED_GIVE_BACK:
		credit_give_back(c->bucket, c->rate, c->bytes);
		break;
	case STEPPED_JOIN:
		shares_join(&c->link->classes, c->conf, c->own, c->class, c->now);
		break;
	case STEPPED_LEAVE:
		shares_leave(&c->link->classes, c->own, c->class);
		break;
	case STEPPED_STOP:
		shared_stop(c->own, c->link, c->conf, c->now);
		break;
	case STEPPED_RENEW:
		shared_renew(c->own, c->link);
		break;
	default:
		c->verdict = shared_dequeue(c->sched, c->own, c->link, c->conf, c->now);
	}
}

#include "coroutines.h"

const struct {
	u32 call_bytes;
	u32 sched_bytes;
	u32 link_bytes;
	u32 instance_bytes;
	u32 conf_bytes;
	void (*begin)(u32 place, struct stepped_call *call);
	u32 (*go_on)(u32 place);
} sl_stepped = {
	.call_bytes = sizeof(struct stepped_call),
	.sched_bytes = sizeof(struct sl_sched),
	.link_bytes = sizeof(struct sl_shared_link),
	.instance_bytes = sizeof(struct sl_shared_instance),
	.conf_bytes = sizeof(struct sl_shared_conf),
	.begin = stepped_begin,
	.go_on = stepped_go_on,
};
