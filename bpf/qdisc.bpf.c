// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Engine qdisc: the core as a Linux qdisc. Slot i of instance n holds an skb, owned by a kptr in an array map: no lock of
 * our own and no allocation, since the kernel calls these under the qdisc's lock. One object serves one interface: its root or
 * the children of its mq, and the ifb behind which what arrives is queued. Runs from Linux 6.17 (CONFIG_NET_SCH_BPF).
 */
#include "lib/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "lib/instances.h"
#include "../sched/core.h"

#define ENOENT       2
#define ENOSPC       28
#define SL_INSTANCES 256u

/* Set before load. */
const volatile u32 sl_instances = 2;  /* of state, and times SL_SLOTS of packets */
const volatile u32 sl_ingress_ifb = 0;  /* ifindex of the device that queues what arrives */
const volatile u32 sl_split_ifb = 0;  /* ifindex of the device that splits what departs */
const volatile u32 sl_l3_type = 0;  /* the device has no Ethernet header */
const volatile u32 sl_marks = 0;  /* bits of the directions in which a hook before the queue pays marks */
const volatile u32 sl_frame_bytes = 1518; /* longer packets may be super-packets */
const volatile u32 sl_shares =
	0; /* those below mq share a link, if their configuration has one; there are up to SL_SHARED_INSTANCES */

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#include "lib/queue.h"
#include "lib/classify.h"
#include "lib/police.h"
#include "lib/departing_hosts.h"
#include "lib/marks.h"
#include "lib/answers.h"
#include "lib/sched_conf.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, struct sl_held_packet);
	__uint(max_entries, 2 * SL_SLOTS);
} packets SEC(".maps");

u32 sl_used[SL_INSTANCES];

#include "lib/shared_link.h"

static __always_inline struct sl_held_packet *sl_packet_of(u32 n, u32 slot)
{
	u32 key = n * SL_SLOTS + slot;

	return bpf_map_lookup_elem(&packets, &key);
}

#include "lib/trace_queue.h"

/* The packets that CoDel or an overflow has dropped are freed. Those of a burst that are left are found by the next call. */
static __noinline void sl_free_dropped(struct Qdisc *sch, struct sl_sched *s, u32 n, u64 now_ns)
{
	struct sl_slot *q;
	struct sl_held_packet *held;
	struct sk_buff *skb;
	u32 i, slot;

	bpf_for (i, 0, SL_OVERFLOW_PKTS) {
		slot = sl_reap(s);
		if (slot == SL_NO_SLOT)
			break;
		held = sl_packet_of(n, slot);
		if (!held)
			break;
		skb = bpf_kptr_xchg(&held->skb, NULL);
		if (!skb)
			continue;
		sch->q.qlen--;
		sch->qstats.backlog -= sl_skb_bytes(skb);
		sch->qstats.drops++;
		q = sl_at(s->slot, slot);
		if (sl_events_are_on(now_ns))
			sl_emit(now_ns, SL_EVENT(SL_EVENT_DROPS, SL_DROPPED(q->dropped_for)), sl_place(s, q->class), q->len_bytes,
				0);
		if (sl_packet_is_traced(now_ns))
			sl_emit_packet(skb, now_ns, SL_EVENT(SL_EVENT_DROPPED, SL_DROPPED(q->dropped_for)), sl_place(s, q->class),
				       sl_since(now_ns, q->arrived_ns));
		bpf_kfree_skb(skb);
	}
}

#include "lib/queue_class.h"

/* Sets the flow of the lone packet of scheduler n, before that packet enters its flow queue. */
SL_GLOBAL int sl_set_flow_of_lone(struct sl_sched *s SL_NONNULL, u32 n, u64 now_ns)
{
	struct sl_request d = { .now_ns = now_ns, .direction = (u8)s->direction };
	u32 slot = sl_lone_slot_by_flow(s);
	struct sl_packet p = {};
	struct sl_held_packet *held;
	struct sk_buff *skb;

	if (slot == SL_NO_SLOT)
		return 0;
	held = sl_packet_of(n, slot);
	if (!held)
		return 0;
	skb = bpf_kptr_xchg(&held->skb, NULL);
	if (!skb)
		return 0;
	sl_identify(skb, &d, &p);
	slot_identify(sl_at(s->slot, slot), &p);
	skb = bpf_kptr_xchg(&held->skb, skb);
	if (skb)
		bpf_kfree_skb(skb); /* cannot be: it was taken out */
	return 0;
}

