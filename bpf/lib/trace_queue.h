/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Reports to a listener what the queue does with single packets, while there is one (tell.h). */
#pragma once
#include "tell.h"

static __always_inline u32 sl_place(const struct sl_sched *s, u32 class)
{
	return sl_direction_of(s) << 8 | class;
}

/* Reports what becomes of a packet: what is kind << 8 | reason, and 1 << 16 for a mark. */
SL_GLOBAL int sl_tell_packet(struct sk_buff *skb __arg_trusted, u64 now_ns, u32 what, u32 place, u64 wait_ns)
{
	struct sl_told_packet *t = bpf_ringbuf_reserve(&traces, sizeof(*t), 0);
	struct bpf_dynptr bytes;
	u32 length;

	if (!t)
		return 0;
	length = skb->len;
	if (bpf_dynptr_from_skb((struct __sk_buff *)skb, 0, &bytes))
		length = 0;
	sl_opaque(length); /* bounded here and nowhere else */
	if (length > SL_TOLD_BYTES)
		length = SL_TOLD_BYTES;
	if (bpf_dynptr_read(t->bytes, length, &bytes, 0, 0))
		length = 0;
	__builtin_memset(&t->told, 0, sizeof(t->told));
	t->told.at_ns = now_ns;
	t->told.wait_ns = wait_ns;
	t->told.kind = what >> 8 & 0xff;
	t->told.len_bytes = sl_skb_bytes(skb);
	t->told.class = place & (SL_CLASSES - 1);
	t->told.direction = place >> 8 & 1;
	t->told.reason = (u8)what;
	t->told.marked = what >> 16 & 1;
	t->mark = skb->mark;
	t->interface = (u32)skb->skb_iif;
	t->tag = skb->vlan_proto ? skb->vlan_tci : SL_NO_TAG;
	t->captured = (u16)length;
	t->pad = 0;
	bpf_ringbuf_submit(t, 0);
	return 0;
}

/* Reports a packet that leaves the queue, if it belongs to the watched flow. */
SL_GLOBAL int sl_tell_sent(struct sk_buff *skb __arg_trusted, u64 now_ns, u32 what, u32 place, u64 wait_ns)
{
	struct sl_headers h;

	if (sl_watch.fields) {
		sl_headers_init(&h, SL_NO_TAG, 0, 0);
		sl_parse_any(skb, sl_l3_type ? __builtin_bswap16(skb->protocol) : 0, 0, &h);
		if (!sl_flow_is_told(&h))
			return 0;
	}
	return sl_tell_packet(skb, now_ns, what, place, wait_ns);
}

/* A packet is refused, for an enum sl_drop, or beyond SL_DROPS an enum sl_limit. */
SL_GLOBAL int sl_tell_refused(struct sk_buff *skb __arg_trusted, u64 now_ns, u32 reason, u32 place)
{
	if (sl_events_are_told(now_ns) && reason < SL_DROPS)
		sl_tell(now_ns, SL_TOLD_DROPS << 8 | reason, place, sl_skb_bytes(skb), 0);
	if (sl_packet_is_told(now_ns))
		sl_tell_packet(skb, now_ns, SL_TOLD_DROPPED << 8 | reason, place, 0);
	return 0;
}
