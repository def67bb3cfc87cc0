/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Observation of a packet: it is filtered, counted by key, and perhaps made a record of. Per-CPU state throughout: the programs
 * that include this do not interrupt each other on a CPU.
 */
#pragma once
#include "classify.h"
#include "plain.h"
#include "../../telemetry/bins.h"
#include "../../telemetry/heavy.h"
#include "../../telemetry/sample.h"

/* Set before load. */
const volatile struct sl_telemetry_conf sl_conf = {};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32); /* CPU */
	__type(value, struct sl_telemetry_cpu);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
} seen_by_cpu SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32); /* CPU << SL_CELL_BITS | cell */
	__type(value, struct sl_cell);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
} cells SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32); /* CPU * sl_conf.heavy_sets + set */
	__type(value, struct sl_heavy_set);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
} heavy_sets SEC(".maps");

/* A ring for each CPU, as large as the command says. */
struct sl_ring_map {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__type(key, u32); /* CPU */
	__uint(max_entries, 1);
	__array(values, struct sl_ring_map);
} rings SEC(".maps");

/* A packet and what is known of it. */
struct sl_seen {
	struct sl_headers h;
	u32 bytes;
	u16 segments;
	u16 rule; /* or SL_RULE_UNKNOWN */
	u16 window;
	u8 tcp_flags;
	u8 ttl;
	u8 class; /* SL_CLASS_UNKNOWN */
	u8 verdict;
	u8 direction;
	u8 pad;
};

#define SL_CLASS_UNKNOWN  0xffu
#define SL_RULE_UNKNOWN   0xfffeu
#define SL_RING_FILLED    0 /* include/uapi/linux/bpf.h: BPF_RB_AVAIL_DATA, BPF_RB_NO_WAKEUP, BPF_RB_FORCE_WAKEUP */
#define SL_RING_NO_WAKEUP 1
#define SL_RING_WAKEUP    2

static __always_inline struct sl_telemetry_cpu *sl_this_cpu(u32 cpu)
{
	return bpf_map_lookup_elem(&seen_by_cpu, &cpu);
}

