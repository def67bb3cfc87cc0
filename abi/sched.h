/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The state and the configuration of one scheduler: plain old data, slot numbers where packets would be, no pointers.
 * All zeroes is a valid, empty, unconfigured state. Userspace reads the state while the scheduler runs: each field is
 * read whole, two fields may be of different moments.
 */
#pragma once
#include "types.h"
#include "disciplines.h"
#include "limits.h"
#include "reason.h"

/* A class that is held back for so long is held until it is let go, ns (sched/hold_back.h). */
#define SL_HOLD_NEVER_NS (1ULL << 60)

/* Between which hosts a class is fair before it is between flows. */
enum sl_hosts { SL_HOSTS_NONE, SL_HOSTS_SOURCE = 1, SL_HOSTS_DESTINATION = 2 };

/* How a class keeps to its ceiling, as bits. 0: its packets wait for tokens of the ceiling, if it has one. */
enum sl_ceiling {
	SL_CEILING_DROPS = 1, /* what exceeds it is dropped on arrival, not held */
	SL_CEILING_HAS_PEAK = 2 /* a second bucket, of the peak, must have tokens too */
};

/* Cell framing of the link below: how bytes become bytes on the wire. */
enum sl_cells {
	SL_CELLS_NONE,
	SL_CELLS_ATM, /* 48 payload bytes in each cell of 53 */
	SL_CELLS_PTM /* 65 bytes on the wire for 64 */
};

/*
 * Token bucket in one word, after the generic cell rate algorithm (ITU-T I.371): tat is the time at which the bucket
 * is full again. It sends while it has any credit and goes into debt, so no packet is too long for it.
 * cost: ns per byte << 20, 0 for no limit. burst: in ns at the rate. frac: what a charge left over, ns << 20.
 */
struct sl_bucket {
	u64 tat_ns;
	u64 cost;
	u64 burst_ns;
	u64 frac;
};

struct sl_queue { /* of slots; its owner knows whether it is empty */
	u16 head;
	u16 tail;
};

/* Finds the class with the smallest key: see sched/tournament.h. */
struct sl_tournament {
	/* Class + 1, 0: none. [SL_CLASSES + c] is class c itself, [n] the winner of [2 * n] and [2 * n + 1]. */
	u8 winner[2 * SL_CLASSES];
	u64 key[SL_CLASSES];
	u32 levels; /* above the classes that have taken part: [SL_CLASSES >> levels] has won them all */
	u32 pad;
};

struct sl_slot {
	u16 next;
	u8 class;
	u8 ecn; /* the packet can be marked instead of dropped */
	u32 len_bytes; /* as the host counts it */
	u32 wire_bytes; /* as the link below counts it */
	u32 flow_hash;
	u64 arrived_ns;
	u16 src_host; /* hash of its address */
	u16 dst_host;
	u32 dropped_for; /* enum sl_drop, of one that is to be reaped */
};

/* CoDel's state, of one queue: see sched/codel.h. */
struct sl_codel {
	u64 above_ns; /* when the wait, above the target since, will have been so for an interval; 0: it is not above */
	u64 next_ns; /* dropping: when the next packet is dropped */
	u32 count; /* drops since dropping began */
	u32 count_before; /* the value of count when dropping began */
	u16 inverse_root; /* of count, << 16 */
	u8 dropping;
	u8 pad;
	u32 pad2;
};

/* Where a flow queue stands: see sched/flow_queue.h. */
enum sl_flow_place {
	SL_FLOW_ABSENT, /* it has no packets */
	SL_FLOW_SPARSE, /* it has hardly used any of its allowance */
	SL_FLOW_SWIFT, /* it has not used it up */
	SL_FLOW_BULK /* it takes its turns on the wheel */
};

/* The packets of one flow. Flows share a queue if all those in which they may stand are taken. */
struct sl_flow_queue {
	struct sl_queue queue;
	u16 next; /* flow in the same list */
	u8 place; /* enum sl_flow_place */
	u8 shared; /* flows stand here that had nowhere else to stand */
	u8 size; /* which list of sizes it stands in; 0: none */
	u8 hosts; /* bits of enum sl_hosts: which of the two below are known */
	u16 size_next; /* 1 + the flow behind it in that list; 0: none */
	u16 size_before; /* likewise */
	u16 pad;
	u32 backlog_pkts;
	u32 backlog_bytes;
	s32 used_bytes; /* of the allowance; bytes beyond it are debt */
	u32 round; /* of the class: until which used_bytes is counted, or on the wheel that of the flow's turn */
	u16 src_host; /* index of its record */
	u16 dst_host;
	u32 hash; /* of its flow */
	struct sl_codel codel;
};

