/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * How an arrival hook calls the program of a command that observes its interface (telemetry.bpf.c), and what it tells it. The command renews a
 * lease: one that dies leaves a program that is not called, until the next command takes it away.
 */
#pragma once
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include "../../abi/telemetry.h"
#include "../../sched/world.h"

volatile struct sl_observing sl_observing SEC(".data.observing");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, u32);
	__type(value, struct sl_observed);
	__uint(max_entries, 1);
} observed SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__type(key, u32);
	__type(value, u32);
	__uint(max_entries, 1);
} observer_xdp SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__type(key, u32);
	__type(value, u32);
	__uint(max_entries, 1);
} observer_tc SEC(".maps");

/* Port forwarding (forward.bpf.c), where there is any in the network namespace: the last step of arrival. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__type(key, u32);
	__type(value, u32);
	__uint(max_entries, 1);
} forwarder SEC(".maps");

/* Whether a command observes the interface. */
static __always_inline int sl_is_observed(void)
{
	u64 until = sl_observing.until_ns;

	return sl_unlikely(until) && bpf_ktime_get_ns() < until;
}

/* Notes what the observer is told. class: 0xff where it is not known. */
static __always_inline void sl_tell_observer(u32 class, u32 verdict, u32 answer)
{
	u32 zero = 0;
	struct sl_observed *o = bpf_map_lookup_elem(&observed, &zero);

	if (!o)
		return;
	o->class = (u8) class;
	o->verdict = (u8)verdict;
	o->answer = answer;
}
