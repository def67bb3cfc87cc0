/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The packet parser on frames in memory, for native programs: sl_parse_frame and its like for a struct sl_frame. Included behind parse.h. The includer may
 * define SL_LEFT_BY_A_FAILED_LOAD, the byte that fills the buffer of a load beyond the frame, whose value must not matter.
 */
#pragma once
#include <string.h>

#ifndef SL_LEFT_BY_A_FAILED_LOAD
#define SL_LEFT_BY_A_FAILED_LOAD 0 /* as bpf_skb_load_bytes leaves */
#endif

struct sl_frame {
	const u8 *bytes;
	u32 length;
};

/* As bpf_skb_load_bytes. */
static int load_frame(const struct sl_frame *frame, u32 off, void *to, u32 size)
{
	if (off > frame->length || size > frame->length - off) {
		memset(to, SL_LEFT_BY_A_FAILED_LOAD, size);
		return -14;
	}
	memcpy(to, frame->bytes + off, size);
	return 0;
}

#define SL_PACKET const struct sl_frame
#define SL_PACKET_ARG
#define SL_LOAD         load_frame
#define SL_LENGTH(x)    ((x)->length)
#define SL_PARSER(name) name##_frame
#include "parse_any.h"