/* The record of a host, as source or as destination of the flows of a class: see sched/flow_hosts.h. */
struct sl_host {
	u32 key; /* hash of its address | (class + 1) << 16; 0: the record is free */
	u16 bulk_flows; /* that stand on a wheel */
	u16 pad;
	s32 used_bytes; /* bytes that its flows have sent or queued ahead of others' turns, less those that rounds have given back */
	u32 round; /* of the class, until which that is counted */
};

struct sl_host_table {
	struct sl_host host[SL_HOSTS]; /* sets of SL_HOST_WAYS */
};

/* How a class serves its flows. */
struct sl_fair {
	u64 wheel_used; /* slots of the wheel that have flows, as bits */
	u64 rests_since_ns; /* if the class has at most one packet: when the last one left that was not alone */
	u32 round;
	u32 alone; /* 1 + the slot of the class's only packet, which has not come to its flow; 0: packets stand in their flows */
	struct sl_queue sparse; /* of flows */
	struct sl_queue swift;
	u16 sparse_flows;
	u16 swift_flows;
	u32 sizes; /* lists of sizes that have flows, as bits */
	u16 longer[SL_FLOW_SIZES]; /* 1 + the first flow of each list of sizes: see sched/flow_sizes.h */
	struct sl_queue wheel_slot[SL_WHEEL];
};

/*
 * Time in queue, by counts. Bucket b < 4 holds times of b us; above, an octave is four buckets: b holds
 * [(4 + b % 4) << (b / 4 - 1), (5 + b % 4) << (b / 4 - 1)) us, where a us has 1,024 ns.
 */
struct sl_histogram {
	u64 count[SL_SOJOURN_BUCKETS];
};

struct sl_class {
	/* written for each packet */
	struct sl_queue queue;
	u32 backlog_pkts;
	u32 backlog_bytes;
	u32 grows_at_pkts; /* from so many packets on it has the next size */
	u32 shrinks_below_pkts; /* with fewer it has the one before */
	u64 state[SL_CLASS_STATE_WORDS]; /* of the discipline in force: struct sl_NAME_class of its header */
	/* configuration */
	u64 virtual_cost; /* of a byte: 2^32 / weight */
	u64 budget_ns; /* latency budget, of ranks with a deadline */
	u32 limit_pkts;
	u32 limit_bytes;
	u32 quantum_bytes;
	u8 level; /* strict priority: 0 goes first */
	u8 ceiling; /* bits of enum sl_ceiling */
	u16 weight;
	u16 flow_base; /* its flow queues: from here on */
	u16 flow_mask; /* how many, less 1 */
	u8 by_flow; /* packets stand in flow queues, and AQM may act */
	u8 hosts; /* bits of enum sl_hosts */
	u8 size; /* by its packets: see sched/drops.h; 0: it has few */
	u8 pad;
	u16 flows; /* as it was told */
	u32 lone_bytes; /* bytes of the longest packet that takes the fast path; 0: none does (sched/lone.h) */
	u32 flow_quantum_bytes;
	u32 allowance_bytes;
	u32 round_ns; /* the time of a quantum on the link */
	u64 target_ns; /* CoDel; 0: none */
	u64 interval_ns;
	struct sl_bucket ceil;
	struct sl_bucket peak; /* what the class may not exceed even while its ceil has a burst left */
	struct sl_bucket rate; /* guarantee: while it has tokens, the class goes before those that have none */
	/* counters */
	u64 sent_pkts;
	u64 sent_bytes;
	u64 dropped_pkts[SL_DROPS];
	u64 dropped_bytes;
	u64 marked_pkts; /* sent with congestion experienced, instead of dropped */
	u64 peak_backlog_bytes;
};

