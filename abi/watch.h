/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Messages of programs to listeners, through rings: rare events (map `events`), and the fate of traced packets (`traces`). Programs send
 * them while a listener's lease lasts, and pay a few comparisons otherwise: a listener that dies leaves nothing switched on.
 */
#pragma once
#include "types.h"
#include "limits.h"

/* The argument of sl_emit (bpf/lib/events.h): a kind, and its reason. */
#define SL_EVENT(kind, reason) ((u32)(kind) << 8 | (u32)(reason))

enum sl_event_kind {
	SL_EVENT_DROPS, /* a class has begun to drop: reason is an enum sl_refusal */
	SL_EVENT_EXHAUSTED, /* a bucket has: reason is an enum sl_limit, or an enum sl_bucket_kind */
	SL_EVENT_LATE, /* a class's packets have waited longer than they should for SL_LATE_NS */
	SL_EVENT_SENT, /* a packet has left the queue; of engine tc, it was given to it */
	SL_EVENT_DROPPED, /* a packet was dropped: reason is an enum sl_refusal */
	SL_EVENT_KINDS
};

/* The buckets that can be empty: those before the queues by enum sl_limit, and those of the queue. */
enum sl_bucket_kind { SL_BUCKET_CEIL = 8, SL_BUCKET_PEAK };

/* An event is sent when its kind happens to a class, in a direction, after so long a time in which it did not. */
#define SL_EVENT_GAP_NS 1000000000ULL
#define SL_LATE_NS      100000000ULL

struct sl_event {
	u64 at_ns; /* CLOCK_MONOTONIC */
	u64 wait_ns; /* in the queue: LATE, SENT, and DROPPED from there */
	u32 kind; /* enum sl_event_kind */
	u32 len_bytes; /* of the packet, where there is one */
	u8 class;
	u8 direction; /* enum sl_direction */
	u8 reason;
	u8 marked; /* SENT: its flow gets a mark of congestion for it */
	u32 pad;
};

/* First bytes of a packet that its event carries. */
#define SL_PACKET_EVENT_BYTES 128u
struct sl_packet_event {
	struct sl_event event;
	u32 mark;
	u32 interface; /* ifindex where it came in; 0: it was made here */
	u32 tag; /* the VLAN's tag control information that the host has taken out, or SL_NO_TAG */
	u16 captured; /* how many of the bytes there are */
	u16 pad;
	u8 bytes[SL_PACKET_EVENT_BYTES];
};

/* The last events of a class. */
struct sl_last_events {
	u64 last_ns[4]; /* by enum sl_event_kind, those of a class: when it happened last */
	u64 late_since_ns; /* since when its packets have waited too long; 0: they do not */
};

struct sl_watch {
	u64 events_until_ns; /* the end of the lease for events */
	u64 packets_until_ns; /* and for traces, of one packet in one_in */
	u32 one_in;
	u32 left; /* packets until the next; a race costs one */
	u32 fields; /* a packet must be of this flow, as far as these enum sl_field say: SRC, DST, SPORT, DPORT, PROTO */
	u16 proto;
	u16 sport;
	u16 dport;
	u16 pad;
	u32 pad2;
	u32 src[4]; /* as in sl_headers */
	u32 dst[4];
	u64 late_ns[SL_CLASSES]; /* the wait that is too long; 0: none is */
	struct sl_last_events last[2][SL_CLASSES]; /* by direction */
};
