// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Ways to keep a token bucket, to compare their costs: none, the product's word for all CPUs, a word for each CPU, and a word for each CPU that is filled
 * from one for all by a batch at a time. Nothing else is in the programs, so that contention is the worst there can be.
 */
#include "../../bpf/lib/kernel.h"
#include <bpf/bpf_helpers.h>
#include "../../sched/world.h"
#include "../../sched/police.h"

#define BENCH_BATCH 16
#define BENCH_BYTES 500

/* Set before load. */
const volatile u64 bench_cost = 1; /* of a byte, as in struct sl_police_conf */
const volatile u64 bench_burst = 1;

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* A line of the cache for the word. */
struct bench_word {
	u64 tat;
	u64 pad[7];
};

struct bench_share {
	u64 packets; /* that are paid for */
	u64 passed;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, struct bench_word);
	__uint(max_entries, 1);
} word SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, u32);
	__type(value, struct bench_word);
	__uint(max_entries, 1);
} own_word SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, u32);
	__type(value, struct bench_share);
	__uint(max_entries, 1);
} share SEC(".maps");

static __always_inline int bench_take(struct bench_word *w, u32 packets)
{
	return police_take(&w->tat, police_time(bpf_ktime_get_ns()), police_cost(bench_cost, BENCH_BYTES) * packets,
			   bench_burst) != 0;
}

/* Every program looks up a word and a share, asks the time, and counts what passes. */
SEC("xdp")
int bench_none(struct xdp_md *ctx)
{
	u32 zero = 0;
	struct bench_word *w = bpf_map_lookup_elem(&word, &zero);
	struct bench_share *s = bpf_map_lookup_elem(&share, &zero);

	if (!w || !s || !bpf_ktime_get_ns())
		return XDP_ABORTED;
	s->passed++;
	return XDP_PASS;
}

/* Each packet pays by itself. */
static __always_inline int bench_pay(struct bench_word *w)
{
	u32 zero = 0;
	struct bench_share *s = bpf_map_lookup_elem(&share, &zero);

	if (!w || !s || !bench_take(w, 1))
		return XDP_DROP;
	s->passed++;
	return XDP_PASS;
}

SEC("xdp")
int bench_shared(struct xdp_md *ctx)
{
	u32 zero = 0;

	return bench_pay(bpf_map_lookup_elem(&word, &zero));
}

SEC("xdp")
int bench_own(struct xdp_md *ctx)
{
	u32 zero = 0;

	return bench_pay(bpf_map_lookup_elem(&own_word, &zero));
}

SEC("xdp")
int bench_batch(struct xdp_md *ctx)
{
	u32 zero = 0;
	struct bench_word *w = bpf_map_lookup_elem(&word, &zero);
	struct bench_share *s = bpf_map_lookup_elem(&share, &zero);

	if (!w || !s)
		return XDP_DROP;
	if (!s->packets) {
		if (!bench_take(w, BENCH_BATCH))
			return XDP_DROP;
		s->packets = BENCH_BATCH;
	} else {
		/* A refill needs no clock but a share may grow stale: it would have to be looked at. */
		bpf_ktime_get_ns();
	}
	s->packets--;
	s->passed++;
	return XDP_PASS;
}
