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
#include "../sched/core.h"

#define NET_XMIT_SUCCESS     0
#define NET_XMIT_DROP        1
#define ENOENT               2
#define ENOSPC               28
#define SL_INSTANCES         256u
#define SL_WATCHDOG_FLOOR_NS 1000 /* a timer in the past would fire for ever */

/* Set before load. */
const volatile u32 sl_instances = 2;  /* of state, and times SL_SLOTS of packets */
const volatile u32 sl_ingress_ifb = 0;  /* ifindex of the device that queues what arrives */
const volatile u32 sl_split_ifb = 0;  /* ifindex of the device that splits what departs */
const volatile u32 sl_l3_type = 0;  /* the device has no Ethernet header */
const volatile u32 sl_marks = 0;  /* bits of the directions in which a hook before the queue pays marks */
const volatile u32 sl_frame_bytes = 1518; /* longer packets may be super-packets */

char LICENSE[] SEC("license") = "Dual MIT/GPL";

void bpf_qdisc_skb_drop(struct sk_buff *skb, struct bpf_sk_buff_ptr *to_free) __ksym;
void bpf_kfree_skb(struct sk_buff *skb) __ksym;
void bpf_qdisc_watchdog_schedule(struct Qdisc *sch, u64 expire_ns, u64 delta_ns) __ksym;
void bpf_qdisc_bstats_update(struct Qdisc *sch, const struct sk_buff *skb) __ksym;

#include "lib/load_skb.h"
#include "lib/parse.h"
#define SL_PACKET       struct sk_buff
#define SL_PACKET_ARG   __arg_trusted
#define SL_LOAD         sl_load
#define SL_LENGTH(x)    ((x)->len)
#define SL_PARSER(name) name
#include "lib/parse_any.h"
#include "lib/classify.h"
#include "lib/by_ports.h"
#include "lib/police.h"
#include "lib/departing_hosts.h"
#include "lib/marks.h"
#include "lib/answers.h"

struct sl_held_packet {
	struct sk_buff __kptr *skb;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, struct sl_held_packet);
	__uint(max_entries, 2 * SL_SLOTS);
} packets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, struct sl_sched);
	__uint(max_entries, 2);
	__uint(map_flags, BPF_F_MMAPABLE);
} state SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32); /* buffer * SL_DIRECTIONS + direction */
	__type(value, struct sl_sched_conf);
	__uint(max_entries, SL_BUFFERS *SL_DIRECTIONS);
	__uint(map_flags, BPF_F_MMAPABLE);
} sched_conf SEC(".maps");

u32 sl_used[SL_INSTANCES];

static __always_inline struct sl_sched *sl_state_of(u32 n)
{
	return bpf_map_lookup_elem(&state, &n);
}

static __always_inline struct sl_held_packet *sl_packet_of(u32 n, u32 slot)
{
	u32 key = n * SL_SLOTS + slot;

	return bpf_map_lookup_elem(&packets, &key);
}

static __always_inline u32 sl_direction_of(const struct sl_sched *s)
{
	return sl_ingress_ifb && s->ifindex == sl_ingress_ifb ? SL_INGRESS : SL_EGRESS;
}

static __always_inline u32 sl_skb_bytes(const struct sk_buff *skb)
{
	return ((struct qdisc_skb_cb *)skb->cb)->pkt_len;
}

static __always_inline u32 sl_skb_segments(const struct sk_buff *skb, u32 bytes)
{
	const struct skb_shared_info *shared = (const struct skb_shared_info *)(skb->head + skb->end);
	u16 segments = 0, gso_size = 0;

	if (sl_likely(bytes <= sl_frame_bytes))
		return 1;
	bpf_core_read(&segments, sizeof(segments), &shared->gso_segs);
	if (segments)
		return segments;
	bpf_core_read(&gso_size, sizeof(gso_size), &shared->gso_size);
	return sl_segments_of_length(skb->len, gso_size);
}

