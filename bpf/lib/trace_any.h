/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Reports single packets to a listener, for packets of any kind before the queue: as parse_any.h, with
 *
 *	SL_MARK(x)	the mark of a packet
 *	SL_TAG(x)	the VLAN's tag control information that the host has taken out, or SL_NO_TAG
 */
#include "events.h"

/* The fate of a packet: an SL_EVENT. */
static __always_inline void SL_PARSER(sl_emit_packet)(SL_PACKET *x, u64 now_ns, u32 event, u32 place)
{
	u32 length = SL_LENGTH(x);
	struct sl_packet_event *t = bpf_ringbuf_reserve(&traces, sizeof(*t), 0);

	if (!t)
		return;
	__builtin_memset(&t->event, 0, sizeof(t->event));
	t->event.len_bytes = length;
	/* One length of a few: fewer bytes are rarely there, and such packets are short. */
	length = length >= SL_PACKET_EVENT_BYTES ? SL_PACKET_EVENT_BYTES : length >= 64 ? 64 : length >= 40 ? 40 : 0;
	if (length && SL_LOAD(x, 0, t->bytes, length))
		length = 0;
	t->event.at_ns = now_ns;
	t->event.kind = event >> 8 & 0xff;
	t->event.class = place & (SL_CLASSES - 1);
	t->event.direction = place >> 8 & 1;
	t->event.reason = (u8)event;
	t->mark = SL_MARK(x);
	t->interface = x->ingress_ifindex;
	t->tag = SL_TAG(x);
	t->captured = (u16)length;
	t->pad = 0;
	bpf_ringbuf_submit(t, 0);
}
