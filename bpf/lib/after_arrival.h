/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Words of the arrival hook to port forwarding, in the control block: where a packet goes that the stack is to have. */
#pragma once
#include "kernel.h"
#include <bpf/bpf_helpers.h>

#define SL_CB_FORWARD  12 /* bytes into the control block that programs may write: one of these, or an ifindex */
#define SL_AFTER_NEXT  0u /* to the next program or filter */
#define SL_AFTER_STACK (1u << 30) /* past those behind the hook: the device where arrivals are queued does not answer */
#define SL_FORWARD_L3  (1u << 31) /* beside these: packets have no Ethernet header */
#define SL_FORWARD_OUT (1u << 29) /* beside these: the packet departs, and is of this host */
#define SL_AFTER(word) ((word) & ~(SL_FORWARD_L3 | SL_FORWARD_OUT))

/* The verdict of a tc program on a packet that the stack is to have. */
static __always_inline int sl_verdict_after(u32 after)
{
	if (after == SL_AFTER_NEXT)
		return TC_ACT_UNSPEC;
	return after == SL_AFTER_STACK ? TC_ACT_OK : (int)bpf_redirect(after, 0);
}