/* Puts the configuration of the live buffer into force for scheduler n; -ENOENT: the buffer has none. */
SL_GLOBAL int sl_renew(struct sl_sched *s SL_NONNULL, u32 n, u64 live, u64 now_ns)
{
	u32 buffer = sl_live_buffer(live), key = buffer * SL_DIRECTIONS + s->direction;
	struct sl_sched_conf *conf = bpf_map_lookup_elem(&sched_conf, &key);
	struct sl_tables *t = bpf_map_lookup_elem(&tables, &buffer);

	if (!conf || !t)
		return -ENOENT;
	sl_set_flow_of_lone(s, n, now_ns);
	sl_configure(s, conf, now_ns);
	if (sl_shares)
		sl_shared_renew(n);
	return s->direction == SL_EGRESS ? sl_keep_from_fast_path(s, t->limited[SL_EGRESS]) : 0;
}

/* The configuration of the live buffer takes force if it has not yet. Negative: there is none. */
static __always_inline int sl_sync(struct sl_sched *s, u32 n, u64 live, u64 now_ns)
{
	return sl_likely(s->generation == sl_live_generation(live)) ? 0 : sl_renew(s, n, live, now_ns);
}

/* Enqueues a packet that does not take the fast path. Returns its slot, or the negative of an enum sl_refusal. */
SL_GLOBAL s32 sl_enqueue_slow(struct sk_buff *skb __arg_trusted, struct sl_sched *s SL_NONNULL, struct sl_request *d SL_NONNULL)
{
	struct sl_packet packet = { .class = d->class, .len_bytes = d->bytes, .segments = d->pkts };

	if (s->flow_classes_set >> (d->class & 63) & 1)
		sl_identify(skb, d, &packet);
	return sl_enqueue_queued(s, &packet, d->now_ns);
}

/* The buckets that have been charged for a packet which the queue refuses get it back. */
SL_GLOBAL int sl_pay_back(struct sk_buff *skb __arg_trusted, const struct sl_tables *t SL_NONNULL,
			  struct sl_request *d SL_NONNULL)
{
	if (d->direction == SL_INGRESS)
		sl_request_on_arrival(skb, t, d);
	return sl_refund(t, d);
}

/* Classifies, polices and enqueues a packet, and frees those that the core dropped for it. Its slot, or the negative of an enum sl_refusal. */
static __always_inline s32 sl_admit(struct Qdisc *sch, struct sk_buff *skb, struct sl_sched *s, const struct sl_tables *t,
				    struct sl_request *d)
{
	s32 class = sl_class_at_queue(skb, s, t, d), slot;
	u32 refusal;

	if (class < 0) {
		d->class = (u8)(-1 - class);
		return sl_refuse(class_at(s, d->class), SL_DROP_MALFORMED, d->bytes);
	}
	d->class = (u8) class;
	/* A packet of a built-in rule is policed first. In classes with a bucket before the queue sl_enqueue_lone returns -1. */
	if (sl_likely(!(d->flags & SL_CONTROL))) {
		slot = sl_enqueue_lone(s, (u32) class, d->bytes, d->pkts, d->now_ns);
		if (slot >= 0)
			return slot;
	}
	/* Arrivals have passed these buckets at their hook. */
	if (d->direction == SL_EGRESS) {
		refusal = sl_police(t, d);
		if (refusal)
			return -(s32)refusal;
	}
	/* The stack of sl_enqueue_slow has no room for this call. */
	if (s->lone)
		sl_set_flow_of_lone(s, sch->limit, d->now_ns);
	slot = sl_enqueue_slow(skb, s, d);
	if (sl_unlikely(s->dropped_slots))
		sl_free_dropped(sch, s, sch->limit, d->now_ns);
	if (sl_unlikely(slot < 0) && sl_is_limited(t, d))
		sl_pay_back(skb, t, d);
	return slot;
}

