/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Calls that stop before every access to a shared word, each in a coroutine. The caller says which goes on, so it chooses the interleaving, down to
 * single atomic operations. The includer has defined struct stepped_call and stepped_make, and SL_SHARED_STEP as stepped_yield before the core.
 */
#pragma once
#include <stdlib.h>
#include <ucontext.h>

#define STEPPED_STACK_BYTES (256 * 1024)

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
	stepped_make(places[stepped_current].call);
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
