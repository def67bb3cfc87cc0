/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Engine xsk: two interfaces as a wire, with the schedulers in a process (what packets take on a link is in sched/wire.h). The arrival hook hands packets to its AF_XDP sockets while it
 * runs (bpf/lib/wire.h).
 */
#pragma once
#include "addresses.h"
#include "classifier.h"
#include "types.h"

#define SL_WIRE_QUEUES      64u /* of an interface, at most */
#define SL_WIRE_WORKERS     8u /* at most: worker n has receive queue n of both interfaces */
/* A worker that has not been seen for so long is taken for dead: packets pass it by. */
#define SL_WIRE_PATIENCE_NS 50000000ULL
/*
 * A worker that finds that it was away for so long drops what it holds, since packets that passed it by may be ahead. It is less than the patience of the
 * hook, so a worker never sends what is older than a packet that has passed it by.
 */
#define SL_WIRE_AWAY_NS     35000000ULL

/* In front of a packet that a hook hands to a worker. */
struct sl_wire_meta {
	struct sl_xdp_meta meta;
	u32 flow_hash;
	u16 src_host; /* hashes of addresses */
	u16 dst_host;
	u32 ecn; /* of its IP header */
	u32 leaf; /* that its address leads to, as in the table of addresses; SL_ADDRESS_NO_LEAF: none, or classes are no tree */
};

/* The worker of a receive queue, as the hook and the commands see it. */
struct sl_wire_worker {
	u64 seen_ns; /* CLOCK_MONOTONIC; 0: there is none */
	u64 lost_pkts; /* that it held when it died or was away, or could not send */
	u64 port_wait_ns; /* in which packets waited since the port that they leave by had enough under way */
	u64 port_limit_bytes; /* that this port may have under way (sched/port_limit.h); 0: a number of packets was asked for */
	u64 pad[4]; /* a line of its own */
};
