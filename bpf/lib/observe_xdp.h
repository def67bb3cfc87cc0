/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Observation of packets at XDP: see observe_any.h. */
#pragma once
#include "observe.h"

static __always_inline int sl_meta_xdp(struct xdp_md *ctx, struct sl_captured *c)
{
	c->interface = ctx->ingress_ifindex;
	return 0;
}

#define SL_PACKET struct xdp_md
#define SL_PACKET_ARG
#define SL_LOAD         bpf_xdp_load_bytes
#define SL_LENGTH(x)    ((u32)((x)->data_end - (x)->data))
#define SL_PARSER(name) name##_xdp
#include "parse_any.h"

static __always_inline void sl_parse_observed_xdp(struct xdp_md *ctx, u32 fields, struct sl_headers *h)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;

	sl_headers_init(h, SL_NO_TAG, 0, ctx->ingress_ifindex);
	sl_parse_xdp(ctx, data + SL_FRONT + SL_FRONT_BYTES <= end ? data + SL_FRONT : NULL, 0, fields, h);
}

#define SL_OBSERVE_PARSE sl_parse_observed_xdp
#define SL_OBSERVE_META  sl_meta_xdp
#include "observe_any.h"
#undef SL_PACKET
#undef SL_LOAD
#undef SL_LENGTH
#undef SL_PARSER
#undef SL_OBSERVE_PARSE
#undef SL_OBSERVE_META
#undef SL_PACKET_ARG
