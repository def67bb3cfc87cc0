/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Memory of earlier packets: by flow, and of the first fragment of the same packet. */
#pragma once
#include "maps.h"
#include "bloom_filter.h"

/* New flows that a CPU takes into the table: 20,000 in a second, and so many at once. */
#define SL_FLOW_RATION_NS 50000ULL
#define SL_FLOW_BURST_NS  (4096 * SL_FLOW_RATION_NS)

enum sl_flow_state { SL_FLOW_NEW, SL_FLOW_STALE, SL_FLOW_UNLIKE };

/* One packet's question to the flow table, and its answer. The struct is small, since it is on the stack of the program. */
struct sl_flow_update {
	u64 now_ns;
	u32 pkts;
	u32 bytes;
	u8 direction;
	u8 super_packets; /* out: whether the flow has ever sent any, this packet included */
	u8 state; /* out, if the rules must be asked: enum sl_flow_state */
};

static __always_inline void sl_count_in_flow(struct sl_flow *flow, struct sl_flow_update *x)
{
	__sync_fetch_and_add(&flow->pkts, x->pkts);
	__sync_fetch_and_add(&flow->bytes, x->bytes);
	flow->last_ns = x->now_ns;
	if (x->pkts > 1)
		flow->super_packets = 1;
	x->super_packets = flow->super_packets != 0;
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

static __always_inline void sl_flow_key(struct sl_flow_key *key, const struct sl_headers *h, u32 direction)
{
	__builtin_memcpy(key->src, h->src, 16);
	__builtin_memcpy(key->dst, h->dst, 16);
	key->sport = h->sport;
	key->dport = h->dport;
	key->proto = h->proto;
	key->direction = direction & 1;
	key->has_ports = h->has_ports;
}

/* Whether a packet looks like the first of its flow, as far as rules look. With rules for lengths, each packet must ask. */
static __always_inline int sl_flow_is_alike(const struct sl_tables *t, const struct sl_headers *h, const struct sl_flow *flow)
{
	return !(t->fields & SL_FIELD_LENGTH || (flow->metadata ^ sl_metadata(h)) & t->metadata ||
		 (flow->metadata_mark ^ sl_metadata_mark(h)) & t->metadata_mark);
}

/* The choice of the present policy for packets like the first, or 0. */
static __always_inline u64 sl_flow_choice(const struct sl_tables *t, const struct sl_flow *flow)
{
	u64 word = flow->choice;

	return word >> 32 == t->generation ? word : 0;
}

/*
 * Counts a packet in its flow, and returns what the rules are known to say of it, or 0. The table remembers their answer to the
 * flow's first packet; it holds for those that look the same where rules may look, as long as the policy is the same.
 */
SL_GLOBAL u64 sl_known_choice(const struct sl_tables *t SL_NONNULL, const struct sl_headers *h SL_NONNULL,
			      struct sl_flow_update *x SL_NONNULL)
{
	struct sl_flow_key key = {};
	struct sl_flow *flow = NULL;
	struct sl_bloom *bloom;
	u32 hash;

	if (!t || !h || !x)
		return 0;
	sl_flow_key(&key, h, x->direction);
	hash = sl_flow_hash(&key);
	bloom = sl_bloom_of(hash);
	if (bloom && sl_bloom_has(bloom, sl_bloom_bit(hash), x->now_ns))
		flow = bpf_map_lookup_elem(&flows, &key);
	if (!flow) {
		x->super_packets = x->pkts > 1;
		x->state = SL_FLOW_NEW;
		return 0;
	}
	sl_count_in_flow(flow, x);
	x->state = SL_FLOW_UNLIKE;
	if (!sl_flow_is_alike(t, h, flow))
		return 0;
	x->state = SL_FLOW_STALE;
	return sl_flow_choice(t, flow);
}

/* Whether a new flow gets an entry. */
static __always_inline int sl_flow_is_taken(u64 now_ns)
{
	u32 zero = 0;
	struct sl_ration *ration = bpf_map_lookup_elem(&flow_ration, &zero);

	if (!ration || ration->tat_ns > now_ns + SL_FLOW_BURST_NS)
		return 0;
	ration->tat_ns = sl_max(ration->tat_ns, now_ns) + SL_FLOW_RATION_NS;
	return 1;
}

/* Enters a flow, or finds its entry again. */
static __always_inline void sl_enter(const struct sl_flow_key *key, const struct sl_headers *h, struct sl_flow_update *x,
				     u64 word)
{
	struct sl_flow fresh = { .pkts = x->pkts,
				 .bytes = x->bytes,
				 .first_ns = x->now_ns,
				 .last_ns = x->now_ns,
				 .choice = word,
				 .metadata = sl_metadata(h),
				 .metadata_mark = sl_metadata_mark(h),
				 .super_packets = x->super_packets };
	u32 hash = sl_flow_hash(key);
	struct sl_bloom *bloom = sl_bloom_of(hash);
	struct sl_flow *flow;

	if (bloom)
		sl_bloom_add(bloom, sl_bloom_bit(hash), x->now_ns);
	if (!bpf_map_update_elem(&flows, key, &fresh, BPF_NOEXIST))
		return;
	flow = bpf_map_lookup_elem(&flows, key);
	if (!flow)
		return;
	sl_count_in_flow(flow, x);
	if (flow->metadata == fresh.metadata && flow->metadata_mark == fresh.metadata_mark)
		flow->choice = word;
}

/* Stores the rules' choice for the flow. */
SL_GLOBAL int sl_remember(const struct sl_headers *h SL_NONNULL, struct sl_flow_update *x SL_NONNULL, u64 word)
{
	struct sl_flow_key key = {};
	struct sl_flow *flow;

	if (!h || !x)
		return 0;
	if (x->state == SL_FLOW_NEW && !sl_flow_is_taken(x->now_ns))
		return 0;
	sl_flow_key(&key, h, x->direction);
	if (x->state == SL_FLOW_NEW) {
		sl_enter(&key, h, x, word);
		return 0;
	}
	flow = bpf_map_lookup_elem(&flows, &key);
	if (flow)
		flow->choice = word;
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
