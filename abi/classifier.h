/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The tables of the classifier, what it counts, and how it hands a class on.
 *
 * A rule is a bit. For each field a table gives the row of rules that the field's value satisfies; rows are ANDed and
 * the lowest bit is the rule: the cost does not grow with the number of rules. (The bit-vector scheme of Lakshman and
 * Stiliadis, SIGCOMM 1998.) A row of many rules says first which of its words are not 0, so that only words are read in which
 * there may be a match (Baboescu and Varghese, SIGCOMM 2001). Two buffers of tables stand side by side; one word says which is live.
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

/* The outcomes of parsing a packet's headers. Each is a counter. */
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

enum sl_fragment_kind { SL_WHOLE, SL_FIRST_FRAGMENT, SL_LATER_FRAGMENT };

/* The fields of a packet that the parser reads. */
struct sl_headers {
	u32 src[4]; /* network order; IPv4 as ::ffff:a.b.c.d; zeroes where the packet is not IP */
	u32 dst[4];
	u16 proto; /* enum sl_proto_index */
	u16 sport;
	u16 dport;
	u16 length; /* as the IP header has it, that header included; 0 where the packet is not IP */
	u8 has_ports;
	u8 kind; /* enum sl_parse_kind */
	u8 is_ip; /* 0: no; else 1 | the ECN field (RFC 3168) of the outer IP header << 1 */
	u8 fragment; /* enum sl_fragment_kind */
	u32 fragment_id;
	/* All ones where there is none. */
	u16 vlan; /* the outer tag's */
	u16 tcp_flags;
	u16 icmp; /* type; of ICMPv6 256 more */
	u8 dscp;
	u8 pcp; /* the outer tag's */
	u32 hop_limit; /* of IPv6 outside any tunnel; 0 elsewhere */
	/* Not of the packet's bytes. */
	u32 mark;
	u32 interface; /* ifindex where it came in; 0: it was made here */
};

/* Fields that at least one rule asks for; the others need no look-up. */
enum sl_field {
	SL_FIELD_PROTO = 1 << 0,
	SL_FIELD_SRC = 1 << 1,
	SL_FIELD_DST = 1 << 2,
	SL_FIELD_SPORT = 1 << 3,
	SL_FIELD_DPORT = 1 << 4,
	SL_FIELD_DSCP = 1 << 5,
	SL_FIELD_VLAN = 1 << 6,
	SL_FIELD_PCP = 1 << 7,
	SL_FIELD_TCP_FLAGS = 1 << 8,
	SL_FIELD_ICMP = 1 << 9,
	SL_FIELD_LENGTH = 1 << 10,
	SL_FIELD_INTERFACE = 1 << 11,
	SL_FIELD_MARK = 1 << 12,
	SL_FIELDS = 13 /* how many */
};

enum sl_class_from { SL_FROM_RULES, SL_FROM_DSCP, SL_FROM_MARK };

/* The rules that a value of a field satisfies, of a policy with more than 64 rules. */
struct sl_row {
	u64 summary; /* words that are not 0 */
	u64 word[SL_RULE_WORDS];
};

/* Numbers of 128 bits, divided into ranges that have a row each: addresses (IPv4 as ::ffff:a.b.c.d), or packet lengths. */
struct sl_ranges {
	u32 last; /* how many there are, less 1 */
	u32 pad;
	u16 ipv4[65536]; /* by the first 16 bits of an IPv4 address: the range that the lowest such address is in */
	u64 high[SL_RANGES]; /* where it starts, from 0 on, in host order */
	u64 low[SL_RANGES];
	u16 row[SL_RANGES];
};

/* Which ranges: the index of their map is buffer * SL_RANGE_FIELDS + one of these. */
enum sl_range_field { SL_RANGE_SRC, SL_RANGE_DST, SL_RANGE_LENGTH, SL_RANGE_FIELDS = 4 };

