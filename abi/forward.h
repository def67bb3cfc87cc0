/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Forwards (a listen address and port whose packets go on to targets), and the connections that pass through them. See
 * forward/README.md.
 */
#pragma once
#include "types.h"
#include "limits.h"

#define SL_FORWARDS            16384u /* of a network namespace */
#define SL_LISTENS             131072u /* addresses and ports of all forwards */
#define SL_TARGETS             65536u
#define SL_TARGET_SLOTS        262144u
#define SL_DEFAULT_CONNECTIONS 65536u /* a power of two, as every number of connections */
#define SL_CONNECTIONS_PER_SET 4u
#define SL_CLIENTS             65536u /* counters of established connections, by a keyed hash of the client's address */
#define SL_CLIENT_SHARE        64u /* a client's established connections that do not give way: one in so many of the table's */

/* An end of a connection. IPv4 as ::ffff:a.b.c.d; both members in network byte order. */
struct sl_end {
	u32 address[4];
};

/* Addresses, ports and protocol of a packet. */
struct sl_tuple {
	struct sl_end src;
	struct sl_end dst;
	u16 sport; /* network byte order, as dport */
	u16 dport;
	u32 proto;
} __attribute__((aligned(8)));

/* Why a packet of a forward's is not passed on. */
enum sl_not_forwarded {
	SL_NOT_FORWARDED_FULL, /* no record, or no place, that another connection would give way in */
	SL_NOT_FORWARDED_TWIN, /* another CPU has just entered the same connection, or taken the same record: the sender tries again */
	SL_NOT_FORWARDED_PORTS, /* no port is free on the way to the target */
	SL_NOT_FORWARDED_FRAGMENT, /* a later fragment, whose first has not come */
	SL_NOT_FORWARDED_UNKNOWN, /* of no connection, and does not begin one: the stack has it */
	SL_NOT_FORWARDED_SOURCE, /* its source cannot be there, by the routes: the stack has it */
	SL_NOT_FORWARDED_FAMILY, /* it cannot be translated between IPv4 and IPv6 */
	SL_NOT_FORWARDED_OLD, /* its time to live, or hop limit, ends here: its sender is told */
	SL_NOT_FORWARDED_LONG, /* it is longer than the way takes, and must not be cut into fragments: its sender is told */
	SL_NOT_FORWARDED_CUT, /* from the target of a connection that a change of the policy has cut */
	SL_NOT_FORWARDED_UNWRITTEN, /* the kernel has refused to change it, or to send it on */
	SL_NOT_FORWARDED_REASONS
};

/* Where clients connect to: the key of `listens`. */
struct sl_listen {
	struct sl_end end; /* zeroes: every address of the interface */
	u32 ifindex; /* where their packets arrive */
	u16 port; /* network byte order; 0: some port, for fragments that have none */
	u8 proto; /* 6 or 17 */
	u8 ipv6; /* the family, where `end` is zeroes */
};

/* Where sockets of this host connect to: the key of `own_listens`. */
struct sl_own_listen {
	struct sl_end end; /* an address of this host */
	u16 port; /* network byte order */
	u8 proto;
	u8 pad;
};

/* A forward: where its new connections go. Where a forward is changed, another one takes its place in `listens`. */
struct sl_forward {
	u32 targets; /* how many there are; 0: no forward */
	u32 first_target;
	u32 first_slot; /* the target by a hash of the client: consistent hashing */
	u32 slots; /* how many; 0: there is one target */
	u32 ifindex; /* the interface whose policy has the forward */
	u16 first_port; /* host byte order: of the listen ports */
	u8 flags; /* enum sl_forward_flag */
	u8 class; /* SL_CLASSES: by the rules */
	u64 digest; /* of all that the policy and the routes say of it */
	char name[SL_NAME_BYTES];
};

enum sl_forward_flag {
	SL_FORWARD_REPLACED = 1, /* no new connections come to it */
	SL_FORWARD_CUTS = 2, /* and when it is replaced, those that it has pass no more packets */
	SL_FORWARD_STRICT = 4 /* clients are where the routes say (rp_filter is 1) */
};

struct sl_target {
	struct sl_end end;
	struct sl_end source; /* of masqueraded packets; zeroes: they keep their client's */
	u16 first_port; /* host byte order: where the first of the listen ports goes */
	u16 pad;
};

/* Counts of a forward, but for packets of open connections: those are in the connections. */
struct sl_forward_count {
	u64 opened;
	u64 refused[SL_NOT_FORWARDED_REASONS];
	u64 ended; /* connections whose place another one has taken */
	u64 ended_pkts[2]; /* of these, by enum sl_side */
	u64 ended_bytes[2];
};

