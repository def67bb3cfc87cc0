/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Addresses, ports and protocol of a packet. */
#pragma once
#include "../abi/forward.h"

struct sl_tuple {
	struct sl_end src;
	struct sl_end dst;
	u16 sport; /* network byte order, as dport */
	u16 dport;
	u32 proto;
} __attribute__((aligned(8)));