struct sl_sched {
	u32 kind; /* enum sl_kind */
	u32 generation; /* of the configuration in force; 0: none yet */
	u32 rank; /* enum sl_rank, of a PIFO */
	u32 rank_shift; /* a bucket of the PIFO holds 2^rank_shift ranks */
	u64 ready; /* classes that may be picked: they have packets and tokens */
	u64 held; /* classes that have packets, and wait for tokens of their ceil */
	u64 held_until_ns;
	u64 guarantee_left; /* classes with a guarantee that they have not used up */
	u64 guarantee_used; /* classes with a guarantee that they have used up for now */
	u64 guarantee_used_until_ns; /* the first of them has tokens again then */
	u64 level_classes[SL_CLASSES]; /* the classes of each level */
	u32 backlog_pkts;
	u32 lone; /* the only packet takes the fast path, in the slot on top of the free ones */
	u32 direction; /* enum sl_direction of its packets; set by the engine */
	u32 slots; /* how many may be used, up to SL_SLOTS */
	u32 room_from_pkts; /* with so many packets, room is made for the next */
	u16 free; /* returned slots: a stack of free_count */
	u16 tx_queue; /* of the device, if each has a scheduler: the one whose packets this has; set by the engine */
	u32 free_count;
	u32 fresh; /* slots from here on were never used */
	s32 overhead_bytes; /* of the link below, added to each frame; may be negative */
	u32 mpu_bytes; /* the least that a frame takes there */
	u32 cells; /* enum sl_cells */
	u32 ifindex; /* where this instance runs; 0: nowhere */
	u32 framed; /* one of the three above counts */
	struct sl_queue dropped; /* slots whose packets the engine has yet to free */
	u32 dropped_slots;
	u32 flow_classes; /* how many classes queue by flow */
	u32 flow_queues; /* that these have */
	u64 flow_classes_set; /* which they are */
	u64 can_give; /* those of them that have a flow of two packets or more */
	u64 large[SL_CLASS_SIZES]; /* classes with many packets, by their size */
	struct sl_bucket link;
	struct sl_tournament ceilings; /* held classes, by when their ceiling has tokens again */
	struct sl_tournament guarantees; /* classes of guarantee_used, by when their guarantee has tokens again */
	struct sl_class classes[SL_CLASSES];
	/* Begins in the first 32 KiB: the offset of a load has 16 bits in BPF, and so reaches a member of a slot. */
	struct sl_slot slot[SL_SLOTS];
	struct sl_histogram sojourn[SL_CLASSES];
	u64 state[SL_SCHED_STATE_ROWS][SL_SCHED_STATE_WORDS]; /* of the discipline in force: struct sl_NAME_sched of its header */
	struct sl_fair fair[SL_CLASSES];
	struct sl_host_table src_hosts;
	struct sl_host_table dst_hosts;
	struct sl_flow_queue flow[SL_FLOW_QUEUES];
};

/* The packets of a class that a processor has let through to the queue, and that the queue has not had yet: see sched/early.h. */
struct sl_underway {
	u64 had_pkts; /* of the class, when these were counted from 0 */
	u64 since_ns;
	u32 pkts;
	u32 bytes;
};

struct sl_class_conf {
	u32 limit_pkts;
	u32 limit_bytes;
	u32 quantum_bytes;
	u32 level;
	u32 policed;
	u32 weight; /* 1 to 65535 */
	u64 budget_ns;
	u64 ceil_cost;
	u64 ceil_burst_ns;
	u64 peak_cost; /* of a class that has a ceiling */
	u64 peak_burst_ns;
	u64 rate_cost;
	u64 rate_burst_ns;
	u32 flows; /* queues by flow: how many, a power of two up to SL_CLASS_FLOWS; 0: one queue without AQM; 1: one with AQM */
	u32 hosts; /* bits of enum sl_hosts */
	u32 flow_quantum_bytes;
	u32 allowance_bytes; /* bytes that a flow may send ahead of turns before it is bulk; at least the quantum */
	u64 target_ns; /* CoDel: the wait that is no cause for action; 0: no AQM */
	u64 interval_ns; /* CoDel: how long it must be longer */
};

/* The configuration of a scheduler. A class that the policy does not have has limit_pkts 0: it drains, and takes no new packets. */
struct sl_sched_conf {
	u32 kind;
	u32 generation;
	u32 slots;
	u32 mpu_bytes;
	s32 overhead_bytes;
	u32 cells;
	u32 rank;
	u32 rank_shift; /* 0 to 51 */
	u64 link_cost;
	u64 link_burst_ns;
	struct sl_class_conf classes[SL_CLASSES];
};