/*
 * The row of a 32-bit key, or none_row. It is in one of the SL_KEY_PROBES slots from (key * factor) >> 22 on. A slot that is not in use
 * holds none_row.
 */
struct sl_keys {
	u32 factor;
	u16 none_row;
	u16 pad;
	u32 key[SL_KEY_SLOTS];
	u16 row[SL_KEY_SLOTS];
};

/* Instead of a rule's number: which built-in one chose the class, or that none did. */
enum sl_no_rule {
	SL_RULE_ARP = SL_RULES,
	SL_RULE_ND, /* neighbour discovery */
	SL_RULE_DHCP,
	SL_RULE_DHCPV6,
	SL_RULE_NONE,
	SL_RULE_COUNTS = SL_RULES + 8
};

struct sl_rule {
	u8 class;
	u8 pad;
	u16 line;  /* in the policy file, 0 if unknown */
	u32 priority;
	char name[SL_NAME_BYTES];
};

struct sl_police_conf {  /* in 1/16 ns; cost per byte << 16; cost 0: not policed */
	u64 cost;
	u64 burst;
};

/*
 * A token bucket before the queues: when it is full again, in 1/16 ns, at the rate that a byte costs so much at. Each word is changed by
 * atomic operations alone, but in a flow's entry that is being replaced.
 */
struct sl_police_bucket {
	u64 tat;
	u64 cost; /* as in sl_police_conf; 0: it has never been charged */
};

/* The bucket of the built-in rules, for each interface and direction: 512 kbit/s with a burst of 64 KiB, some 1,000 ARP packets a second. */
#define SL_CONTROL_COST     (250000ULL << 16)
#define SL_CONTROL_BURST    (65536 * 250000ULL)
/* Buckets that the flows of a class without an entry in the flow table share. */
#define SL_OVERFLOW_BUCKETS 16u

struct sl_mark {
	u32 mark;
	u32 class;
};

/* See bpf/lib/plain.h. */
enum sl_plain {
	SL_PLAIN_BY_PORTS = 1, /* conditions of rules are the protocol and one of the two ports: see sl_tables.by_sport */
	SL_PLAIN_BY_FLOW = 2 /* every packet of a flow has the same class */
};

struct sl_tables {
	u32 abi_version;
	u32 generation;
	u16 tag; /* 1 to 1023: of the policy that handed the class on; differs between policies in force on a machine */
	u16 fields; /* enum sl_field */
	u8 many; /* rows are in their map, since there are more than 64 rules */
	u8 class_from; /* enum sl_class_from */
	u8 default_class;
	u8 drop_malformed;
	u32 rules;
	u32 control_from; /* the first rule that matches everything, or SL_RULES: the built-in ones come before it */
	u32 marks;
	u8 urgent_class;
	u8 buffer; /* which of the SL_BUFFERS this is */
	u8 plain; /* bits of enum sl_plain: how the class of a plain packet is found without parsing it */
	u8 pad;
	u64 classes; /* bitmap of those that the policy has */
	u64 limited[SL_DIRECTIONS]; /* bitmap of those that a bucket before the queues limits */
	u64 metadata; /* bits of struct sl_headers that decide, of the headers beside those that make a flow */
	u64 metadata_mark; /* likewise of the mark (low half) and the interface (high half) */
	u16 src_none_row; /* no address */
	u16 dst_none_row;
	u16 sport_none_row;
	u16 dport_none_row;
	u16 vlan_none_row;
	u16 pcp_none_row;
	u16 dscp_none_row;
	u16 tcp_flags_none_row;
	u16 icmp_none_row;
	u16 length_none_row;
	u16 proto_row[SL_PROTOS];
	u16 dscp_row[64];
	u16 pcp_row[8];
	u16 tcp_flags_row[256];
	u16 icmp_row[512]; /* by type, of ICMPv6 from 256 on */
	u16 vlan_row[4096];
	u16 sport_row[65536];
	u16 dport_row[65536];
	struct sl_keys interface_row;
	struct sl_keys mark_row;
	u64 small[SL_SMALL_ROWS]; /* rows, if not `many` */
	/* By protocol (TCP, UDP) and row of the port: rule << 8 | class of the first rule of that row that asks for no other port. */
	u32 by_sport[2][SL_PORT_ROWS];
	u32 by_dport[2][SL_PORT_ROWS];
	u8 rule_class[SL_RULES];
	struct sl_rule rule[SL_RULES];
	u8 dscp_class[64];
	struct sl_mark mark[SL_MARKS];
	struct sl_police_conf police[SL_DIRECTIONS][SL_CLASSES];
	struct sl_police_conf peak_police[SL_CLASSES]; /* of a policed class, in each direction on its own */
	struct sl_police_conf flow_police[SL_CLASSES]; /* of each flow on its own */
	struct sl_police_conf shared_police[SL_CLASSES]; /* of the class's map in `shared` */
	struct sl_police_conf interface_police[SL_DIRECTIONS];
	/* Of arrivals whose queue no program can look into: a queue of the same rate and length, which drops early. */
	struct sl_police_conf virtual_queue[SL_CLASSES];
	char class_name[SL_CLASSES][SL_NAME_BYTES];
};