/* The configuration of the live buffer takes force if it has not yet. Negative: there is none. */
static __always_inline int sl_sync(struct sl_sched *s, u64 live, u64 now_ns)
{
	u32 key = sl_live_buffer(live) * SL_DIRECTIONS + sl_direction_of(s);
	struct sl_sched_conf *conf;

	if (sl_likely(s->generation == sl_live_generation(live)))
		return 0;
	conf = bpf_map_lookup_elem(&sched_conf, &key);
	if (!conf)
		return -ENOENT;
	return sl_configure(s, conf, now_ns);
}

/*
 * The class that was handed on. Negative: the packet is to be classified here. What our own hook has just handed to this queue is
 * believed; of what else departs, only a class from an arrival hook of ours, and not where flows are limited: there the flow needs its
 * entry for this direction.
 */
static __always_inline s32 sl_class_before(const struct sl_tables *t, const struct sk_buff *skb, u32 direction)
{
	s32 class;

	if (direction == SL_INGRESS || sl_split_ifb)
		return sl_handed_class(t, skb->tc_index);
	class = sl_forwarded_class(t, skb->tc_index, (u32)skb->skb_iif);
	return class >= 0 && sl_flows_are_limited(t, (u32) class) ? -1 : class;
}

/* The flow and hosts of the packet, for classes that queue by flow. */
static __always_inline void sl_identify(const struct sk_buff *skb, const struct sl_police_request *d, struct sl_packet *p)
{
	u64 nfct = skb->_nfct;
	u32 hosts = 0;

	if (d->direction == SL_INGRESS)
		hosts = *(u32 *)&((struct qdisc_skb_cb *)skb->cb)->data[SL_CB_HOSTS];
	else if (nfct & ~SL_CT_INFO)
		hosts = sl_hosts_before_nat(nfct);

	p->flow_hash = sl_flow_hash(&d->flow);
	p->src_host = hosts ? hosts >> 16 : sl_packet_host(d->flow.src);
	p->dst_host = hosts ? hosts & 0xffff : sl_packet_host(d->flow.dst);
	p->ecn = d->ecn && sl_marks >> d->direction & 1 && sl_takes_marks(p->flow_hash, d->now_ns);
}

#define SL_CLASS_UNKNOWN 0xff

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

/*
 * Parses what was not classified before it came here (d->class is SL_CLASS_UNKNOWN), or whose flow must be known. Its class, or negative:
 * drop it.
 */
static __always_inline int sl_classify_here(struct sk_buff *skb, const struct sl_sched *s, const struct sl_tables *t,
					    u32 segments, struct sl_police_request *d)
{
	struct sl_choice choice;
	struct sl_headers h;
	int has_front;
	u16 type;

	type = sl_l3_type ? __builtin_bswap16(skb->protocol) : 0;

	sl_headers_init(&h, skb->vlan_proto ? skb->vlan_tci : SL_NO_TAG, skb->mark, (u32)skb->skb_iif);
	/* The front is read where it is. */
	has_front = !type && SL_FRONT + SL_FRONT_BYTES <= skb->len - skb->data_len;
	sl_parse(skb, has_front ? skb->data + SL_FRONT : NULL, type, t->fields, &h);
	d->ecn = (u8)sl_ecn(&h);
	if (d->class != SL_CLASS_UNKNOWN) {
		sl_flow_key(&d->flow, &h, d->direction);
		return d->class;
	}
	{
		struct sl_flow_update update = {
			.now_ns = d->now_ns, .pkts = segments, .bytes = d->bytes, .direction = d->direction
		};

		choice = sl_classify(t, &h, &update);
	}
	sl_count_parsed(&h, d->direction, choice.rule, segments, d->bytes);
	if (sl_is_control(choice.rule))
		d->terms |= SL_CONTROL;
	if (sl_is_malformed(&h) && t->drop_malformed)
		return -1 - (s32)choice.class;
	if (s->flow_classes_set >> (choice.class & 63) & 1 || sl_unlikely(sl_flows_are_limited(t, choice.class)))
		sl_flow_key(&d->flow, &h, d->direction);
	return (s32)choice.class;
}

