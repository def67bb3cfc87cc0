/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The state of a scheduler whose classes form a tree: leaves, which hold packets, below inner nodes, below the link. Plain old data, as in
 * sched.h. All zeroes is an empty tree: the link has no limit, and every other node is a child of the link that is not configured yet.
 */
#pragma once
#include "disciplines.h"
#include "sched.h"
#include "wheel.h"

/*
 * Nodes are numbered: leaves from 0, inner nodes from SL_FIRST_INNER, which is the link. A leaf may be divided into parts, which are leaves below it,
 * one for each of its classes; then it holds no packets itself.
 */
#define SL_NODES            65536
#define SL_FIRST_INNER      32768
#define SL_INNERS           4096
#define SL_NO_NODE          65535
/* From a leaf to the link, both counted. */
#define SL_TREE_LEVELS      8
#define SL_TREE_SLOTS       65536
#define SL_TREE_PKTS        65535 /* that it may hold */
#define SL_TREE_FLOWS       65536 /* flow queues; all but the last are used */
#define SL_TREE_HOSTS       65536 /* in the tables of sources and of destinations */
#define SL_LEAF_QUEUES      1024 /* ways in which leaves queue by flow */
#define SL_LEAF_DIVIDED     SL_LEAF_QUEUES /* in the place of one: the leaf has parts */
#define SL_LEAF_SIZES       16u /* lists of leaves by their packets; the first is not used */
#define SL_TREE_PRIORITIES  64
#define SL_PART_PRIORITIES  16 /* of the parts of a leaf */
#define SL_PART_CLASSES     16 /* classes of a divided leaf's packets; the last is that of packets without one */
#define SL_TREE_CLASSES     128 /* of sl_tree.class_leaf: a power of two above SL_CLASSES; the last is for unclassified packets */
/* The least burst of a node, ns: two buckets of a wheel. A node is looked at again one bucket after it has tokens, at the latest. */
#define SL_NODE_BURST_NS    (2U << SL_WHEEL_TICK_BITS)
/* A turn of elastic round robin grows with the weight; more is taken as this. */
#define SL_NODE_WEIGHT_MAX  65535
/* The longest request under EEVDF, bytes; for a PIFO, the longest latency budget, us. More is taken as this. */
#define SL_NODE_REQUEST_MAX (1U << 24)
/* Fraction bits of sl_node_bucket.cost: 2^14 are 1 ns a byte. From 31 kbit/s to 100 Gbit/s a cost is exact to 0.04 %. */
#define SL_NODE_COST_BITS   14

/* Lists of a parent's children that may send, and wheels of children that wait. */
enum sl_turn {
	SL_TURN_SHARED, /* every child that may send; its wheel: until the ceiling has tokens */
	SL_TURN_ASSURED, /* children whose guarantee has tokens, which go first; its wheel: until the guarantee has tokens */
	SL_TURNS
};

/* How a parent shares among its children what their guarantees leave. */
enum sl_tree_discipline {
	SL_TREE_ELASTIC, /* elastic round robin by weight */
	SL_TREE_PRIORITY, /* strict priority, 0 first; children of one priority take turns of a packet */
	SL_TREE_ROUND_ROBIN, /* round robin: each child in turn, with one packet */
	/* From here on, children that may send stand in a heap: sched/tree_order.h. */
	SL_TREE_FAIR, /* weighted fair queueing, by the weight too */
	SL_TREE_EEVDF, /* earliest eligible virtual deadline first, by the weight and the request */
	SL_TREE_PIFO, /* the child whose first packet has the smallest rank */
	SL_TREE_DISCIPLINES
};

/* The verdict of a hook that drops early on a packet for a leaf: sched/early_leaf.h. */
enum sl_leaf_early {
	SL_LEAF_PASSES,
	SL_LEAF_FULL, /* it drops the packet if that would come to the leaf, which the caller must know */
	SL_LEAF_LONG /* it drops the packet: others of its flow wait in the leaf, so it would come there */
};

/* Bits of sl_node.state; the first two are shifted by an enum sl_turn. */
enum sl_node_state {
	SL_NODE_LISTED = 1, /* it stands in this list of its parent */
	SL_NODE_WAITS = 4, /* it stands in this wheel */
	SL_NODE_READY = 16 /* it has packets, or children that may send */
};

/* A token bucket in 16 bytes. */
struct sl_node_bucket {
	u64 tat_64ths; /* the time at which it is full again, in 1/64 ns */
	u32 cost; /* ns per byte, with SL_NODE_COST_BITS fraction bits; 0: no limit, or no guarantee */
	u32 burst_ns;
};