/* The number of a cell, from parts that are told one after the other. keys: those that were asked for. */
#define SL_CELL_PART(PART, value) \
	if (keys & SL_KEY_##PART) \
		cell = cell << SL_BITS_##PART | ((value) & ((1u << SL_BITS_##PART) - 1));

static __always_inline void sl_count_cell(u32 cpu, u32 cell, u32 pkts, u32 bytes)
{
	u32 place = cpu << SL_CELL_BITS | (cell & (SL_CELLS - 1));
	struct sl_cell *c = bpf_map_lookup_elem(&cells, &place);

	if (c) {
		c->pkts += pkts;
		c->bytes += bytes;
	}
}

/* The class of a plain packet from its first words, or SL_CLASS_UNKNOWN: its headers must be parsed. */
static __always_inline u32 sl_class_of_plain(const struct sl_front *f)
{
	struct sl_tables *t = sl_live_tables();
	struct sl_choice choice;

	if (!t || !sl_plain_method(t, 0) || !sl_choose_by_ports(t, f, &choice))
		return SL_CLASS_UNKNOWN;
	return choice.class;
}

/*
 * Counts a plain packet in its cell, where nothing else was asked for. class: what is known. Returns 0 if its headers must be parsed.
 */
static __always_inline int sl_count_plain(const struct sl_front *f, u32 bytes, u32 class, u32 verdict, u32 direction)
{
	u32 keys = sl_conf.plain_keys, cell = 0;

	if (!keys || !sl_is_plain(f))
		return 0;
	if (keys & SL_KEY_CLASS && sl_conf.by_policy && class == SL_CLASS_UNKNOWN) {
		class = sl_class_of_plain(f);
		if (class == SL_CLASS_UNKNOWN)
			return 0;
	}
	SL_CELL_PART(DIRECTION, direction)
	SL_CELL_PART(PROTO, sl_front_proto(f))
	SL_CELL_PART(CLASS, class)
	SL_CELL_PART(DSCP, (u32)(f->head >> 26))
	SL_CELL_PART(VERDICT, verdict)
	SL_CELL_PART(SPORT, sl_front_sport(f))
	SL_CELL_PART(DPORT, sl_front_dport(f))
	sl_count_cell(bpf_get_smp_processor_id(), cell, 1, bytes);
	return 1;
}

/* The class and the rule of a packet by the policy, where nothing has told its class. */
static __always_inline void sl_class_of_headers(struct sl_seen *s)
{
	struct sl_tables *t = sl_live_tables();
	struct sl_choice choice;

	if (!t)
		return;
	choice = sl_choice_of(sl_choose(t, &s->h));
	s->rule = (u16)choice.rule;
	if (s->class == SL_CLASS_UNKNOWN)
		s->class = (u8)choice.class;
}

/* Fields of headers that the parser is to read: those that the policy asks for, and flags of TCP for records. */
static __always_inline u32 sl_fields_to_read(void)
{
	struct sl_tables *t = sl_conf.by_policy ? sl_live_tables() : NULL;

	return (t ? t->fields : 0) | (sl_conf.records == SL_PACKET_RECORDS ? SL_FIELD_TCP_FLAGS : 0);
}

/* Whether the filter lets a packet through. */
static __always_inline int sl_is_wanted(const struct sl_seen *s)
{
	const volatile struct sl_packet_filter *f = &sl_conf.filter;
	u32 fields = f->fields, differ = 0, i;

	if (!fields)
		return 1;
	if (fields & SL_KEY_PROTO)
		differ |= f->value.proto ^ s->h.proto;
	if (fields & SL_KEY_SPORT)
		differ |= (f->value.sport ^ s->h.sport) | !s->h.has_ports;
	if (fields & SL_KEY_DPORT)
		differ |= (f->value.dport ^ s->h.dport) | !s->h.has_ports;
	if (fields & SL_KEY_CLASS)
		differ |= f->value.class ^ s->class;
	if (fields & SL_KEY_DSCP)
		differ |= f->value.dscp ^ s->h.dscp;
	if (fields & SL_KEY_VLAN)
		differ |= f->value.vlan ^ s->h.vlan;
	if (fields & SL_KEY_DIRECTION)
		differ |= f->value.direction ^ s->direction;
#pragma unroll
	for (i = 0; i < 4; i++) {
		if (fields & SL_KEY_SRC)
			differ |= (f->value.src[i] ^ s->h.src[i]) & f->src_mask[i];
		if (fields & SL_KEY_DST)
			differ |= (f->value.dst[i] ^ s->h.dst[i]) & f->dst_mask[i];
	}
	return !differ;
}

/* An address cut to the prefix that was asked for: that of IPv4 and that of IPv6 differ. */
static __always_inline void sl_cut(u32 *to, const u32 *address, const volatile u32 *mask, u32 mask_ipv4)
{
	u32 i;

	if (!address[0] && !address[1] && address[2] == SL_MAPPED) {
		to[0] = to[1] = 0;
		to[2] = SL_MAPPED;
		to[3] = address[3] & mask_ipv4;
		return;
	}
#pragma unroll
	for (i = 0; i < 4; i++)
		to[i] = address[i] & mask[i];
}

static __always_inline void sl_make_key(struct sl_count_key *k, const struct sl_seen *s)
{
	__builtin_memset(k, 0, sizeof(*k));
	if (sl_conf.keys & SL_KEY_SRC)
		sl_cut(k->src, s->h.src, sl_conf.src_mask, sl_conf.src_mask_ipv4);
	if (sl_conf.keys & SL_KEY_DST)
		sl_cut(k->dst, s->h.dst, sl_conf.dst_mask, sl_conf.dst_mask_ipv4);
	if (sl_conf.keys & SL_KEY_SPORT)
		k->sport = s->h.sport;
	if (sl_conf.keys & SL_KEY_DPORT)
		k->dport = s->h.dport;
	if (sl_conf.keys & SL_KEY_VLAN)
		k->vlan = s->h.vlan;
	if (sl_conf.keys & SL_KEY_PROTO)
		k->proto = s->h.proto;
	if (sl_conf.keys & SL_KEY_CLASS)
		k->class = s->class;
	if (sl_conf.keys & SL_KEY_DSCP)
		k->dscp = s->h.dscp;
	if (sl_conf.keys & SL_KEY_DIRECTION)
		k->direction = s->direction;
	if (sl_conf.keys & SL_KEY_VERDICT)
		k->verdict = s->verdict;
}

/* Counts by a key that stands beside others. A function of its own for its stack, verified once. */
SL_GLOBAL int sl_count_heavy(const struct sl_seen *s SL_NONNULL, u32 cpu)
{
	struct sl_telemetry_cpu *c;
	struct sl_heavy_set *set;
	struct sl_count_key k;
	const u64 *word = (const u64 *)&k;
	u32 place;
	u64 gone;

	if (!s)
		return 0;
	sl_make_key(&k, s);
	/* The last word, of small parts, is hashed with each half of the addresses, so that as many keys do as for a flow. */
	place = (sl_keyed_hash(word, 4) ^ sl_keyed_hash(word + 4, 2) * 0x9e3779b1u) & (sl_conf.heavy_sets - 1);
	place += cpu * sl_conf.heavy_sets;
	set = bpf_map_lookup_elem(&heavy_sets, &place);
	if (!set)
		return 0;
	gone = heavy_count(set, &k, s->segments, s->bytes);
	c = gone && sl_conf.sizes ? sl_this_cpu(cpu) : NULL;
	if (c)
		*sl_at(c->flow_size, bin_of(gone)) += 1;
	return 0;
}

static __always_inline void sl_count_seen(struct sl_seen *s, struct sl_telemetry_cpu *c, u32 cpu)
{
	u32 keys = sl_conf.keys, cell = 0;

	if (sl_conf.sizes)
		*sl_at(c->packet_size, bin_of(s->bytes)) += 1;
	if (!keys)
		return;
	if (!sl_conf.dense) {
		sl_count_heavy(s, cpu);
		return;
	}
	SL_CELL_PART(DIRECTION, s->direction)
	SL_CELL_PART(PROTO, s->h.proto)
	SL_CELL_PART(CLASS, s->class)
	SL_CELL_PART(DSCP, s->h.dscp)
	SL_CELL_PART(VERDICT, s->verdict)
	SL_CELL_PART(VLAN, s->h.vlan)
	SL_CELL_PART(SPORT, s->h.sport)
	SL_CELL_PART(DPORT, s->h.dport)
	sl_count_cell(cpu, cell, s->segments, s->bytes);
}

/* A hash of a flow, the same in both directions. */
static __always_inline u32 sl_flow_both_ways(const struct sl_headers *h)
{
	u64 a[3] = { (u64)h->src[1] << 32 | h->src[0], (u64)h->src[3] << 32 | h->src[2], (u64)h->proto << 32 | h->sport };
	u64 b[3] = { (u64)h->dst[1] << 32 | h->dst[0], (u64)h->dst[3] << 32 | h->dst[2], (u64)h->proto << 32 | h->dport };

	/* A sum of two hashes is even in its low bits where both ends are alike: one more multiplication spreads it. */
	return (sl_keyed_hash(a, 3) + sl_keyed_hash(b, 3)) * 0x9e3779b1u;
}

static __always_inline u32 sl_random(struct sl_telemetry_cpu *c)
{
	if (!c->random)
		c->random = (u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32() | 1;
	return sample_draw(&c->random);
}

/* The packets that a record of any packet stands for; 0: this packet becomes none. */
static __always_inline u32 sl_weight_of_any(struct sl_telemetry_cpu *c, u32 cpu)
{
	u32 random;
	void *ring;

	if (sl_conf.sampling == SL_SAMPLE_ADAPTIVE) {
		random = sl_random(c);
		/* Asking the ring touches a line of the cache that its reader writes to. */
		ring = random >> 28 ? NULL : bpf_map_lookup_elem(&rings, &cpu);
		if (ring)
			c->step = sample_step(bpf_ringbuf_query(ring, SL_RING_FILLED), sl_conf.ring_bytes);
		return sample_is_chosen(random, c->step) ? 1u << (c->step & 31) : 0;
	}
	if (sl_conf.one_in <= 1)
		return 1;
	return sample_is_one_in(sl_random(c), sl_conf.one_in) ? sl_conf.one_in : 0;
}

/* The packets that a record stands for where the packet's flow decides; 0: this packet becomes none. */
static __always_inline u32 sl_weight_of_flow(const struct sl_seen *s)
{
	return sample_is_one_in(sl_flow_both_ways(&s->h), sl_conf.one_in) ? sl_conf.one_in : 0;
}

/* Whether a packet is only to be counted, which is done here: it becomes no record, and its headers are not asked for. */
static __always_inline int sl_is_passed_over(u32 bytes, u32 segments)
{
	struct sl_telemetry_cpu *c;
	u32 cpu;

	if (!sl_conf.samples_unseen)
		return 0;
	cpu = bpf_get_smp_processor_id();
	c = sl_this_cpu(cpu);
	if (!c)
		return 1;
	c->weight = sl_weight_of_any(c, cpu);
	if (c->weight)
		return 0;
	c->seen_pkts += segments;
	c->seen_bytes += bytes;
	return 1;
}

/* A record that finds no room. */
static __always_inline void sl_count_missed(struct sl_telemetry_cpu *c, u32 bytes, u32 weight)
{
	c->missed_pkts++;
	c->missed_bytes += bytes;
	c->missed_weight += weight;
	c->missed_since++;
}

/*
 * The reader is woken once for each sixteenth of the ring; it looks by itself from time to time, too. bytes: of a record.
 */
static __always_inline u64 sl_wakes(struct sl_telemetry_cpu *c, u32 bytes)
{
	c->unread_bytes += bytes;
	if (c->unread_bytes < sl_conf.ring_bytes / 16)
		return SL_RING_NO_WAKEUP;
	c->unread_bytes = 0;
	return SL_RING_WAKEUP;
}

/* Makes a record of a packet. A function of its own for its stack, verified once. */
SL_GLOBAL int sl_record(const struct sl_seen *s SL_NONNULL, u32 cpu)
{
	struct sl_telemetry_cpu *c = sl_this_cpu(cpu);
	void *ring = bpf_map_lookup_elem(&rings, &cpu);
	struct sl_packet_record *r;
	u32 weight, i;

	if (!s || !c || !ring)
		return 0;
	weight = c->weight;
	c->sampled_pkts++;
	r = bpf_ringbuf_reserve(ring, sizeof(*r), 0);
	if (!r) {
		sl_count_missed(c, s->bytes, weight);
		return 0;
	}
	r->at_ns = bpf_ktime_get_ns();
	r->length = s->bytes;
	r->weight = weight;
	r->missed = c->missed_since;
	c->missed_since = 0;
#pragma unroll
	for (i = 0; i < 4; i++) {
		r->src[i] = s->h.src[i];
		r->dst[i] = s->h.dst[i];
	}
	r->sport = s->h.sport;
	r->dport = s->h.dport;
	r->window = s->window;
	r->vlan = s->h.vlan;
	r->proto = s->h.proto;
	r->tcp_flags = s->tcp_flags;
	r->ttl = s->ttl;
	r->dscp = s->h.dscp;
	r->ecn = s->h.is_ip >> 1 & 3;
	r->class = s->class;
	r->verdict = s->verdict;
	r->direction = s->direction;
	r->cpu = (u8)cpu;
	r->segments = s->segments;
	bpf_ringbuf_submit(r, sl_wakes(c, sizeof(*r) + 8));
	return 0;
}
