/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Reads packets of tc and XDP programs: whether one is plain, its headers, its frames. Included after parse_any.h for tc. */
#pragma once
#include "parse.h"

/* Whether a packet that begins at data is plain. If it is, sets *f. */
static __always_inline int sl_read_plain(struct sl_front *f, const void *data, const void *end)
{
	if (sl_l3_type || data + SL_FRONT + SL_FRONT_BYTES > end)
		return 0;
	f->head = *(const u64 *)(data + SL_FRONT_HEAD);
	f->middle = *(const u64 *)(data + SL_FRONT_MIDDLE);
	f->addresses = *(const u64 *)(data + SL_FRONT_ADDRESSES);
	f->rest = *(const u64 *)(data + SL_FRONT_REST);
	return sl_is_plain(f);
}

/* Frames that the packet becomes. What a guest or a tun device hands over may say only how long they are. */
static __always_inline u16 sl_segments(struct __sk_buff *skb)
{
	return skb->gso_segs ? (u16)skb->gso_segs : sl_segments_of_length(skb->len, skb->gso_size);
}

static __always_inline void sl_parse_frame(struct __sk_buff *skb, u32 fields, struct sl_headers *h)
{
	u16 type = sl_l3_type ? __builtin_bswap16((u16)skb->protocol) : 0;
	u64 front[SL_FRONT_BYTES / 8];

	sl_parse_skb(skb, type || bpf_skb_load_bytes(skb, SL_FRONT, front, sizeof(front)) ? NULL : front, type, fields, h);
}
