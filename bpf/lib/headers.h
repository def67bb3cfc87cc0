/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The headers of the packet at hand, in a map instead of on the stack: the verifier of Linux 7.3 analyses a function once for each chain of calls
 * that hands it a pointer to a stack, and the parser is at the end of many. A program runs to its end on its processor, and none
 * of ours begins meanwhile, so an entry for each processor is enough.
 */
#pragma once
#include "parse.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, u32);
	__type(value, struct sl_headers);
	__uint(max_entries, 1);
} headers SEC(".maps");

/* The headers of this processor as the packet before has left them. NULL, which does not happen, is for the verifier. */
static __always_inline struct sl_headers *sl_headers_before(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&headers, &zero);
}

/* The headers of this processor, emptied as by sl_headers_init; or NULL as above. */
static __always_inline struct sl_headers *sl_headers_at_hand(u32 tag, u32 mark, u32 interface)
{
	struct sl_headers *h = sl_headers_before();

	if (h)
		sl_headers_init(h, tag, mark, interface);
	return h;
}
