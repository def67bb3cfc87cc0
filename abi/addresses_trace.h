/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Addresses, marks and VLANs that are looked up in an address table, and their leaves: what a twin test plays to two builds of the core. */
#pragma once
#include "addresses.h"

#define SL_ADDRESS_TRACE_OPS 4096u /* of one batch */

struct sl_address_op {
	u32 address[4]; /* words in network order, IPv4 as ::ffff:a.b.c.d */
	u32 mark; /* 0: none */
	u32 vlan; /* 0: none */
	u32 leaf; /* the answer */
};

struct sl_address_trace {
	u32 count; /* of the batch's operations that count */
	u32 pad;
	struct sl_address_op op[SL_ADDRESS_TRACE_OPS];
};
