/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Sends events to listeners: see abi/watch.h. Callers compare sl_watch first, so that an event costs a comparison while there is no listener. */
#pragma once
#include "maps.h"
#include "../../abi/watch.h"

volatile struct sl_watch sl_watch SEC(".data.watch");

/* A ring for each kind of listener: a record is read once. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 * 1024);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 512 * 1024);
} traces SEC(".maps");

/* Whether there has ever been a listener. */
static __always_inline int sl_is_watched(void)
{
	return sl_unlikely(sl_watch.events_until_ns | sl_watch.packets_until_ns);
}

static __always_inline int sl_events_are_on(u64 now_ns)
{
	return sl_unlikely(now_ns < sl_watch.events_until_ns);
}

/* Whether this packet is traced, if its flow is. */
static __always_inline int sl_packet_is_traced(u64 now_ns)
{
	u32 left;

	if (sl_likely(now_ns >= sl_watch.packets_until_ns))
		return 0;
	left = sl_watch.left;
	sl_watch.left = left > 1 ? left - 1 : sl_watch.one_in;
	return left <= 1;
}

/* An event (SL_EVENT) of a class, unless it had one of this kind lately; place: direction << 8 | class. */
SL_GLOBAL int sl_emit(u64 now_ns, u32 event, u32 place, u32 len_bytes, u64 wait_ns)
{
	u32 kind = event >> 8 & 3;
	volatile struct sl_last_events *q = sl_at(*sl_at(sl_watch.last, place >> 8), place);
	u64 last = q->last_ns[kind];
	struct sl_event *t;

	q->last_ns[kind] = now_ns;
	if (last && sl_since(now_ns, last) < SL_EVENT_GAP_NS)
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
	t->reason = (u8)event;
	bpf_ringbuf_submit(t, 0);
	return 0;
}

/* Whether a wait is too long, or ends a time in which waits were. */
static __always_inline int sl_wait_matters(u64 wait_ns, u32 place)
{
	u64 late = *sl_at(sl_watch.late_ns, place);

	return sl_unlikely(wait_ns > late && late) || sl_unlikely(sl_at(*sl_at(sl_watch.last, place >> 8), place)->late_since_ns);
}

/* A packet of a class has waited so long. */
SL_GLOBAL int sl_emit_wait(u64 now_ns, u64 wait_ns, u32 place, u32 len_bytes)
{
	volatile struct sl_last_events *q = sl_at(*sl_at(sl_watch.last, place >> 8), place);
	u64 late = *sl_at(sl_watch.late_ns, place);

	if (!late || wait_ns <= late)
		q->late_since_ns = 0;
	else if (!q->late_since_ns)
		q->late_since_ns = now_ns;
	else if (sl_since(now_ns, q->late_since_ns) > SL_LATE_NS)
		sl_emit(now_ns, SL_EVENT(SL_EVENT_LATE, 0), place, len_bytes, wait_ns);
	return 0;
}

/* Whether a packet belongs to the traced flow. */
static __always_inline int sl_flow_is_traced(const struct sl_headers *h)
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
