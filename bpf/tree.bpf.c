// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Engine qdisc, for a tree of classes: sched/hierarchy.h as a Linux qdisc, at the root of an interface, or below mq at each of its tx queues. A
 * packet's mark, VLAN or address leads to the leaf of its subscriber or host. If that leaf is divided, the class in tc_index, which a hook before
 * the queue has set, leads to the part. Slot i of tree n holds an skb, as in qdisc.bpf.c. Runs from Linux 6.17 (CONFIG_NET_SCH_BPF).
 *
 * Trees below mq share the rate of the link (sched/shared_tree.h). Each has all nodes. A filter leads packets to the queue of their leaf's tree
 * (steer.bpf.c).
 *
 * The loader writes the tree and the table of addresses before it makes the qdisc. Later it writes changes of the tree into a ring, and the qdisc
 * makes them under its lock.
 */
#include "lib/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "../sched/tree_change.h"

#define ENOSPC 28
#define EBUSY  16

/* Set before load. */
const volatile u32 sl_leaf_by_source =
	0; /* the subscriber is the packet's source: the interface is on the side of the internet */
const volatile u32 sl_default_leaf =
	SL_FIRST_INNER - 1; /* of packets whose address no subscriber has, and of those without one */
const volatile u32 sl_l3_type = 0; /* the device has no Ethernet header */
const volatile u32 sl_marks = 0;  /* a hook before the queue pays marks */
const volatile u32 sl_frame_bytes = 1518; /* longer packets may be super-packets */
const volatile u32 sl_trees = 0;  /* below mq, at the first so many queues; 0: there is one, at the root */

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#include "lib/queue.h"
#include "lib/leaf_of.h"
#include "lib/leaf_packet.h"
#include "lib/tree_changes.h"
#include "lib/shared_trees.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, struct sl_held_packet);
	__uint(max_entries, SL_TREE_SLOTS);
} packets SEC(".maps");

u32 sl_used[SL_SHARED_TREES];

/* The number of a qdisc's tree. */
static __always_inline u32 sl_number(const struct Qdisc *sch)
{
	return sl_trees ? sch->limit - 1 : 0;
}

static __always_inline struct sl_tree *sl_tree_of(u32 n)
{
	return bpf_map_lookup_elem(&tree, &n);
}

/* Makes the changes that wait for tree n, some of them. */
static __always_inline void sl_catch_up(struct sl_tree *t, u32 n, u64 now)
{
	struct sl_tree_changes *ring = bpf_map_lookup_elem(&changes, &n);

	if (ring && sl_unlikely(*(volatile u64 *)&ring->written != ring->made))
		tree_catch_up(t, ring, now);
}

static __always_inline struct sl_held_packet *sl_packet_of(u32 n, u32 slot)
{
	u32 key = n * SL_TREE_SLOTS + slot;

	return bpf_map_lookup_elem(&packets, &key);
}

/* The packets that CoDel or an overflow has dropped are freed. Those of a burst that are left are found by the next call. */
static __noinline void sl_free_dropped(struct Qdisc *sch, struct sl_tree *t, u32 n)
{
	struct sl_held_packet *held;
	struct sk_buff *skb;
	u32 i, slot;

	bpf_for (i, 0, SL_OVERFLOW_PKTS) {
		slot = sl_reap(t);
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
		bpf_kfree_skb(skb);
	}
}

/* Sets what the core must know of a packet. */
SL_GLOBAL int sl_meet(struct sk_buff *skb __arg_trusted, struct sl_tree *t SL_NONNULL, struct sl_packet *p SL_NONNULL, u64 now_ns)
{
	struct sl_ends ends;
	u32 leaf, vlan;
	u64 nfct;

	if (!sl_read_plain_ends(skb, &ends))
		sl_read_ends(skb, &ends);
	nfct = skb->_nfct;
	if (sl_leaf_by_source && nfct & ~SL_CT_INFO)
		sl_source_before_nat(nfct, &ends);
	vlan = skb->vlan_proto ? skb->vlan_tci & 0xfff : ends.vlan; /* the host has taken the outer tag out */
	leaf = sl_leaf_of_packet(t, sl_leaf_by_source ? ends.src : ends.dst, skb->tc_index, skb->mark, vlan);
	p->class = leaf == SL_NO_NODE ? sl_default_leaf : leaf;
	sl_identify_ends(&ends, p);
	p->ecn = sl_marks && ends.ecn && sl_takes_marks(p->flow_hash, now_ns);
	return 0;
}

