/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Every reason for which a packet is dropped. A reason is a counter, and every counter is shown. */
#pragma once

#define SL_DROP_REASONS(X)                                                                             \
	X(LIMIT_PKTS, limit_pkts, "the class holds as many packets as it may")                         \
	X(LIMIT_BYTES, limit_bytes, "the class holds as many bytes as it may")                         \
	X(NO_SLOT, no_slot, "every packet slot of the interface is taken")                             \
	X(POLICED, policed, "the class is over its rate, and policed")                                 \
	X(RESET, reset, "the queue was emptied: link down, or its qdisc removed")                      \
	X(MALFORMED, malformed, "headers do not parse, and the policy drops such packets")             \
	X(AQM, aqm, "CoDel: the flow's packets have waited too long for too long")                     \
	X(OVERFLOW, overflow, "the packet made room for another: its class or the interface was full") \
	X(PEAK, peak_limited, "the class is over its peak, and policed")

/* The hurdles before the queues that a packet must pass, most of them buckets. Each counts what it refuses. */
#define SL_LIMIT_REASONS(X)                                                           \
	X(CLASS, policed, "the class is over its rate, and policed")                  \
	X(PEAK, peak_limited, "the class is over its peak, and policed")              \
	X(FLOW, flow_limited, "the flow is over the rate of a flow of its class")     \
	X(INTERFACE, interface_limited, "the interface is over its rate")             \
	X(SHARED, shared_limited, "the interfaces together are over the shared rate") \
	X(EARLY, early, "the class's queue is full: dropped before it")               \
	X(CONTROL, control_limited, "more ARP, neighbour discovery and DHCP than the built-in rules let through")

enum sl_limit {
#define X(upper, lower, text) SL_LIMIT_##upper,
	SL_LIMIT_REASONS(X)
#undef X
		SL_LIMITS
};

#define SL_LIMIT_PLACES 8u /* SL_LIMITS, rounded up to a power of two */

enum sl_drop {
#define X(upper, lower, text) SL_DROP_##upper,
	SL_DROP_REASONS(X)
#undef X
		SL_DROPS
};

/* Why a packet is not sent: a queue or a hook has dropped it, or a bucket before the queue has refused it. */
enum sl_refusal {
	SL_NOT_REFUSED,
#define X(upper, lower, text) SL_DROPPED_##upper,
	SL_DROP_REASONS(X)
#undef X
#define X(upper, lower, text) SL_LIMITED_BY_##upper,
		SL_LIMIT_REASONS(X)
#undef X
			SL_REFUSALS
};

/* The refusal of an enum sl_drop, and of an enum sl_limit. */
#define SL_DROPPED(drop)  (SL_NOT_REFUSED + 1 + (u32)(drop))
#define SL_LIMITED(limit) (SL_NOT_REFUSED + 1 + (u32)SL_DROPS + (u32)(limit))
