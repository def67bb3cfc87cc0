/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The bytes of a packet that a qdisc holds, and the frames that it becomes. */
#pragma once
#include "parse.h"

static __always_inline u32 sl_skb_bytes(const struct sk_buff *skb)
{
	return ((struct qdisc_skb_cb *)skb->cb)->pkt_len;
}

static __noinline u16 sl_super_packet_segments(const struct sk_buff *skb)
{
	const struct skb_shared_info *shared = (const struct skb_shared_info *)(skb->head + skb->end);
	u16 segments = 0, gso_size = 0;

	bpf_core_read(&segments, sizeof(segments), &shared->gso_segs);
	if (segments)
		return segments;
	bpf_core_read(&gso_size, sizeof(gso_size), &shared->gso_size);
	return sl_segments_of_length(skb->len, gso_size);
}

static __always_inline u16 sl_skb_segments(const struct sk_buff *skb, u32 bytes)
{
	return sl_likely(bytes <= sl_frame_bytes) ? 1 : sl_super_packet_segments(skb);
}