/* Sides of a connection, and the directions of its packets: from that side. */
enum sl_side { SL_CLIENT, SL_TARGET, SL_SIDES };

enum sl_connection_state {
	SL_CONNECTION_FREE,
	SL_CONNECTION_CLAIMED, /* a CPU is writing it */
	SL_TCP_OPENING, /* the client has not acknowledged what the target sent first */
	SL_TCP_ESTABLISHED,
	SL_TCP_SURPLUS, /* established, but gives way: its client has too many that do not */
	SL_TCP_CLOSING, /* one side has sent FIN */
	SL_TCP_CLOSED, /* both have, or one has sent RST */
	SL_UDP_ONE_WAY, /* the client has sent nothing since the first answer */
	SL_UDP_ANSWERED,
	SL_CONNECTION_STATES
};

/* A TCP side, as tracking knows it. Sequence numbers in host byte order, modulo 2^32 (RFC 9293, 3.4). */
struct sl_tcp_side {
	u32 next; /* the number after the last that the side has sent */
	u32 acked; /* the last number that it has acknowledged to the other */
};

/* A connection: two cache lines. */
struct sl_connection {
	/* Addresses and ports of a packet from the client, and of the packet that the target gets instead. */
	struct sl_end client;
	struct sl_end listen;
	struct sl_end source; /* the client's, or with masquerade one of this machine */
	struct sl_end target;
	u16 client_port; /* network byte order, as the others */
	u16 listen_port;
	u16 source_port;
	u16 target_port;
	u8 proto; /* 6 or 17 */
	u8 flags; /* enum sl_connection_flag */
	u16 forward; /* index of its forward */
	/* Serial << 8 | enum sl_connection_state. The serial rises whenever another connection takes the place. */
	u32 state;
	u32 last_tick; /* of its last packet, in 2^20 ns */
	u32 pkts[SL_SIDES];
	u32 class; /* of its packets; SL_CLASSES: by the rules; beside SL_MAY_BE_CUT and bits of its forward's digest */
	u64 bytes[SL_SIDES];
	struct sl_tcp_side tcp[SL_SIDES];
};

/* The value of an interface in `departures`. */
enum sl_departure {
	SL_DEPARTS_BY_QUEUE = 1,
	SL_DEPARTS_BY_PEER = 2 /* nothing is scheduled there: packets may go into the veth's other end at once */
};

/* The question to which connection a packet belongs, and the answer. */
struct sl_belonging {
	struct sl_tuple packet; /* as it arrives here, or as it leaves */
	struct sl_connection connection;
	u32 sender; /* enum sl_side; SL_SIDES: the packet belongs to none */
	u32 pad;
};

/* In sl_connection.class: its forward has SL_FORWARD_CUTS; and the lower bits of that forward's digest. */
#define SL_MAY_BE_CUT   0x100u
#define SL_DIGEST_SHIFT 16u

enum sl_connection_flag {
	SL_CLIENT_FIN = 1, /* the client has sent FIN */
	SL_TARGET_FIN = 2,
	SL_TARGET_ANSWERED = 4 /* of TCP: tcp[SL_TARGET] is known */
};

/*
 * Places of connections by a hash of the addresses and ports of their packets. Each connection stands here twice, for either direction.
 * A word is number | tag << SL_CONNECTION_BITS; 0 is none. Connection 0 is not used.
 */
#define SL_CONNECTION_BITS 20u
#define SL_CONNECTIONS     (1u << SL_CONNECTION_BITS) /* the most */
#define SL_PLACE_WAYS      15u
struct sl_places {
	u32 way[SL_PLACE_WAYS];
	u32 elsewhere; /* entries that belong here, and stand in their second set since all ways were taken */
};

/* Time-outs by enum sl_connection_state, in ticks of 2^20 ns. */
#define SL_TIMEOUTS 16u /* a power of two: the number of states, and more */
struct sl_timeouts {
	u32 ticks[SL_TIMEOUTS];
};

/* The ports that this host gives to connections of its own (net.ipv4.ip_local_port_range), in host byte order. */
struct sl_own_ports {
	u32 first;
	u32 many; /* 0: none that matter */
};

/* Set before load; the sizes are powers of two, less 1. */
struct sl_forwarding {
	u32 last_connection;
	u32 last_set;
	struct sl_timeouts timeouts;
	struct sl_own_ports own_ports;
	u64 netns_cookie; /* of the network namespace whose sockets are led to targets (SO_NETNS_COOKIE) */
};
