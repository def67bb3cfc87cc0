/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Sizes that BPF, the core and userspace must agree on. Arrays that a program indexes have a power of two of elements. */
#pragma once

#define SL_ABI_VERSION 14u

#define SL_CLASSES           64u  /* classes of a scheduler; a class id is an index */
#define SL_SLOTS             16384u  /* packets that one scheduler instance can hold */
#define SL_SOJOURN_BUCKETS   128u /* see struct sl_histogram */
#define SL_FLOW_QUEUES       4096u /* of a scheduler instance, divided among the classes that queue by flow */
#define SL_CLASS_FLOWS       1024u /* the most that one class has of them */
#define SL_FLOW_WAYS         8u /* queues in which a flow may stand */
#define SL_WHEEL             64u /* rounds that a flow can be sent back: see sched/flow_queue.h */
#define SL_HOSTS             1024u /* in the tables of sources and of destinations */
#define SL_HOST_WAYS         4u /* records in which a host may stand */
#define SL_FLOW_SIZES        16u /* lists of flows by their bytes; the first is not used */
#define SL_CLASS_SIZES       16u /* sizes of classes by their packets; the first is not used */
#define SL_PIFO_BUCKETS      4096u /* of the bucketed queue of a PIFO: 64 words of 64 bits */
/* Words of 8 bytes that a discipline may keep of a class and of a scheduler. */
#define SL_CLASS_STATE_WORDS 4u
#define SL_SCHED_STATE_ROWS  64u
#define SL_SCHED_STATE_WORDS 64u /* of a row */

#define SL_NAME_BYTES 32u /* of a class or a rule, the final NUL included */

#define SL_RULES      4096u  /* of a policy */
#define SL_RULE_WORDS 64u /* SL_RULES / 64 */
#define SL_ROWS       65535u /* distinct rule bitmaps of one policy */
#define SL_SMALL_ROWS 2048u /* of one that has 64 rules or fewer */
#define SL_PORT_ROWS  8192u /* of one whose rules have conditions on one port each, at most */
#define SL_RANGES     16384u /* into which the rules divide source addresses, destination addresses, lengths */
#define SL_KEYS       256u  /* distinct firewall marks in the rules; distinct interfaces */
#define SL_KEY_SLOTS  1024u /* of the table that they are looked up in */
#define SL_KEY_PROBES 4u  /* slots that are looked at for one */
#define SL_MARKS      64u  /* firewall marks that choose a class */

#define SL_HASH_WORDS 5u /* of 8 bytes: the longest that is hashed with a key */
#define SL_HASH_KEYS  11u /* words of the key: two for each of those, and one */

#define SL_BUFFERS    2u  /* of tables: one live, one being written */
#define SL_DIRECTIONS 2u
