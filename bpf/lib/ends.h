/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The addresses between which a packet passes, as four words each in network order; IPv4 as ::ffff:a.b.c.d. */
#pragma once
#include "parse.h"

/* Sets an end to the halves of a union nf_inet_addr, which has an IPv4 address in its first word. */
static __always_inline void sl_end_of_conntrack(u32 *end, u64 high, u64 low)
{
	if (low || high >> 32) {
		end[0] = (u32)high;
		end[1] = high >> 32;
		end[2] = (u32)low;
		end[3] = low >> 32;
	} else {
		end[0] = end[1] = 0;
		end[2] = SL_MAPPED;
		end[3] = (u32)high;
	}
}