/* Tells listeners which bucket a class waits for, which has just sent. Out of the way of packets of which nobody is told. */
SL_GLOBAL int sl_emit_held(struct sl_sched *s SL_NONNULL, u32 class, u64 now_ns, u32 len_bytes)
{
	u32 bucket;

	if (!s)
		return 0;
	bucket = bucket_open(&class_at(s, class)->ceil, now_ns) ? SL_BUCKET_PEAK : SL_BUCKET_CEIL;
	sl_emit(now_ns, SL_EVENT(SL_EVENT_EXHAUSTED, bucket), sl_place(s, class), len_bytes, 0);
	return 0;
}

/* Tells listeners of a packet that is sent. */
static __always_inline void sl_tell_of_sent(struct sk_buff *skb, struct sl_sched *s, const struct sl_verdict *v, u64 now_ns)
{
	u64 wait_ns = sl_since(now_ns, sl_at(s->slot, v->slot)->arrived_ns);
	u32 place = sl_place(s, v->class);

	if (sl_events_are_on(now_ns)) {
		if (sl_wait_matters(wait_ns, place))
			sl_emit_wait(now_ns, wait_ns, place, v->len_bytes);
		if (sl_unlikely(s->held >> v->class & 1))
			sl_emit_held(s, v->class, now_ns, v->len_bytes);
	}
	if (sl_packet_is_traced(now_ns))
		sl_emit_sent(skb, now_ns, SL_EVENT(SL_EVENT_SENT, 0) | (v->mark ? SL_EVENT_MARKED : 0), place, wait_ns);
}

SEC("struct_ops/sl_enqueue")
int BPF_PROG(sl_qdisc_enqueue, struct sk_buff *skb, struct Qdisc *sch, struct bpf_sk_buff_ptr *to_free)
{
	struct sl_sched *s = sl_state_of(sch->limit);
	struct sl_request request; /* its flow is set where it is looked at */
	struct sl_held_packet *held;
	struct sl_tables *t;
	u64 live = sl_live.word;
	u32 buffer = sl_live_buffer(live);
	s32 slot;

	t = bpf_map_lookup_elem(&tables, &buffer);
	if (!s || !t)
		goto drop;
	request.now_ns = bpf_ktime_get_ns();
	if (sl_sync(s, sch->limit, live, request.now_ns))
		goto drop;
	request.direction = (u8)s->direction;
	request.bytes = sl_skb_bytes(skb);
	request.flags = SL_QUEUED;
	if (request.direction == SL_INGRESS)
		sl_queue_answers();
	request.pkts = sl_skb_segments(skb, request.bytes);
	slot = sl_admit(sch, skb, s, t, &request);
	if (slot < 0) {
		if (sl_is_watched())
			sl_emit_refused(skb, request.now_ns, (u32)-slot, (u32)request.direction << 8 | request.class);
		goto drop;
	}
	held = sl_packet_of(sch->limit, (u32)slot);
	if (!held)
		goto drop;
	return sl_hold_packet(sch, held, skb, request.bytes, to_free);
drop:
	return sl_drop_packet(sch, skb, to_free);
}

/* A queue without packets is asked once more. Below mq it leaves the classes of the link that it has joined, and gives back credit that others lack. */
static __always_inline void sl_rest(u32 n)
{
	struct sl_shared_instance *x = sl_shared_instance_of(n);
	struct sl_sched *s;
	u64 live, now;

	if (!x || !(x->joined || (x->credit.scarce && x->credit.bytes > 0)))
		return;
	s = sl_state_of(n);
	live = sl_live.word;
	now = bpf_ktime_get_ns();
	if (s && !sl_sync(s, n, live, now))
		sl_shared_idle(s, n, live, now);
}