SEC("struct_ops/sl_enqueue")
int BPF_PROG(sl_tree_enqueue, struct sk_buff *skb, struct Qdisc *sch, struct bpf_sk_buff_ptr *to_free)
{
	u32 n = sl_number(sch);
	struct sl_tree *t = sl_tree_of(n);
	struct sl_held_packet *held;
	struct sl_packet packet;
	u64 now;
	s32 slot;

	if (!t)
		goto drop;
	now = bpf_ktime_get_ns();
	sl_catch_up(t, n, now);
	sl_meet(skb, t, &packet, now);
	packet.len_bytes = sl_skb_bytes(skb);
	packet.segments = sl_skb_segments(skb, packet.len_bytes);
	slot = tree_enqueue(t, &packet, now);
	if (sl_unlikely(t->dropped_slots))
		sl_free_dropped(sch, t, n);
	if (slot < 0)
		goto drop;
	held = sl_packet_of(n, (u32)slot);
	if (!held)
		goto drop;
	return sl_hold_packet(sch, held, skb, packet.len_bytes, to_free);
drop:
	return sl_drop_packet(sch, skb, to_free);
}

SEC("struct_ops/sl_dequeue")
struct sk_buff *BPF_PROG(sl_tree_dequeue, struct Qdisc *sch)
{
	struct sl_held_packet *held;
	struct sl_tree_verdict v = {};
	struct sk_buff *skb;
	struct sl_tree *t;
	u32 n = sl_number(sch);
	u64 now;

	if (!sch->q.qlen) { /* every second call: the kernel asks until there is nothing */
		if (sl_trees)
			sl_rest(n);
		return NULL;
	}
	t = sl_tree_of(n);
	if (!t)
		return NULL;
	now = bpf_ktime_get_ns();
	sl_catch_up(t, n, now);
	if (sl_trees)
		sl_shared_dequeue(t, n, &v, now);
	else
		v = tree_dequeue(t, now);
	if (sl_unlikely(t->dropped_slots))
		sl_free_dropped(sch, t, n);
	if (v.action != SL_TREE_SEND) {
		sl_wait(sch, v.action == SL_TREE_WAIT, v.wake_ns, now);
		return NULL;
	}
	held = sl_packet_of(n, v.slot);
	if (!held)
		return NULL;
	skb = sl_take_packet(sch, held, v.len_bytes);
	if (sl_unlikely(v.mark))
		sl_owe_mark(sl_at(t->slot, v.slot)->flow_hash, now); /* no program of this type may write to a packet */
	if (!skb)
		return NULL;
	bpf_qdisc_bstats_update(sch, skb);
	return skb;
}

SEC("struct_ops/sl_init")
int BPF_PROG(sl_tree_init, struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	u32 n = sl_trees ? (sch->parent & 0xffff) - 1 : 0; /* mq numbers queues from 1 (mq_init of net/sched/sch_mq.c) */

	sch->limit = 0; /* a failed init is destroyed all the same */
	if (n >= sl_max(sl_trees, 1))
		return -ENOSPC;
	if (__sync_val_compare_and_swap(sl_at(sl_used, n), 0, 1))
		return -EBUSY;
	sch->limit = n + 1;
	return 0;
}

SEC("struct_ops/sl_reset")
void BPF_PROG(sl_tree_reset, struct Qdisc *sch)
{
	u32 i, n = sl_number(sch);
	struct sl_tree *t = sl_tree_of(n);
	struct sl_held_packet *held;

	sch->q.qlen = 0;
	sch->qstats.backlog = 0;
	if (!t || !sch->limit)
		return;
	bpf_for (i, 0, SL_TREE_SLOTS) {
		if (i >= t->fresh)
			break;
		held = sl_packet_of(n, i);
		if (!held)
			break;
		sl_free_held(held);
	}
	tree_clear(t, bpf_ktime_get_ns());
	if (sl_trees)
		sl_leave(n);
}

SEC("struct_ops/sl_destroy")
void BPF_PROG(sl_tree_destroy, struct Qdisc *sch)
{
	if (sch->limit)
		*sl_at(sl_used, sch->limit - 1) = 0;
}

/* The loader sets the name under which tc knows it. */
SEC(".struct_ops.link")
struct Qdisc_ops sluice = {
	.enqueue = (void *)sl_tree_enqueue,
	.dequeue = (void *)sl_tree_dequeue,
	.init = (void *)sl_tree_init,
	.reset = (void *)sl_tree_reset,
	.destroy = (void *)sl_tree_destroy,
	.id = "sluice",
};
