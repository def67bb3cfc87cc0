/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Memory of earlier packets: by flow, and of the first fragment of the same packet. */
#pragma once
#include "flow_table.h"
#include "maps.h"

/* New flows that a CPU takes into the table: 20,000 in a second, and so many at once. */
#define SL_FLOW_RATION_NS 50000ULL
#define SL_FLOW_BURST_NS  (4096 * SL_FLOW_RATION_NS)

enum sl_flow_state { SL_FLOW_NEW, SL_FLOW_STALE, SL_FLOW_UNLIKE };

/* A packet, as the flow table and the buckets before the queues see it. Small: it is on the stack of the program. */
struct sl_request {
	struct sl_flow_key flow; /* where it is looked at: sl_request_flow */
	u64 now_ns;
	u32 hash; /* of the flow */
	u32 bytes;
	u16 pkts; /* its segments */
	u8 class;
	u8 ecn; /* of its IP header */
	u8 direction; /* enum sl_direction */
	u8 flags; /* enum sl_request_flags, as bits */
	u8 super_packets; /* out: whether the flow has ever sent any, this packet included */
	u8 state; /* out, if the rules must be asked: enum sl_flow_state */
};

enum sl_request_flags {
	SL_QUEUED = 1, /* the packet is at its queue, whose own bucket limits the class */
	SL_CONTROL = 2, /* a built-in rule has chosen its class */
	SL_FLOW_IS_SET = 4, /* flow, hash and ecn are set; used at the queue only */
	SL_RECEIVE_QUEUE = 16 /* times this, on a wire: the receive queue, in the bits above; 15: that, or a later one */
};

/* The receive queue of a packet on a wire. */
static __always_inline u32 sl_receive_queue(const struct sl_request *d)
{
	return d->flags / SL_RECEIVE_QUEUE;
}

/* Headers that rules may ask for and that are not what makes a flow, as sl_tables.metadata has them. */
static __always_inline u64 sl_metadata(const struct sl_headers *h)
{
	return (u64)h->vlan | (u64)h->tcp_flags << 16 | (u64)h->icmp << 32 | (u64)h->dscp << 48 | (u64)h->pcp << 56;
}

static __always_inline u64 sl_metadata_mark(const struct sl_headers *h)
{
	return h->mark | (u64)h->interface << 32;
}

/* Sets the flow of a packet. */
static __always_inline void sl_request_flow(struct sl_request *d, const struct sl_headers *h)
{
	sl_flow_key(&d->flow, h, d->direction);
	d->hash = sl_flow_hash(&d->flow);
}

/*
 * Whether a packet looks like the first of its flow, as far as rules look. With rules for lengths, each packet must ask. h: its headers; they
 * may be NULL where every packet of a flow has the same class.
 */
static __always_inline int sl_flow_is_alike(const struct sl_tables *t, const struct sl_headers *h,
					    const struct sl_flow_detail *detail)
{
	if (sl_likely(t->plain & SL_PLAIN_BY_FLOW))
		return 1;
	return h && !(t->fields & SL_FIELD_LENGTH || (detail->metadata ^ sl_metadata(h)) & t->metadata ||
		      (detail->metadata_mark ^ sl_metadata_mark(h)) & t->metadata_mark);
}

/* The choice of the present policy for packets like the first, or 0. */
static __always_inline u64 sl_flow_choice(const struct sl_tables *t, u64 word)
{
	return word >> 32 == t->generation ? word & ~SL_FLOW_LONG : 0;
}

/*
 * The choice for a packet that the table remembers, or 0. It remembers the rules' answer to the flow's first packet; that holds for those that look
 * the same where rules may look, as long as the policy is the same. A packet whose choice is known is counted in its flow.
 */
