/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The state of the scheduler instances of one link, one for each tx queue: words that every instance changes by atomic operations, the configuration,
 * which they only read, and the state of each alone (sched/shared_credit.h, sched/shared_shares.h). Plain old data. All zeroes is a link whose
 * bucket is full, and on which no class waits.
 */
#pragma once
#include "limits.h"
#include "types.h"

#define SL_SHARED_INSTANCES 64u /* bits of a word */
#define SL_CACHE_LINE_BYTES 64

/* How long a batch is, at most; and a burst at least, in batches (sched/shared_credit.h). */
#define SL_SHARED_BATCH_FRAMES  64u
#define SL_SHARED_BATCH_NS      80000u
#define SL_SHARED_BURST_BATCHES 8u
/* The longest time by which credit of the link is drawn in advance. */
#define SL_SHARED_AHEAD_NS      800000u

/* A word that instances change on its own. Its line holds nothing else, so a change of it takes no other word away from a CPU. */
struct sl_shared_word {
	u64 value;
} __attribute__((aligned(SL_CACHE_LINE_BYTES)));

/*
 * The words of a class that are read together, so that one line tells how far the class is. A draw changes the service; at most once in an eighth of
 * the horizon also the time of the last ask, and the guarantee of a class that draws by it. Joining and leaving change the instances.
 */
struct sl_shared_share {
	u64 service; /* virtual: bytes << SL_SHARED_SERVICE_BITS, by weight; wraps round */
	u64 instances; /* that have packets of the class and would send them, as bits */
	u64 asked_ns; /* when one of them last asked for credit */
	u64 guarantee; /* the time at which the bucket of the guarantee is full again, in 1/64 ns */
} __attribute__((aligned(SL_CACHE_LINE_BYTES)));

/* Fraction bits of sl_shared_share.service. */
#define SL_SHARED_SERVICE_BITS 20

/* The children of one parent: in a flat scheduler the classes of the link. */
struct sl_shared_siblings {
	struct sl_shared_word active; /* those whose sl_shared_share.instances may be other than 0, as bits */
	struct sl_shared_share share[SL_CLASSES];
};

struct sl_shared_link {
	struct sl_shared_word bucket; /* the time at which it is full again, in 1/64 ns */
	struct sl_shared_siblings classes;
	struct sl_shared_word ceiling[SL_CLASSES]; /* as bucket, of the ceiling of each class */
};

/* A rate as instances draw it. */
struct sl_shared_rate {
	u64 cost; /* ns per byte, << 20, as in struct sl_bucket; 0: no limit, or no guarantee */
	u64 burst; /* in 1/64 ns at the rate; at least that of SL_SHARED_BURST_BATCHES, or of two if batches are long */
	u64 batch; /* the same, of one batch */
	u32 batch_bytes; /* the most that is drawn at once for packets up to frame_bytes */
	u32 frame_bytes; /* longer packets are sent too, but put an instance further into debt */
};

struct sl_shared_class_conf {
	struct sl_shared_rate ceiling;
	struct sl_shared_rate guarantee;
	u32 weight; /* 1 to 65535 */
	u32 level; /* classes of a lower one go first, but for guarantees */
};

struct sl_shared_conf {
	struct sl_shared_rate link; /* its cost is not 0 */
	u64 ceilings; /* classes that have one, as bits */
	u64 guarantees;
	u64 horizon_ns; /* a class that has not asked for so long is passed by */
	u32 instances; /* how many there are */
	u32 pad;
	struct sl_shared_class_conf classes[SL_CLASSES];
};

/* An instance's credit of the link, which no other touches. All zeroes: it has none. */
struct sl_link_credit {
	s32 bytes; /* drawn and not spent; below 0: a packet was longer than what was left */
	u32 scarce; /* the bucket was short of credit at the last draw */
	u64 full; /* the bucket, as the last draw of this instance left it */
	u64 opens_ns; /* none is drawn or spent before */
	u64 gave_back_ns; /* when the instance gave back what it had, the last time */
};

/* The state of an instance that no other touches, beside its scheduler. All zeroes but for the number: it has no credit. */
struct sl_shared_instance {
	struct sl_link_credit credit;
	u32 number; /* below SL_SHARED_INSTANCES; no two instances have the same */
	u32 pad;
	u64 retry_ns; /* refused classes do not ask again before */
	u64 joined; /* classes among whose sl_shared_share.instances this one is */
	u64 refused; /* classes that have packets, and that are too far ahead of others, as bits */
	u64 assured; /* classes that have drawn by their guarantee, as bits */
	u64 unreported; /* classes with spent_bytes, as bits */
	u64 charged; /* classes that were charged for the last draw, as bits */
	u64 charged_service; /* by so much each, until it is known what was sent */
	u64 draws; /* times that this instance has gone to shared words */
	u32 spent_bytes[SL_CLASSES]; /* since the last report */
	s32 ceiling_bytes[SL_CLASSES]; /* as credit.bytes, drawn from the ceiling of each class that has one */
	u64 ceiling_full[SL_CLASSES]; /* as credit.full, of those */
};