/* The class of a packet by its protocol and ports, where nothing else is asked for; the packet is counted. Negative: it must be parsed. */
static __always_inline s32 sl_classify_by_ports(struct sk_buff *skb, const struct sl_sched *s, const struct sl_tables *t,
						u32 segments, const struct sl_police_request *d)
{
	struct sl_choice choice;
	u32 counter;

	if (sl_keep_flows || sl_l3_type || !t->by_ports || s->flow_classes_set ||
	    SL_FRONT + SL_FRONT_BYTES > skb->len - skb->data_len ||
	    !sl_choose_by_ports(t, (const volatile u64 *)(skb->data + SL_FRONT), &choice))
		return -1;
	counter = d->direction * SL_RULE_COUNTS + choice.rule;
	sl_count_add(bpf_map_lookup_elem(&rule_counts, &counter), segments, d->bytes);
	return (s32)choice.class;
}

/* Makes of a packet that has arrived the request with which its hook has charged it to buckets. */
SL_GLOBAL int sl_request_on_arrival(struct sk_buff *skb __arg_trusted, const struct sl_tables *t SL_NONNULL,
				    struct sl_police_request *d SL_NONNULL)
{
	struct sl_headers h;

	d->bytes = skb->len;
	d->terms = 0;
	if (!sl_flows_are_limited(t, d->class))
		return 0;
	sl_headers_init(&h, SL_NO_TAG, 0, 0);
	sl_parse_any(skb, sl_l3_type ? __builtin_bswap16(skb->protocol) : 0, 0, &h);
	sl_flow_key(&d->flow, &h, SL_INGRESS);
	return 0;
}

SEC("struct_ops/sl_enqueue")
int BPF_PROG(sl_qdisc_enqueue, struct sk_buff *skb, struct Qdisc *sch, struct bpf_sk_buff_ptr *to_free)
{
	u32 bytes = sl_skb_bytes(skb), segments, buffer;
	struct sl_sched *s = sl_state_of(sch->limit);
	struct sl_police_request request; /* its flow is set where it is looked at */
	struct sl_held_packet *held;
	struct sl_tables *t;
	u64 now, live = sl_live.word;
	s32 class, slot;

	buffer = sl_live_buffer(live);
	t = bpf_map_lookup_elem(&tables, &buffer);
	if (!s || !t)
		goto drop;
	now = bpf_ktime_get_ns();
	if (sl_sync(s, live, now))
		goto drop;
	segments = sl_skb_segments(skb, bytes);
	request.now_ns = now;
	request.direction = sl_direction_of(s);
	request.bytes = bytes;
	if (request.direction == SL_INGRESS)
		sl_queue_answers();
	request.terms = SL_QUEUED;
	class = sl_class_before(t, skb, request.direction);
	if (class < 0)
		class = sl_classify_by_ports(skb, s, t, segments, &request);
	request.class = (u8) class;
	if (class < 0 || s->flow_classes_set >> (class & 63) & 1 ||
	    sl_unlikely(request.direction == SL_EGRESS && sl_flows_are_limited(t, (u32) class))) {
		class = sl_classify_here(skb, s, t, segments, &request);
		if (class < 0) {
			slot = sl_refuse(class_at(s, (u32)(-1 - class)), SL_DROP_MALFORMED, bytes);
			request.class = (u8)(-1 - class);
			goto refused;
		}
	}
	request.class = (u8) class;
	/* By a bucket beside the queue's own. What arrives has passed them at its hook. */
	if (request.direction == SL_EGRESS) {
		slot = -(s32)sl_police(t, &request, segments);
		if (slot)
			goto refused;
	}
	{ /* where the headers were; the verifier does not know that its flow is of no account where there are none */
		struct sl_packet packet = { .class = (u32) class, .len_bytes = bytes, .segments = segments };

		if (s->flow_classes_set >> (class & 63) & 1)
			sl_identify(skb, &request, &packet);
		slot = sl_enqueue(s, &packet, request.now_ns);
	}
	if (sl_unlikely(s->dropped_slots))
		sl_free_dropped(sch, s, sch->limit, request.now_ns);
	if (slot < 0) {
		/* The buckets that have been charged for it get it back. */
		if (sl_is_limited(t, &request)) {
			if (request.direction == SL_INGRESS)
				sl_request_on_arrival(skb, t, &request);
			sl_refund(t, &request);
		}
		goto refused;
	}
	held = sl_packet_of(sch->limit, (u32)slot);
	if (!held)
		goto drop;
	skb = bpf_kptr_xchg(&held->skb, skb);
	if (skb)
		bpf_qdisc_skb_drop(skb, to_free); /* cannot be: the slot was free */
	sch->q.qlen++;
	sch->qstats.backlog += request.bytes;
	return NET_XMIT_SUCCESS;
refused:
	if (sl_watch.events_until_ns | sl_watch.packets_until_ns)
		sl_emit_refused(skb, request.now_ns, (u32)-slot, (u32)request.direction << 8 | request.class);
drop:
	sch->qstats.drops++;
	bpf_qdisc_skb_drop(skb, to_free);
	return NET_XMIT_DROP;
}

