/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Reports to a listener what the queue does with single packets, while there is one (events.h). */
#pragma once
#include "headers.h"
#include "events.h"

#define SL_EVENT_MARKED (1u << 16)

static __always_inline u32 sl_place(const struct sl_sched *s, u32 class)
{
	return s->direction << 8 | class;
}

/* The fate of a packet: an SL_EVENT, with SL_EVENT_MARKED if it gets a mark. */
SL_GLOBAL int sl_emit_packet(struct sk_buff *skb __arg_trusted, u64 now_ns, u32 event, u32 place, u64 wait_ns)
{
	struct sl_packet_event *t = bpf_ringbuf_reserve(&traces, sizeof(*t), 0);
	struct bpf_dynptr bytes;
	u32 length;

	if (!t)
		return 0;
	length = skb->len;
	if (bpf_dynptr_from_skb((struct __sk_buff *)skb, 0, &bytes))
		length = 0;
	sl_opaque(length); /* bounded here and nowhere else */
	if (length > SL_PACKET_EVENT_BYTES)
		length = SL_PACKET_EVENT_BYTES;
	if (bpf_dynptr_read(t->bytes, length, &bytes, 0, 0))
		length = 0;
	__builtin_memset(&t->event, 0, sizeof(t->event));
	t->event.at_ns = now_ns;
	t->event.wait_ns = wait_ns;
	t->event.kind = event >> 8 & 0xff;
	t->event.len_bytes = sl_skb_bytes(skb);
	t->event.class = place & (SL_CLASSES - 1);
	t->event.direction = place >> 8 & 1;
	t->event.reason = (u8)event;
	t->event.marked = (event & SL_EVENT_MARKED) != 0;
	t->mark = skb->mark;
	t->interface = (u32)skb->skb_iif;
	t->tag = skb->vlan_proto ? skb->vlan_tci : SL_NO_TAG;
	t->captured = (u16)length;
	t->pad = 0;
	bpf_ringbuf_submit(t, 0);
	return 0;
}

/* Reports a packet that leaves the queue, if it belongs to the traced flow. */
SL_GLOBAL int sl_emit_sent(struct sk_buff *skb __arg_trusted, u64 now_ns, u32 event, u32 place, u64 wait_ns)
{
	struct sl_headers *h;

	if (sl_watch.fields) {
		h = sl_headers_at_hand(SL_NO_TAG, 0, 0);
		if (!h)
			return 0;
		sl_parse_any(skb, sl_l3_type ? __builtin_bswap16(skb->protocol) : 0, 0, h);
		if (!sl_flow_is_traced(h))
			return 0;
	}
	return sl_emit_packet(skb, now_ns, event, place, wait_ns);
}

/* A packet is refused, for an enum sl_refusal; of any flow, which listeners filter. */
SL_GLOBAL int sl_emit_refused(struct sk_buff *skb __arg_trusted, u64 now_ns, u32 refusal, u32 place)
{
	if (sl_events_are_on(now_ns) && refusal < SL_LIMITED(0))
		sl_emit(now_ns, SL_EVENT(SL_EVENT_DROPS, refusal), place, sl_skb_bytes(skb), 0);
	if (sl_packet_is_traced(now_ns))
		sl_emit_packet(skb, now_ns, SL_EVENT(SL_EVENT_DROPPED, refusal), place, 0);
	return 0;
}
