/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Leaves for hosts that no list names: a group of hosts has so many leaves, and a host has one of them while it is there. Programs and the loader
 * share this map; the loader writes groups before an address leads to them. All zeroes is no group.
 */
#pragma once
#include "hierarchy.h"

#define SL_HOST_GROUPS     64u
#define SL_HOST_PLACES     16384u /* of all groups */
#define SL_HOST_PLACE_WAYS 8u /* places of a set; an address may have one of two sets */

/* The place of a host, which gives it a leaf. 64 bytes. */
struct sl_host_place {
	u64 upper, lower; /* the host's address, whose bits beyond the group's length are 0; IPv4 as ::ffff:a.b.c.d */
	u64 seen_ns; /* when its last packet came; 0: the place is free */
	u64 sent_pkts, sent_bytes; /* the counters of the leaf when the host came */
	u32 dropped_pkts, marked_pkts; /* as above */
	u16 leaf;
	u16 pad[7];
};

struct sl_host_group {
	u32 first_place;
	u32 sets_mask; /* it has one set of places more than this, a power of two */
	u64 upper_mask, lower_mask; /* the bits of an IPv6 address that tell hosts apart */
};

struct sl_each_host {
	u64 seed[5]; /* of the hash: random, and unknown to senders of packets */
	u64 groups; /* 0: there are none */
	u64 idle_ns; /* a place is given to another host after so long without a packet, if its leaf owes nothing */
	struct sl_host_group group[SL_HOST_GROUPS];
	/* 1 + the group of a leaf to which its prefixes lead; 0: the leaf is a subscriber's. Hosts that find no place share that leaf. */
	u8 group_of[SL_FIRST_INNER];
	struct sl_host_place place[SL_HOST_PLACES];
};