/* 64 bytes: what the way of a packet touches of each node. */
struct sl_node {
	struct sl_node_bucket bucket[SL_TURNS]; /* of the ceiling, of the guarantee */
	u16 next[SL_TURNS], before[SL_TURNS]; /* neighbours in the lists, which are rings */
	u16 wheel_next[SL_TURNS]; /* SL_NO_NODE - node; 0: it is the last of its bucket */
	u16 wheel_before[SL_TURNS]; /* SL_WHEEL_HEAD + bucket: it is the first */
	u16 parent; /* its number ^ SL_FIRST_INNER; so 0 is the link */
	u16 weight; /* 0: the node is not configured */
	s32 left_bytes; /* of its turn, as in elastic round robin; 0 or less: it has none now */
	u32 surplus_bytes; /* beyond the allowance of its last turn */
	u8 state; /* enum sl_node_state */
	u8 round; /* of its parent, in which it had its last turn */
	u8 priority;
	u8 pad;
};

/*
 * The state of a node beside siblings, or above children, that stand in heaps (sched/tree_order.h). Virtual time is bytes << 32 / weight.
 */
struct sl_fair_node {
	u64 key; /* its place in a heap: weighted fair queueing: the virtual start of its next packet; EEVDF: start or deadline; PIFO: its rank */
	/* virtual time of its children: fair queueing and PIFO by start: the start of the one served last; EEVDF: the V of tree_eevdf.h; PIFO by other ranks: a counter that orders equal ranks */
	u64 time;
	/* SL_NO_NODE - its neighbours in a heap of its siblings (sched/heap.h); 0: none */
	u16 left, right, above;
	u16 rank; /* nodes on its right spine, itself included */
	u64 start; /* EEVDF and PIFO by start: where it stands in virtual time; PIFO by attained service: bytes sent since it was last empty */
	u64 deadline; /* EEVDF: of its request, in virtual time */
	s64 lag; /* EEVDF: V - start when it left, in virtual time: positive if it was owed service (tree_eevdf.h gives lags in bytes, times the weight) */
	u32 weights; /* EEVDF: the sum of those of its children that may send */
	u32 rest; /* EEVDF: the remainder of the division of V, below weights; PIFO by start: the counter that orders equal ranks */
	u16 starts; /* EEVDF: SL_NO_NODE - the first of its children that were not eligible yet; 0: there is none */
	u16 early; /* EEVDF: it stands in that heap */
	u32 pad;
};

struct sl_inner {
	/* SL_NO_NODE - the child whose turn it is, in each list; 0: the list is empty. By priority: sl_tree.priority; with a heap: its first */
	u16 first[SL_TURNS];
	u16 children; /* that may send */
	u16 below; /* children that are configured */
	u32 surplus_before, surplus_most; /* the greatest surplus / weight of the round before, and of this one */
	u64 priorities; /* those of children that may send, if it serves by priority */
	u8 round;
	u8 discipline; /* enum sl_tree_discipline */
	u8 rank; /* enum sl_rank, if it serves as a PIFO */
	u8 pad;
	u32 request; /* of the node itself beside its siblings, also of a leaf: as sl_node_conf has it */
};

struct sl_priorities {
	u16 first[SL_TREE_PRIORITIES]; /* as sl_inner.first */
};

/* The parts of a divided leaf. */
struct sl_parts {
	u16 of_class[SL_PART_CLASSES]; /* 1 + the leaf of the packets of each class; 0: there is none */
	u16 first[SL_PART_PRIORITIES]; /* as sl_priorities.first */
};

/* How leaves queue by flow; several may do so alike. */
struct sl_leaf_queue {
	u32 flow_quantum_bytes;
	u32 allowance_bytes; /* bytes that a flow may send ahead of turns before it is bulk; at least the quantum */
	u32 round_ns; /* the time of a quantum at the ceiling of the leaf */
	u8 hosts; /* bits of enum sl_hosts: between which a leaf is fair before it is between flows */
	u8 one_flow; /* all packets are of one flow: a FIFO, of which CoDel may drop */
	u16 pad;
	u64 target_ns; /* CoDel: the wait that is no cause for action; 0: it does not act */
	u64 interval_ns; /* CoDel: how long it must be longer */
};

struct sl_leaf {
	u32 pkts;
	u32 backlog_bytes;
	u16 limit_pkts; /* 0: the leaf is not configured, or divided */
	u16 queue; /* of sl_tree.queue; SL_LEAF_DIVIDED: packets and counters are those of all its parts */
	u16 size_next, size_before; /* 1 + neighbours in the list of its size; 0: none */
	u8 size; /* that list: the leaf has from 2^size / 2 to 2^size * 2 packets; 0: it stands in none */
	u8 pad;
	u16 whole; /* of a part: 1 + the divided leaf, so that packets need not look at the node; else 0 */
	u32 marked_pkts; /* sent with congestion experienced, instead of dropped */
	u32 dropped_pkts[SL_DROPS];
	u32 wait_ns; /* of packets that were sent, from their arrival on: a mean that moves by a 16th with each */
	u64 sent_pkts, sent_bytes;
	u64 early_pkts; /* dropped on arrival at another interface (early_leaf.h); hooks add to it atomically */
};

