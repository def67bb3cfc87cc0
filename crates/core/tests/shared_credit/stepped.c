/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Instances that share a link, each in a coroutine that stops before every access to a shared word. The caller says which goes on, so it chooses the
 * interleaving, down to single atomic operations.
 */
#include <stdlib.h>
#include <ucontext.h>

static void stepped_yield(void);
#define SL_SHARED_STEP() stepped_yield()
#include "../../src/shared_credit.c"

#define STEPPED_STACK_BYTES (256 * 1024)

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

static _Thread_local struct stepped_place {
	ucontext_t context;
	void *stack;
	struct stepped_call *call; /* 0: none is under way */
} places[SL_SHARED_INSTANCES];
static _Thread_local ucontext_t stepped_caller;
static _Thread_local u32 stepped_current;
static _Thread_local int stepped_inside;

static void stepped_yield(void)
{
	if (stepped_inside)
		swapcontext(&places[stepped_current].context, &stepped_caller);
}

static void stepped_run(void)
{
	struct stepped_call *c = places[stepped_current].call;

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
	places[stepped_current].call = 0;
}

/* A call begins at a place, where none is under way; nothing of it happens yet. */
static void stepped_begin(u32 place, struct stepped_call *call)
{
	struct stepped_place *p = &places[place % SL_SHARED_INSTANCES];

	if (!p->stack)
		p->stack = malloc(STEPPED_STACK_BYTES);
	p->call = call;
	getcontext(&p->context);
	p->context.uc_stack.ss_sp = p->stack;
	p->context.uc_stack.ss_size = STEPPED_STACK_BYTES;
	p->context.uc_link = &stepped_caller;
	makecontext(&p->context, stepped_run, 0);
}

/* The call of a place goes on until its next access to a shared word. Whether it has ended. */
static u32 stepped_go_on(u32 place)
{
	struct stepped_place *p = &places[place % SL_SHARED_INSTANCES];

	stepped_current = place % SL_SHARED_INSTANCES;
	stepped_inside = 1;
	swapcontext(&stepped_caller, &p->context);
	stepped_inside = 0;
	return !p->call;
}

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