struct sl_live {
	u64 word; /* generation << 32 | which of the SL_BUFFERS tables is in force: read and written in one go */
	u64 arrivals; /* 1 + the instance of engine qdisc that queues what arrives; 0: none does */
};

struct sl_flow_key {
	u8 src[16];
	u8 dst[16];
	u16 sport; /* network byte order, as dport; 0 without ports */
	u16 dport;
	u16 proto; /* enum sl_proto_index */
	u8 direction; /* enum sl_direction */
	u8 has_ports;
};

/* The word sl_flow.choice is SL_FLOW_CLAIMED while the entry is being replaced. The bit SL_FLOW_LONG says that the flow has sent super-packets. */
#define SL_FLOW_CLAIMED 1ULL
#define SL_FLOW_LONG    (1ULL << 31)
/* The last word of sl_flow.key has bits of the flow's hash here, beside direction and has_ports. */
#define SL_FLOW_TAG     0xfefe000000000000ULL
#define SL_TICK_SHIFT   20 /* a tick is 2^20 ns */
#define SL_TICKS_AHEAD  1024u /* a time that is ahead by fewer ticks is another CPU's; else it is in the past */

/* A flow in its table: one cache line. See bpf/lib/flow_table.h. */
struct sl_flow {
	u64 key[SL_HASH_WORDS]; /* struct sl_flow_key, with SL_FLOW_TAG */
	u64 choice; /* sl_choice_word of what the rules said, with SL_FLOW_LONG; or SL_FLOW_CLAIMED; 0: no flow */
	u64 bytes;
	u32 pkts; /* low half */
	u32 last_tick; /* of its last packet */
};

/* A flow's second cache line, at which only some packets look. */
struct sl_flow_detail {
	u64 first_ns; /* CLOCK_MONOTONIC */
	u64 metadata; /* of its first packet, as in sl_tables */
	u64 metadata_mark;
	struct sl_police_bucket bucket;
	u32 pkts_high;
	u32 pad[5];
};

#define SL_FLOW_SET_WAYS 4u

/* The places in which a flow may stand. */
struct sl_flow_set {
	struct sl_flow flow[SL_FLOW_SET_WAYS];
	struct sl_flow_detail detail[SL_FLOW_SET_WAYS];
};

#define SL_DEFAULT_FLOW_SETS 16384u /* a power of two, as every number of sets */

/* By which hashes the programs of an interface find flows and hosts. */
struct sl_hash {
	u64 key[SL_HASH_KEYS];
	u32 flow_mask; /* sets of the flow table, less one */
	u32 pad;
};

/* New entries in the flow table are rationed, on each CPU: so a flood of new flows costs what the rules cost, and evicts little. */
struct sl_ration {
	u64 tat_ns;
};