/* The next packet of scheduler n, which has packets. `shares`, a constant: it may share a link; else nothing of that is compiled in. */
static __always_inline struct sk_buff *sl_next(struct Qdisc *sch, u32 n, int shares)
{
	struct sl_verdict v = { .action = SL_WAIT };
	struct sl_shared_part part = {};
	struct sl_held_packet *held;
	struct sl_sched *s;
	struct sk_buff *skb;
	u64 now, live;

	s = sl_state_of(n);
	if (!s)
		return NULL;
	now = bpf_ktime_get_ns();
	live = sl_live.word;
	if (sl_sync(s, n, live, now))
		return NULL;
	if (shares) {
		part = sl_shared_part_of(s, n, live);
		if (part.x)
			v.wake_ns = shared_waits(s, part.x, part.l, part.f, now);
	}
	if (!shares || !part.x || !v.wake_ns)
		v = sl_dequeue(s, now);
	else if (!s->backlog_pkts)
		v.action = SL_IDLE;
	if (shares && part.x && v.action == SL_SEND)
		shared_charge(part.x, part.f, v.class, sl_at(s->slot, v.slot)->wire_bytes);
	if (sl_unlikely(s->dropped_slots))
		sl_free_dropped(sch, s, n, now);
	if (v.action != SL_SEND) {
		sl_wait(sch, v.action == SL_WAIT, v.wake_ns, now);
		return NULL;
	}
	held = sl_packet_of(n, v.slot);
	if (!held)
		return NULL;
	skb = sl_take_packet(sch, held, v.len_bytes);
	if (sl_unlikely(v.mark))
		sl_owe_mark(sl_at(s->slot, v.slot)->flow_hash, now); /* no program of this type may write to a packet */
	if (!skb)
		return NULL;
	if (sl_is_watched())
		sl_tell_of_sent(skb, s, &v, now);
	bpf_qdisc_bstats_update(sch, skb);
	return skb;
}

SEC("struct_ops/sl_dequeue")
struct sk_buff *BPF_PROG(sl_qdisc_dequeue, struct Qdisc *sch)
{
	u32 n = sch->limit;

	if (sch->q.qlen)
		return sl_unlikely(sl_shares) ? sl_next(sch, n, 1) : sl_next(sch, n, 0);
	/* Every second call: the kernel asks until there is nothing. */
	if (sl_shares)
		sl_rest(n);
	return NULL;
}

SEC("struct_ops/sl_init")
int BPF_PROG(sl_qdisc_init, struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	u32 i, n = SL_INSTANCES;
	struct sl_sched *s;

	sch->limit = SL_INSTANCES; /* a failed init is destroyed all the same */
	bpf_for (i, 0, SL_INSTANCES) {
		if (i >= sl_instances)
			break;
		if (!__sync_val_compare_and_swap(sl_at(sl_used, i), 0, 1)) {
			n = i;
			break;
		}
	}
	if (n >= SL_INSTANCES)
		return -ENOSPC;
	s = sl_state_of(n);
	if (!s)
		return -ENOSPC;
	sl_wipe(s);
	s->ifindex = (u32)sch->dev_queue->dev->ifindex;
	s->tx_queue = (u16)(sch->parent - 1); /* mq numbers them from 1 (mq_init of net/sched/sch_mq.c) */
	s->direction = sl_ingress_ifb && s->ifindex == sl_ingress_ifb ? SL_INGRESS : SL_EGRESS;
	sch->limit = n;
	if (s->direction == SL_INGRESS)
		sl_live.arrivals = n + 1;
	if (sl_shares)
		sl_shared_end(s, n, sl_live.word, bpf_ktime_get_ns());
	return 0;
}

SEC("struct_ops/sl_reset")
void BPF_PROG(sl_qdisc_reset, struct Qdisc *sch)
{
	u32 n = sch->limit, i;
	struct sl_sched *s = sl_state_of(n);
	struct sl_held_packet *held;

	sch->q.qlen = 0;
	sch->qstats.backlog = 0;
	if (!s)
		return;
	bpf_for (i, 0, SL_SLOTS) {
		if (i >= s->fresh)
			break;
		held = sl_packet_of(n, i);
		if (!held)
			break;
		sl_free_held(held);
	}
	sl_clear(s);
	if (sl_shares)
		sl_shared_end(s, n, sl_live.word, bpf_ktime_get_ns());
}

SEC("struct_ops/sl_destroy")
void BPF_PROG(sl_qdisc_destroy, struct Qdisc *sch)
{
	struct sl_sched *s = sl_state_of(sch->limit);

	if (!s)
		return;
	if (sl_live.arrivals == sch->limit + 1)
		sl_live.arrivals = 0;
	s->ifindex = 0;
	*sl_at(sl_used, sch->limit) = 0;
}

/* The loader sets the name under which tc knows it. */
SEC(".struct_ops.link")
struct Qdisc_ops sluice = {
	.enqueue = (void *)sl_qdisc_enqueue,
	.dequeue = (void *)sl_qdisc_dequeue,
	.init = (void *)sl_qdisc_init,
	.reset = (void *)sl_qdisc_reset,
	.destroy = (void *)sl_qdisc_destroy,
	.id = "sluice",
};