struct sl_tree_slot {
	u16 next;
	u16 leaf;
	u32 len_bytes; /* as the host counts it */
	u32 wire_bytes; /* as the link below counts it */
	u32 flow_hash;
	u64 arrived_ns;
	u16 src_host; /* hash of its address */
	u16 dst_host;
	u8 ecn; /* the packet can be marked instead of dropped */
	u8 dropped_for; /* enum sl_drop, of one that is to be reaped */
	u16 pad;
};

/* A flow queue that a leaf has taken from those of all leaves. */
struct sl_tree_flow {
	struct sl_flow_queue queue;
	u16 leaf;
	u16 chain; /* 1 + the next flow with the same place in sl_tree.flow_of_hash; 0: none */
	u16 rests_next, rests_before; /* 1 + neighbours among the queues without packets; 0: none */
};

struct sl_tree_host_table {
	struct sl_host host[SL_TREE_HOSTS]; /* sets of SL_HOST_WAYS */
};

struct sl_tree {
	u16 free; /* returned slots: a stack of free_count */
	u16 pad;
	u32 free_count;
	u32 fresh; /* slots from here on were never used */
	u32 slots; /* how many may be used, up to SL_TREE_PKTS */
	u32 pkts;
	u32 lone; /* 1 + the leaf of the only packet, which takes the fast path; 0: none does */
	u32 room_from_pkts; /* with so many packets, room is made for the next */
	struct sl_queue dropped; /* slots whose packets the engine has yet to free */
	u32 dropped_slots;
	s32 overhead_bytes; /* of the link below, added to each frame; may be negative */
	u32 mpu_bytes; /* the least that a frame takes there */
	u32 cells; /* enum sl_cells */
	u32 framed; /* one of the three above counts */
	u32 link_weights; /* the sum of the weights of the link's children that may send */
	u32 fresh_flows; /* flow queues from here on were never used */
	u32 resting; /* flow queues without packets that were used */
	u16 rests_first, rests_last; /* 1 + those of them that rest longest and shortest; 0: there are none */
	u32 leaf_sizes; /* lists of sizes that have leaves, as bits */
	u16 larger[SL_LEAF_SIZES]; /* 1 + the first leaf of each list of sizes */
	u16 class_leaf[SL_TREE_CLASSES]; /* 1 + the leaf of each class, in a class tree; the last is 0: addresses choose */
	struct sl_wheel wheel[SL_TURNS];
	struct sl_inner inner[SL_NODES]; /* of inner nodes and divided leaves; of other leaves, the request */
	struct sl_priorities priority[SL_INNERS];
	struct sl_fair_node fair_node[SL_NODES];
	struct sl_node node[SL_NODES];
	struct sl_leaf leaf[SL_FIRST_INNER];
	struct sl_parts parts[SL_FIRST_INNER];
	struct sl_leaf_queue queue[SL_LEAF_QUEUES];
	struct sl_tree_slot slot[SL_TREE_SLOTS];
	struct sl_fair fair[SL_FIRST_INNER];
	struct sl_tree_host_table src_hosts;
	struct sl_tree_host_table dst_hosts;
	u16 flow_of_hash[SL_TREE_FLOWS]; /* 1 + the first flow of a chain; 0: none */
	struct sl_tree_flow flow[SL_TREE_FLOWS];
};

/* The configuration of a whole tree. */
struct sl_tree_conf {
	u32 slots; /* packets that it may hold, up to SL_TREE_PKTS */
	u32 mpu_bytes;
	s32 overhead_bytes;
	u32 cells;
};

/* What a node is to be. */
struct sl_node_conf {
	u32 parent; /* a node's number: the link, another inner node or a divided leaf that is configured; of the link: any */
	u32 weight; /* 1 to SL_NODE_WEIGHT_MAX */
	u32 priority; /* below SL_TREE_PRIORITIES, of a part below SL_PART_PRIORITIES; counts if the parent serves by priority */
	u32 discipline; /* enum sl_tree_discipline; of an inner node or a divided leaf */
	u32 ceil_cost, ceil_burst_ns; /* as sl_node_bucket has them */
	u32 rate_cost, rate_burst_ns; /* the guarantee, and the lateness that it makes up; of the link: 0 */
	u32 limit_pkts; /* of a leaf, up to 65535; 0: none */
	u32 queue; /* of a leaf: how it queues by flow, below SL_LEAF_QUEUES; or SL_LEAF_DIVIDED */
	/* bytes of a request if the parent serves by EEVDF, up to SL_NODE_REQUEST_MAX; the latency budget in us if it is a PIFO */
	u32 request;
	u32 rank; /* enum sl_rank, if the node serves as a PIFO */
};

/* The leaves of a divided leaf's packets, by their class: as sl_parts has them. */
struct sl_parts_conf {
	u16 of_class[SL_PART_CLASSES];
};

/* The leaf of the packets of a class, in a class tree. */
struct sl_class_leaf_conf {
	u32 leaf; /* 1 + its number; 0: there is none */
};
