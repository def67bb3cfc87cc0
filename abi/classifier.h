/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The tables of the classifier, what it counts, and how it hands a class on.
 *
 * A rule is a bit. For each field a table gives the row of rules that the field's value satisfies; rows are ANDed and
 * the lowest bit is the rule: the cost does not grow with the number of rules. (The bit-vector scheme of Lakshman and
 * Stiliadis, SIGCOMM 1998.) Two buffers of tables stand side by side; one word says which is live.
 */
#pragma once
#include "types.h"
#include "limits.h"
#include "reason.h"

enum sl_direction { SL_EGRESS, SL_INGRESS };

/* Index into proto_row: an IP protocol number, or one of these. */
enum sl_proto_index {
	SL_PROTO_TCP = 6,
	SL_PROTO_ND = 256, /* ICMPv6 neighbour discovery, RFC 4861 (types 133 to 137) */
	SL_PROTO_ARP = 257,
	SL_PROTO_OTHER = 258, /* neither IP nor ARP */
	SL_PROTOS = 512
};

/* What became of the headers of a packet. Each is a counter. */
#define SL_PARSE_KINDS(X)                                       \
	X(IPV4, ipv4, 0)                                        \
	X(IPV6, ipv6, 0)                                        \
	X(ARP, arp, 0)                                          \
	X(OTHER, other, 0)                                      \
	X(FRAGMENT, fragment, 0) /* not the first: no ports */  \
	X(TRUNCATED_L2, truncated_l2, 1)                        \
	X(TRUNCATED_L3, truncated_l3, 1)                        \
	X(TRUNCATED_L4, truncated_l4, 1)                        \
	X(BAD_IPV4, bad_ipv4, 1) /* version or header length */ \
	X(BAD_IPV6, bad_ipv6, 1) /* version */                  \
	X(DEEP_IPV6, deep_ipv6, 1) /* more extension headers than are walked */

enum sl_parse_kind {
#define X(upper, lower, malformed) SL_PARSE_##upper,
	SL_PARSE_KINDS(X)
#undef X
		SL_PARSES
};

/* The kinds that are malformed or truncated, as bits. */
enum sl_malformed {
#define X(upper, lower, malformed) malformed << SL_PARSE_##upper |
	SL_MALFORMED = SL_PARSE_KINDS(X) 0
#undef X
};

/* Fields that at least one rule asks for; the others need no look-up. */
enum sl_field {
	SL_FIELD_PROTO = 1 << 0,
	SL_FIELD_SRC = 1 << 1,
	SL_FIELD_DST = 1 << 2,
	SL_FIELD_SPORT = 1 << 3,
	SL_FIELD_DPORT = 1 << 4,
	SL_FIELD_DSCP = 1 << 5,
	SL_FIELD_VLAN = 1 << 6
};

enum sl_class_from { SL_FROM_RULES, SL_FROM_DSCP, SL_FROM_MARK };

struct sl_row {
	u64 word[SL_RULE_WORDS];
};

struct sl_rule {
	u8 class;
	u8 builtin;  /* not the user's: ARP, neighbour discovery, DHCP */
	u16 line;  /* in the policy file, 0 if unknown */
	u32 priority;
	char name[SL_NAME_BYTES];
};

struct sl_police_conf {  /* in 1/16 ns; cost per byte << 16; cost 0: not policed */
	u64 cost;
	u64 burst;
};

struct sl_mark {
	u32 mark;
	u32 class;
};

struct sl_tables {
	u32 abi_version;
	u32 generation;
	u16 tag;  /* 1 to 1023: who handed the class on; differs between policies in force on a machine */
	u16 fields;  /* enum sl_field */
	u8 rule_words;  /* words of a row that are in use */
	u8 class_from;  /* enum sl_class_from */
	u8 default_class;
	u8 drop_malformed;
	u32 rules;
	u32 marks;
	u64 classes;  /* bitmap of those that the policy has */
	u16 src_none_row; /* no prefix covers the address, or there is none */
	u16 dst_none_row;
	u16 sport_none_row;
	u16 dport_none_row;
	u16 vlan_none_row;
	u16 dscp_none_row;
	u8 urgent_class;
	u8 pad[3];
	u16 proto_row[SL_PROTOS];
	u16 dscp_row[64];
	u16 vlan_row[4096];
	u16 sport_row[65536];
	u16 dport_row[65536];
	struct sl_row row[SL_ROWS];
	struct sl_rule rule[SL_RULE_SLOTS];
	u8 dscp_class[64];
	struct sl_mark mark[SL_MARKS];
	struct sl_police_conf police[SL_DIRECTIONS][SL_CLASSES];
	char class_name[SL_CLASSES][SL_NAME_BYTES];
};

struct sl_live {
	u64 word; /* generation << 32 | which of the SL_BUFFERS tables is in force: read and written in one go */
};

/* Longest-prefix key: IPv4 addresses as ::ffff:a.b.c.d, preceded by the buffer that the prefix belongs to. */
struct sl_prefix {
	u32 prefix_bits; /* those of buffer (32) included */
	u32 buffer;
	u8 addr[16];
};

struct sl_flow_key {
	u8 src[16];
	u8 dst[16];
	u16 sport;  /* host order, 0 without ports */
	u16 dport;
	u16 proto;  /* enum sl_proto_index */
	u8 direction;  /* enum sl_direction */
	u8 pad;
};

struct sl_flow {
	u64 pkts;
	u64 bytes;
	u64 first_ns;  /* CLOCK_MONOTONIC */
	u64 last_ns;
	u16 rule;  /* index into rule, or SL_RULES: none matched */
	u8 class;
	u8 super_packets; /* it has sent segments to be split */
	u32 pad;
};

struct sl_count {
	u64 pkts;
	u64 bytes;
};

/* Per CPU and class, of the hooks before the queues. */
struct sl_class_count {
	struct sl_count seen;
	struct sl_count policed;
	struct sl_count malformed; /* and dropped for it */
};

/* Time at which a policer's bucket is full again, in 1/16 ns; one word, changed by compare-and-swap alone. */
struct sl_police_state {
	u64 tat[SL_DIRECTIONS][SL_CLASSES];
};

/*
 * The class, as it travels: tag << 6 | class, in skb->tc_index. IP forwarding leaves the field alone, no socket option
 * reaches it, and a policy trusts no tag but its own. From XDP to tc it travels in the packet's metadata.
 */
#define SL_CLASS_BITS 6
#define SL_TAGS       1024u
struct sl_xdp_meta {
	u32 magic;
	u16 handed;
	u16 pad;
};
#define SL_XDP_MAGIC 0x534c5543u
