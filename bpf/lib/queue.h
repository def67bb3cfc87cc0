/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The part that both qdiscs share: the kernel's functions for qdiscs, the packet behind a slot, the parser for socket buffers. The includer
 * defines sl_l3_type and sl_frame_bytes.
 */
#pragma once
#include "kernel.h"
#include "parse.h"

#define NET_XMIT_SUCCESS     0
#define NET_XMIT_DROP        1
#define SL_WATCHDOG_FLOOR_NS 1000 /* a timer in the past would fire for ever */

void bpf_qdisc_skb_drop(struct sk_buff *skb, struct bpf_sk_buff_ptr *to_free) __ksym;
void bpf_kfree_skb(struct sk_buff *skb) __ksym;
void bpf_qdisc_watchdog_schedule(struct Qdisc *sch, u64 expire_ns, u64 delta_ns) __ksym;
void bpf_qdisc_bstats_update(struct Qdisc *sch, const struct sk_buff *skb) __ksym;

#include "load_skb.h"
#define SL_PACKET       struct sk_buff
#define SL_PACKET_ARG   __arg_trusted
#define SL_LOAD         sl_load
#define SL_LENGTH(x)    ((x)->len)
#define SL_PARSER(name) name
#include "parse_any.h"

struct sl_held_packet {
	struct sk_buff __kptr *skb;
};

static __always_inline u32 sl_skb_bytes(const struct sk_buff *skb)
{
	return ((struct qdisc_skb_cb *)skb->cb)->pkt_len;
}

/* A packet is queued: its slot, which was free, holds it. Returns what the enqueue does. */
static __always_inline int sl_hold_packet(struct Qdisc *sch, struct sl_held_packet *held, struct sk_buff *skb, u32 bytes,
					  struct bpf_sk_buff_ptr *to_free)
{
	skb = bpf_kptr_xchg(&held->skb, skb);
	if (skb)
		bpf_qdisc_skb_drop(skb, to_free); /* cannot be: the slot was free */
	sch->q.qlen++;
	sch->qstats.backlog += bytes;
	return NET_XMIT_SUCCESS;
}

/* A packet is refused. Returns what the enqueue does. */
static __always_inline int sl_drop_packet(struct Qdisc *sch, struct sk_buff *skb, struct bpf_sk_buff_ptr *to_free)
{
	sch->qstats.drops++;
	bpf_qdisc_skb_drop(skb, to_free);
	return NET_XMIT_DROP;
}

/* The packet of a slot leaves the queue; NULL: the slot has none. */
static __always_inline struct sk_buff *sl_take_packet(struct Qdisc *sch, struct sl_held_packet *held, u32 bytes)
{
	struct sk_buff *skb = bpf_kptr_xchg(&held->skb, NULL);

	sch->q.qlen--;
	sch->qstats.backlog -= bytes;
	return skb;
}

/*
 * Nothing leaves now. If packets wait, the device asks again at this time. If not, packets that are left were dropped and wait to be freed, so
 * there is nothing to wake up for.
 */
static __always_inline void sl_wait(struct Qdisc *sch, int waits, u64 wake_ns, u64 now_ns)
{
	sch->qstats.overlimits++;
	if (waits)
		bpf_qdisc_watchdog_schedule(sch, sl_max(wake_ns, now_ns + SL_WATCHDOG_FLOOR_NS), 0);
}

/* The packet of a slot is freed, if it has one. */
static __always_inline void sl_free_held(struct sl_held_packet *held)
{
	struct sk_buff *skb = bpf_kptr_xchg(&held->skb, NULL);

	if (skb)
		bpf_kfree_skb(skb);
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

/* Reads a word of the linear part. The kernel checks the address of each such read, so it costs about eight instructions. */
static __always_inline u64 sl_word_at(const struct sk_buff *skb, u32 off)
{
	return *(const volatile u64 *)(skb->data + off);
}

/* Whether a packet is plain. If it is, sets *f except f->addresses. */
static __always_inline int sl_read_plain(struct sl_front *f, const struct sk_buff *skb)
{
	if (sl_l3_type || SL_FRONT + SL_FRONT_BYTES > skb->len - skb->data_len)
		return 0;
	f->head = sl_word_at(skb, SL_FRONT_HEAD);
	f->middle = sl_word_at(skb, SL_FRONT_MIDDLE);
	f->rest = sl_word_at(skb, SL_FRONT_REST);
	return sl_is_plain(f);
}