SL_GLOBAL u64 sl_known_choice(const struct sl_tables *t SL_NONNULL, const struct sl_headers *h, struct sl_request *x SL_NONNULL)
{
	struct sl_flow_detail *detail;
	struct sl_flow_set *set;
	struct sl_flow *flow;
	u64 word;
	u32 way;

	if (!t || !x)
		return 0;
	x->super_packets = x->pkts > 1;
	x->state = SL_FLOW_NEW;
	set = sl_flow_set_of(x->hash);
	if (!set)
		return 0;
	way = sl_flow_way(set, &x->flow, x->hash);
	if (way >= SL_FLOW_SET_WAYS)
		return 0;
	flow = sl_at(set->flow, way);
	detail = sl_at(set->detail, way);
	word = *(volatile u64 *)&flow->choice;
	if (sl_unlikely(*(volatile u64 *)&flow->key[4] != sl_flow_tail(&x->flow, x->hash)))
		return 0; /* another flow has come there since */
	if (sl_unlikely(x->pkts > 1 && !(word & SL_FLOW_LONG) && word != SL_FLOW_CLAIMED))
		__sync_val_compare_and_swap(&flow->choice, word, word | SL_FLOW_LONG);
	x->super_packets |= (word & SL_FLOW_LONG) != 0;
	x->state = SL_FLOW_UNLIKE;
	if (!sl_flow_is_alike(t, h, detail))
		return 0;
	x->state = SL_FLOW_STALE;
	word = sl_flow_choice(t, word);
	if (word)
		sl_flow_count(flow, detail, x->pkts, x->bytes, x->now_ns);
	return word;
}

/*
 * The choice of sl_known_choice for the common case, without a call: the flow's entry is the first way of its set and of the present policy, and
 * needs no SL_FLOW_LONG. Counts the packet in its flow. Returns 0 otherwise: the caller then asks sl_known_choice. The result may have the
 * bit SL_FLOW_LONG. Valid only under SL_PLAIN_BY_FLOW.
 */
static __always_inline u64 sl_choice_in_first_way(const struct sl_tables *t, const struct sl_request *x)
{
	const u64 *key = (const u64 *)&x->flow;
	u64 tail = sl_flow_tail(&x->flow, x->hash), word;
	struct sl_flow_set *set = sl_flow_set_of(x->hash);
	struct sl_flow *flow;

	if (!set)
		return 0;
	flow = &set->flow[0];
	if (!sl_flow_has_key(flow, key, tail))
		return 0;
	word = *(volatile u64 *)&flow->choice;
	if (word >> 32 != t->generation || *(volatile u64 *)&flow->key[4] != tail)
		return 0;
	if (sl_unlikely(x->pkts > 1 && !(word & SL_FLOW_LONG)))
		return 0;
	sl_flow_count(flow, &set->detail[0], x->pkts, x->bytes, x->now_ns);
	return word;
}

/* The ration of new entries, or NULL: none is left. */
static __always_inline struct sl_ration *sl_flow_ration(u64 now_ns)
{
	u32 zero = 0;
	struct sl_ration *ration = bpf_map_lookup_elem(&flow_ration, &zero);

	return ration && ration->tat_ns <= now_ns + SL_FLOW_BURST_NS ? ration : NULL;
}

/* Whether a new flow gets an entry. */
static __always_inline int sl_flow_is_taken(u64 now_ns)
{
	struct sl_ration *ration = sl_flow_ration(now_ns);

	if (!ration)
		return 0;
	ration->tat_ns = sl_max(ration->tat_ns, now_ns) + SL_FLOW_RATION_NS;
	return 1;
}

