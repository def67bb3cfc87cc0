/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The packet parser of the programs, on frames in memory. */
#include "../../sched/world.h"
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#include "../../bpf/lib/parse.h"

#define SL_LEFT_BY_A_FAILED_LOAD 0xa5
#include "../../bpf/lib/parse_memory.h"

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
