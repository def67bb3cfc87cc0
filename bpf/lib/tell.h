/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Tells whoever watches: see abi/watch.h. Each is called behind a look at sl_watch, so that it costs a comparison while nobody does. */
#pragma once
#include "maps.h"
#include "../../abi/watch.h"

volatile struct sl_watch sl_watch SEC(".data.watch");

/* A ring each, since whoever reads takes what it reads. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 * 1024);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 512 * 1024);
} traces SEC(".maps");

static __always_inline int sl_events_are_told(u64 now_ns)
{
	return sl_unlikely(now_ns < sl_watch.events_until_ns);
}

/* Whether this packet is one to be told of, if its flow is. */
static __always_inline int sl_packet_is_told(u64 now_ns)
{
	u32 left;

	if (sl_likely(now_ns >= sl_watch.packets_until_ns))
		return 0;
	left = sl_watch.left;
	sl_watch.left = left > 1 ? left - 1 : sl_watch.one_in;
	return left <= 1;
}

/* Something has happened to a class, kind << 8 | reason; place: direction << 8 | class. Told if it has not for a while. */
SL_GLOBAL int sl_tell(u64 now_ns, u32 what, u32 place, u32 len_bytes, u64 wait_ns)
{
	u32 kind = what >> 8 & 3;
	volatile struct sl_quiet *q = sl_at(*sl_at(sl_watch.quiet, place >> 8), place);
	u64 last = q->last_ns[kind];
	struct sl_told *t;

	q->last_ns[kind] = now_ns;
	if (last && sl_since(now_ns, last) < SL_QUIET_NS)
		return 0;
	t = bpf_ringbuf_reserve(&events, sizeof(*t), 0);
	if (!t)
		return 0;
	__builtin_memset(t, 0, sizeof(*t));
	t->at_ns = now_ns;
	t->wait_ns = wait_ns;
	t->kind = kind;
	t->len_bytes = len_bytes;
	t->class = place & (SL_CLASSES - 1);
	t->direction = place >> 8 & 1;
	t->reason = (u8)what;
	bpf_ringbuf_submit(t, 0);
	return 0;
}

/* Whether a wait is to be told of, or ends a time in which waits were. */
static __always_inline int sl_wait_matters(u64 wait_ns, u32 place)
{
	u64 late = *sl_at(sl_watch.late_ns, place);

	return sl_unlikely(wait_ns > late && late) ||
	       sl_unlikely(sl_at(*sl_at(sl_watch.quiet, place >> 8), place)->late_since_ns);
}

/* A packet of a class has waited so long. */
SL_GLOBAL int sl_tell_wait(u64 now_ns, u64 wait_ns, u32 place, u32 len_bytes)
{
	volatile struct sl_quiet *q = sl_at(*sl_at(sl_watch.quiet, place >> 8), place);
	u64 late = *sl_at(sl_watch.late_ns, place);

	if (!late || wait_ns <= late)
		q->late_since_ns = 0;
	else if (!q->late_since_ns)
		q->late_since_ns = now_ns;
	else if (sl_since(now_ns, q->late_since_ns) > SL_LATE_NS)
		sl_tell(now_ns, SL_TOLD_LATE << 8, place, len_bytes, wait_ns);
	return 0;
}

/* Whether a packet is of the flow that is asked for. */
static __always_inline int sl_flow_is_told(const struct sl_headers *h)
{
	u32 fields = sl_watch.fields, i;
	u32 differ = 0;

	if (fields & SL_FIELD_PROTO)
		differ |= sl_watch.proto ^ h->proto;
	if (fields & SL_FIELD_SPORT)
		differ |= (sl_watch.sport ^ h->sport) | !h->has_ports;
	if (fields & SL_FIELD_DPORT)
		differ |= (sl_watch.dport ^ h->dport) | !h->has_ports;
#pragma unroll
	for (i = 0; i < 4; i++) {
		if (fields & SL_FIELD_SRC)
			differ |= sl_watch.src[i] ^ h->src[i];
		if (fields & SL_FIELD_DST)
			differ |= sl_watch.dst[i] ^ h->dst[i];
	}
	return !differ;
}