/* Enters a flow in its set, in place of the one that has been silent for longest. Not if another CPU enters one there at this moment. */
static __always_inline void sl_flow_enter(struct sl_flow_set *set, const struct sl_headers *h, const struct sl_request *x,
					  u64 word)
{
	u32 tick = sl_tick(x->now_ns), way = sl_flow_victim(set, tick);
	struct sl_flow_detail *detail = sl_at(set->detail, way);
	const u64 *key = (const u64 *)&x->flow;
	struct sl_flow *f = sl_at(set->flow, way);
	u64 before = f->choice;

	if (before == SL_FLOW_CLAIMED || __sync_val_compare_and_swap(&f->choice, before, SL_FLOW_CLAIMED) != before)
		return;
	*(volatile u64 *)&f->key[4] = 0;
	f->key[0] = key[0];
	f->key[1] = key[1];
	f->key[2] = key[2];
	f->key[3] = key[3];
	f->bytes = x->bytes;
	f->pkts = x->pkts;
	f->last_tick = tick;
	detail->first_ns = x->now_ns;
	detail->metadata = sl_metadata(h);
	detail->metadata_mark = sl_metadata_mark(h);
	detail->bucket.tat = 0;
	detail->bucket.cost = 0;
	detail->pkts_high = 0;
	*(volatile u64 *)&f->key[4] = sl_flow_tail(&x->flow, x->hash);
	__sync_lock_test_and_set(&f->choice, word | (x->super_packets ? SL_FLOW_LONG : 0));
}

/*
 * Counts a packet in its flow, whose choice was not known, and stores what the rules have said, if that is for packets like it: the choice of
 * a flow is that of its first packet under a policy.
 */
SL_GLOBAL int sl_remember(const struct sl_headers *h SL_NONNULL, struct sl_request *x SL_NONNULL, u64 word)
{
	struct sl_flow_detail *detail;
	struct sl_flow_set *set;
	struct sl_flow *flow;
	u64 before, lasting;
	u32 way;

	if (!h || !x)
		return 0;
	if (x->state == SL_FLOW_NEW && !sl_flow_is_taken(x->now_ns))
		return 0;
	set = sl_flow_set_of(x->hash);
	if (!set)
		return 0;
	/* Looked for again: another CPU may have entered it meanwhile. */
	way = sl_flow_way(set, &x->flow, x->hash);
	if (way >= SL_FLOW_SET_WAYS) {
		if (x->state == SL_FLOW_NEW)
			sl_flow_enter(set, h, x, word);
		return 0;
	}
	flow = sl_at(set->flow, way);
	detail = sl_at(set->detail, way);
	sl_flow_count(flow, detail, x->pkts, x->bytes, x->now_ns);
	before = flow->choice;
	if (before == SL_FLOW_CLAIMED || before >> 32 == word >> 32)
		return 0;
	lasting = (before & SL_FLOW_LONG) | (x->super_packets ? SL_FLOW_LONG : 0);
	if (x->state == SL_FLOW_STALE) {
		__sync_val_compare_and_swap(&flow->choice, before, word | lasting);
	} else if (__sync_val_compare_and_swap(&flow->choice, before, SL_FLOW_CLAIMED) == before) {
		detail->metadata = sl_metadata(h);
		detail->metadata_mark = sl_metadata_mark(h);
		__sync_lock_test_and_set(&flow->choice, word | lasting);
	}
	return 0;
}

/* The choice for the first fragment of the same packet; or word, which is stored if this is the first. */
SL_GLOBAL u64 sl_choose_by_fragment(const struct sl_headers *h SL_NONNULL, u32 direction, u32 generation, u64 word)
{
	struct sl_fragment_key key = {};
	struct sl_fragment *first;

	if (!h)
		return word;
	__builtin_memcpy(key.src, h->src, 16);
	__builtin_memcpy(key.dst, h->dst, 16);
	key.id = h->fragment_id;
	key.direction = direction;
	if (h->fragment == SL_FIRST_FRAGMENT) {
		struct sl_fragment fresh = { .choice = word };

		bpf_map_update_elem(&fragments, &key, &fresh, BPF_ANY);
		return word;
	}
	first = bpf_map_lookup_elem(&fragments, &key);
	if (first && first->choice >> 32 == generation)
		return first->choice;
	return word;
}
