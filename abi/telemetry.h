/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Counts by key, and records of packets, of the programs behind `sluice count`, `features` and `capture` (bpf/telemetry.bpf.c). Each CPU has
 * counts and a ring of its own, so CPUs share no cache line.
 */
#pragma once
#include "types.h"
#include "limits.h"

/* The parts of a key, by bit. */
enum sl_key_part {
	SL_KEY_DIRECTION = 1 << 0,
	SL_KEY_PROTO = 1 << 1,
	SL_KEY_CLASS = 1 << 2,
	SL_KEY_DSCP = 1 << 3,
	SL_KEY_VERDICT = 1 << 4,
	SL_KEY_VLAN = 1 << 5,
	SL_KEY_SPORT = 1 << 6,
	SL_KEY_DPORT = 1 << 7,
	SL_KEY_SRC = 1 << 8,
	SL_KEY_DST = 1 << 9
};

/* The key of a count. Parts that were not asked for are 0; addresses are cut to the prefix that was asked for. */
struct sl_count_key {
	u32 src[4]; /* network order; IPv4 as ::ffff:a.b.c.d; zeroes where the packet is not IP */
	u32 dst[4];
	u16 sport; /* 0 without ports */
	u16 dport;
	u16 vlan; /* id; 0xffff without a tag */
	u16 proto; /* enum sl_proto_index */
	u8 class; /* 0xff: not known */
	u8 dscp; /* 0xff where the packet is not IP */
	u8 direction; /* enum sl_direction */
	u8 verdict; /* enum sl_verdict */
	u32 pad;
};

/* The fate of a packet, as far as its observer knows it. */
enum sl_verdict {
	SL_VERDICT_UNKNOWN, /* a later stage decides */
	SL_VERDICT_PASSED, /* the arrival hook has let it through */
	SL_VERDICT_REFUSED /* and from here on an enum sl_refusal is added: the arrival hook has dropped it */
};

struct sl_cell {
	u64 pkts;
	u64 bytes;
};

/*
 * Where the parts of a key have at most SL_CELL_BITS together, every key has a cell of its own: its parts, in the order of enum sl_key_part and
 * each in so many bits, are the cell's number. What is not there has the last value that its bits can hold.
 */
#define SL_KEY_BITS(X)  \
	X(DIRECTION, 1) \
	X(PROTO, 9)     \
	X(CLASS, 7)     \
	X(DSCP, 7)      \
	X(VERDICT, 6)   \
	X(VLAN, 13)     \
	X(SPORT, 16)    \
	X(DPORT, 16)
enum sl_key_bits {
#define X(PART, bits) SL_BITS_##PART = bits,
	SL_KEY_BITS(X)
#undef X
};
#define SL_CELL_BITS 16u
#define SL_CELLS     (1u << SL_CELL_BITS)

/*
 * A key that is counted beside others for which there is no place: see telemetry/heavy.h. What was counted is at least pkts, and at most
 * pkts + pkts_missed; likewise bytes.
 */
struct sl_heavy {
	struct sl_count_key key;
	u64 pkts; /* 0: the place is free */
	u64 bytes;
	u64 pkts_missed;
	u64 bytes_missed;
};

#define SL_HEAVY_WAYS 8u
struct sl_heavy_set {
	u64 pkts_gone; /* at most so many of any key that is not in the set */
	u64 bytes_gone;
	struct sl_heavy way[SL_HEAVY_WAYS];
};

/* Sizes in bins of an eighth of a power of two at most: below 8 exact, then 8 bins for each power. */
#define SL_SIZE_BINS 512u

/* The sums of a CPU. */
struct sl_telemetry_cpu {
	u64 seen_pkts; /* what the filter lets through */
	u64 seen_bytes;
	u64 filtered_pkts; /* what it does not */
	u64 sampled_pkts; /* records that were to be sent */
	u64 missed_pkts; /* and found no room */
	u64 missed_bytes;
	u64 missed_weight; /* the packets that these stood for */
	u64 truncated_pkts; /* captured in part, since they are longer than the snap length */
	u32 missed_since; /* records that found no room since the last that did */
	u32 unread_bytes; /* of records since the reader was woken last */
	u64 random; /* state of telemetry/sample.h's sample_draw */
	u32 step; /* of adaptive sampling, as it was when the ring was asked last */
	u32 weight; /* of the packet at hand; 0: it becomes no record */
	u64 packet_size[SL_SIZE_BINS]; /* packets, by their bytes */
	u64 flow_size[SL_SIZE_BINS]; /* keys that gave their place to another, by their bytes */
};

