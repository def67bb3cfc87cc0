/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* A packet, as the core sees it. */
#pragma once
#include "../abi/types.h"

struct sl_packet {
	u32 class;
	u32 len_bytes;
	u32 segments; /* frames it becomes on the wire; at least 1 */
	u32 flow_hash; /* the last three: of classes that queue by flow */
	u16 src_host; /* hashes of its addresses */
	u16 dst_host;
	u32 ecn; /* the engine can mark it, and its receiver understands */
};