SEC("struct_ops/sl_dequeue")
struct sk_buff *BPF_PROG(sl_qdisc_dequeue, struct Qdisc *sch)
{
	struct sl_held_packet *held;
	u32 n = sch->limit;
	struct sl_verdict v;
	struct sl_sched *s;
	struct sk_buff *skb;
	u64 now;

	if (!sch->q.qlen) /* every second call: the kernel asks until there is nothing */
		return NULL;
	s = sl_state_of(n);
	if (!s)
		return NULL;
	now = bpf_ktime_get_ns();
	if (sl_sync(s, sl_live.word, now))
		return NULL;
	v = sl_dequeue(s, now);
	if (sl_unlikely(s->dropped_slots))
		sl_free_dropped(sch, s, n, now);
	if (v.action != SL_SEND) {
		sch->qstats.overlimits++;
		/* SL_IDLE: packets that are left were dropped and wait to be freed, so there is nothing to wake up for. */
		if (v.action == SL_WAIT)
			bpf_qdisc_watchdog_schedule(sch, sl_max(v.wake_ns, now + SL_WATCHDOG_FLOOR_NS), 0);
		return NULL;
	}
	held = sl_packet_of(n, v.slot);
	if (!held)
		return NULL;
	skb = bpf_kptr_xchg(&held->skb, NULL);
	sch->q.qlen--;
	sch->qstats.backlog -= v.len_bytes;
	if (sl_unlikely(v.mark))
		sl_owe_mark(sl_at(s->slot, v.slot)->flow_hash, now); /* no program of this type may write to a packet */
	if (!skb)
		return NULL;
	if (sl_events_are_on(now)) {
		u64 wait_ns = sl_since(now, sl_at(s->slot, v.slot)->arrived_ns);
		u32 place = sl_place(s, v.class);

		if (sl_wait_matters(wait_ns, place))
			sl_emit_wait(now, wait_ns, place, v.len_bytes);
		if (sl_unlikely(s->held >> v.class & 1))
			sl_emit(now, SL_EVENT(SL_EVENT_EXHAUSTED, SL_BUCKET_CEIL), place, v.len_bytes, 0);
	}
	if (sl_packet_is_traced(now))
		sl_emit_sent(skb, now, SL_EVENT(SL_EVENT_SENT, 0) | (v.mark ? SL_EVENT_MARKED : 0), sl_place(s, v.class),
			     sl_since(now, sl_at(s->slot, v.slot)->arrived_ns));
	bpf_qdisc_bstats_update(sch, skb);
	return skb;
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
	sch->limit = n;
	return 0;
}

SEC("struct_ops/sl_reset")
void BPF_PROG(sl_qdisc_reset, struct Qdisc *sch)
{
	u32 n = sch->limit, i;
	struct sl_sched *s = sl_state_of(n);
	struct sl_held_packet *held;
	struct sk_buff *skb;

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
		skb = bpf_kptr_xchg(&held->skb, NULL);
		if (skb)
			bpf_kfree_skb(skb);
	}
	sl_clear(s);
}

SEC("struct_ops/sl_destroy")
void BPF_PROG(sl_qdisc_destroy, struct Qdisc *sch)
{
	struct sl_sched *s = sl_state_of(sch->limit);

	if (!s)
		return;
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
