/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The packet parser of the programs, on frames in memory. */
#include <string.h>
#include "../../sched/world.h"
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#include "../../bpf/lib/parse.h"

struct sl_frame {
	const u8 *bytes;
	u32 length;
};

/* As bpf_skb_load_bytes, but what it leaves in the buffer when it fails must not matter. */
static int load_frame(const struct sl_frame *frame, u32 off, void *to, u32 size)
{
	if (off > frame->length || size > frame->length - off) {
		memset(to, 0xa5, size);
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
#include "../../bpf/lib/parse_any.h"

/* As sl_parse_frame of the programs; wholly: without looking at the front first. */
void sl_fuzz_parse(const u8 *bytes, u32 length, u16 type, u32 tag, u32 fields, u32 wholly, struct sl_headers *h)
{
	struct sl_frame frame = { bytes, length };
	u64 front[SL_FRONT_BYTES / 8];
	int has_front;

	has_front = !wholly && !type && !load_frame(&frame, SL_FRONT, front, sizeof(front));
	sl_headers_init(h, tag, 0, 0);
	sl_parse_frame(&frame, has_front ? front : NULL, type, fields, h);
}
