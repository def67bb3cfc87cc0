/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Engine xsk: the arrival hook hands packets with their class to the socket of their receive queue, whose process queues them and sends
 * them out of the interface on the other side. Packets that the hook does not hand over go on to tc, which sends them to the other side at once: ARP
 * and others that keep a network up, and all while no process runs.
 */
#pragma once
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include "never_queued.h"
#include "police.h"
#include "sched_conf.h"
#include "shared_maps.h"
#include "wire_leaf.h"
#include "worker.h"

const volatile u32 sl_wire_frame_bytes =
	0; /* set before load: a longer packet does not fit into a frame of the sockets' memory */

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__type(key, u32);
	__type(value, u32);
	__uint(max_entries, SL_WIRE_QUEUES);
} sockets SEC(".maps");

/* Whether a packet passes ahead of the queue. One of a built-in rule was charged to the bucket of these rules before. */
static __always_inline int sl_goes_ahead(const struct xdp_md *ctx, u32 control, const struct sl_request *d)
{
	if (sl_likely(!sl_is_never_queued(control, (const u8 *)(long)ctx->data, (const u8 *)(long)ctx->data_end)))
		return 0;
	return control || sl_control_passes(d);
}

/* The XDP program's verdict on a packet that has a class: the process gets it, or tc; or it is dropped, since its leaf has no room. */
static __always_inline int sl_to_worker(struct xdp_md *ctx, const struct sl_request *d, struct sl_xdp_meta class)
{
	u32 queue = ctx->rx_queue_index, leaf = SL_ADDRESS_NO_LEAF;
	struct sl_wire_meta *m;

	if (sl_unlikely(!sl_worker_is_seen(queue, d->now_ns)))
		return XDP_PASS;
	if (sl_wire_tree)
		leaf = sl_leaf_on_wire(d);
	if (sl_unlikely(leaf & SL_LEAF_HAS_NO_ROOM))
		return XDP_DROP;
	if (bpf_xdp_adjust_meta(ctx, -(int)(sizeof(*m) - sizeof(class))))
		return XDP_PASS;
	m = (void *)(long)ctx->data_meta;
	if ((void *)(m + 1) > (void *)(long)ctx->data)
		return XDP_PASS;
	m->meta = class;
	m->flow_hash = d->hash;
	m->src_host = sl_packet_host(d->flow.src);
	m->dst_host = sl_packet_host(d->flow.dst);
	m->ecn = d->ecn;
	m->leaf = leaf;
	return (int)bpf_redirect_map(&sockets, queue, XDP_PASS);
}