/* The fragments of a packet have its class: only the first has ports. */
struct sl_fragment_key {
	u8 src[16];
	u8 dst[16];
	u32 id; /* of IPv4 with the protocol above it */
	u32 direction; /* enum sl_direction */
};

struct sl_fragment {
	u64 choice; /* as in sl_flow */
};

/* Instead of a VLAN's tag control information: there is none. */
#define SL_NO_TAG 0x10000u

/* The question to sl_explain: the metadata of a packet that is given to it; and the answer. */
struct sl_bucket_seen {
	u64 burst; /* 1/16 ns; 0: the packet is not subject to it */
	u64 owed; /* likewise: what is missing until it is full */
};

struct sl_explanation {
	u32 tag; /* the VLAN's tag control information that the host has taken out, or SL_NO_TAG */
	u32 mark;
	u32 interface;
	u32 direction; /* enum sl_direction */
	struct sl_headers headers;
	u64 by_rules; /* as sl_flow.choice */
	u64 by_flow; /* likewise; 0: the flow is not in the table, or what is there is out of date */
	u64 by_fragment; /* likewise */
	u64 choice; /* that of these which counts */
	u64 flow_pkts;
	u64 flow_bytes;
	struct sl_bucket_seen buckets[SL_LIMITS];
};

struct sl_count {
	u64 pkts;
	u64 bytes;
};

/* Per CPU and class, of the hooks before the queues. */
struct sl_class_count {
	struct sl_count seen;
	struct sl_count refused[SL_LIMIT_PLACES];
	struct sl_count malformed; /* and dropped for it */
};

struct sl_police_state {
	struct sl_police_bucket class[SL_DIRECTIONS][SL_CLASSES];
	struct sl_police_bucket peak[SL_DIRECTIONS][SL_CLASSES];
	struct sl_police_bucket overflow[SL_DIRECTIONS][SL_CLASSES]
					[SL_OVERFLOW_BUCKETS]; /* of the flows that have no entry in the table */
	struct sl_police_bucket interface[SL_DIRECTIONS];
	struct sl_police_bucket virtual_queue[SL_CLASSES];
	struct sl_police_bucket control[SL_DIRECTIONS]; /* of what the built-in rules choose */
};

/* A bucket that interfaces share. */
struct sl_shared_state {
	struct sl_police_bucket bucket[SL_DIRECTIONS];
};

/*
 * Marks of congestion (RFC 3168) that flows have yet to get. The queue decides on them and may not write to a packet; the hook before
 * it may, and marks the flow's next one.
 */
#define SL_OWED 1024u
struct sl_owed_marks {
	u64 until_ns; /* no flow is owed any from then on; 0: none is */
	u64 flow[SL_OWED]; /* hash << 32 | when it was decided, in 2^20 ns; by the hash's last bits */
};

/* Where the hook of arriving packets tells their queue the hosts behind NAT: source's hash << 16 | destination's; 0: as the addresses say. */
#define SL_CB_HOSTS 16 /* bytes into the control block that programs may write */

/*
 * The class, as it travels: tag << 6 | class, in skb->tc_index. IP forwarding leaves the field alone and no socket option
 * reaches it, but root of a container can set it on the container's end of a veth. So a class is believed only of a packet that has
 * arrived at an interface whose arrival hook is ours, or that our own hook has just handed to its queue. From XDP to tc it travels in the
 * packet's metadata.
 */
#define SL_CLASS_BITS     6
#define SL_TAGS           512u
#define SL_TAG_OF_FORWARD SL_TAGS /* beside the tag: the class is that of a forward, which holds whatever the rules ask for */
struct sl_xdp_meta {
	u32 magic;
	u16 handed;
	u16 pad;
};
#define SL_XDP_MAGIC 0x534c5543u

/* An interface whose arrival hook is ours. */
#define SL_ARRIVALS 4096u
struct sl_arrival {
	u32 netns; /* number of its network namespace */
	u32 ifindex;
};