/* A packet. 72 bytes. */
struct sl_packet_record {
	u64 at_ns; /* CLOCK_MONOTONIC */
	u32 length; /* bytes, with the link header */
	u32 weight; /* packets that it stands for */
	u32 missed; /* records of the same CPU between the last one and this that found no room */
	u32 src[4]; /* as in struct sl_count_key */
	u32 dst[4];
	u16 sport;
	u16 dport;
	u16 window; /* of TCP; 0 elsewhere, and inside tunnels */
	u16 vlan; /* id; 0xffff without a tag */
	u16 proto; /* enum sl_proto_index */
	u8 tcp_flags; /* 0 where the packet is not TCP */
	u8 ttl; /* or hop limit, of the outer header; 0 where the packet is not IP */
	u8 dscp; /* 0xff where the packet is not IP */
	u8 ecn;
	u8 class; /* 0xff: not known */
	u8 verdict; /* enum sl_verdict */
	u8 direction; /* enum sl_direction */
	u8 cpu; /* low byte of its number */
	u16 segments; /* frames that a super-packet becomes */
};

/* A whole packet, or its first bytes; the record is followed by them, in a room of one of a few sizes. */
struct sl_captured {
	u64 at_ns;
	u32 length;
	u32 captured; /* bytes of it that follow */
	u32 missed; /* as above */
	u32 interface; /* ifindex */
	u16 rule; /* or enum sl_no_rule; 0xfffe: not known */
	u16 vlan_tci; /* what the host has taken out of the packet */
	u8 has_vlan;
	u8 class;
	u8 verdict;
	u8 direction;
	u32 mark;
	u32 weight; /* packets that it stands for */
};
#define SL_CAPTURE_MOST 65536u /* bytes of a packet */

/* The bytes in front of a packet that was taken from the host. A frame without the mark of the run has none. */
struct sl_stamp {
	u64 at_ns; /* CLOCK_MONOTONIC */
	u32 mark;
	u32 pad;
};

/* How packets are chosen for records. */
enum sl_sampling {
	SL_SAMPLE_PACKETS, /* 1 in n, at random */
	SL_SAMPLE_FLOWS, /* every packet of 1 in n flows, by a keyed hash */
	SL_SAMPLE_ADAPTIVE /* 1 in 2^k, at random: k follows the fill of the ring (telemetry/sample.h) */
};

/* A filter: a packet must have these values, as far as the enum sl_key_part in fields say. */
struct sl_packet_filter {
	u32 fields;
	u32 pad;
	struct sl_count_key value;
	u32 src_mask[4];
	u32 dst_mask[4];
};

/* The request that a program serves. It is written before the program is loaded, so that the verifier removes the rest of the program. */
struct sl_telemetry_conf {
	u32 keys; /* enum sl_key_part; 0: nothing is counted */
	u32 plain_keys; /* the same where a plain packet is counted from its first words alone; else 0 */
	u32 dense; /* every key has a cell of its own */
	u32 heavy_sets; /* a power of two: sets of each CPU */
	u32 sizes; /* sizes of packets are counted, and sizes of keys that give way */
	u32 records; /* enum sl_records */
	u32 sampling; /* enum sl_sampling */
	u32 samples_unseen; /* no header is asked for before a packet is chosen for a record */
	u32 one_in;
	u32 ring_bytes; /* of a CPU */
	u32 snap_bytes;
	u32 by_policy; /* classes are known: the tables of a policy are shared */
	u32 src_mask[4]; /* prefixes of keys, in network order; of IPv4 behind ::ffff */
	u32 dst_mask[4];
	u32 src_mask_ipv4; /* of the last word */
	u32 dst_mask_ipv4;
	struct sl_packet_filter filter;
};

enum sl_records { SL_NO_RECORDS, SL_PACKET_RECORDS, SL_CAPTURES };

/* The lease of a command that observes, in the map `observing`: arrival hooks call its program until then. */
struct sl_observing {
	u64 until_ns;
};

/* The message of an arrival hook to the observer that it calls, per CPU. */
struct sl_observed {
	u8 class; /* 0xff: not known */
	u8 verdict;
	u16 pad;
	u32 answer; /* of the hook: the observer's own, or where the packet goes after it */
};
