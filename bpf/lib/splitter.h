/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* State of the hook before the splitter: flows sent through it, and whether packets come back. */
#pragma once
#include "flows.h"
#include "headers.h"

/*
 * Flows that have sent super-packets other than TCP's, by hash: such a flow goes through the splitter with all its packets, so that a
 * short one does not overtake the frames of a long one. hash << 32 | when, in 2^20 ns.
 */
#define SL_LONG_FLOWS 1024u
#define SL_LONG_NS    10000000000ULL /* after a pause of so long, nothing is left to overtake */
static struct {
	u64 until_ns; /* no flow is one from then on; 0: none is */
	u64 flow[SL_LONG_FLOWS];
} sl_long;

/* Whether a packet is of such a flow, or makes its flow one. Only for packets that are not TCP and not known from the flow table. */
static __noinline int sl_is_of_long_flow(struct __sk_buff *skb, u32 segments)
{
	u64 now = bpf_ktime_get_ns(), entry;
	struct sl_flow_key key = {};
	struct sl_headers *h = sl_headers_at_hand(SL_NO_TAG, 0, 0);
	u32 hash, when = (u32)(now >> 20);

	if (!h)
		return 0;
	sl_parse_frame(skb, 0, h);
	if (h->proto == SL_PROTO_TCP)
		return 1;
	sl_flow_key(&key, h, SL_EGRESS);
	hash = sl_flow_hash(&key);
	entry = *sl_at(sl_long.flow, hash);
	if (segments < 2 && (now > sl_long.until_ns || entry >> 32 != hash || when - (u32)entry > SL_LONG_NS >> 20))
		return 0;
	*sl_at(sl_long.flow, hash) = (u64)hash << 32 | when;
	sl_long.until_ns = now + SL_LONG_NS;
	return 1;
}

/* Since when nothing has come back from the splitter, and when it was tried last, in jiffies; 0: what was sent there last has come back. */
u64 sl_split_since, sl_split_tried;

/* Decides whether to send a packet to the splitter. */
static __always_inline int sl_splitter_is_alive(void)
{
	u64 now = bpf_jiffies64(), since = sl_split_since;

	if (!since)
		sl_split_since = now;
	if (sl_likely(!since || now - since <= SL_SPLITTER_TICKS))
		return 1;
	if (now - sl_split_tried <= SL_TRY_AGAIN_TICKS)
		return 0;
	sl_split_tried = now;
	return 1;
}
