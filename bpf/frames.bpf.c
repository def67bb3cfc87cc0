// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Sends frames to a device as fast as a driver could, and observes them in the ways of published work: a record of each packet in one ring for
 * all CPUs, or counters that are read once a second. The lab holds `sluice count` and `features` against them; nothing else uses it.
 */
#include "lib/kernel.h"
#include <bpf/bpf_helpers.h>

/* Set before load. */
const volatile u64 frames_interval_ns = 0; /* between two frames; 0: none */
const volatile u64 frames_length_ns = 0; /* from the first frame to the last */
const volatile u32 frames_device = 0; /* to which frames are sent */
const volatile u32 frames_ports = 0; /* source ports of frames, a power of two, less one */

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* A packet in 22 bytes. */
struct frames_record {
	u64 at_ns;
	u32 src;
	u32 dst;
	u16 sport;
	u16 dport;
	u8 proto;
	u8 tcp_flags;
} __attribute__((packed));

struct frames_seen {
	u64 packets;
	u64 bytes;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, u32);
	__type(value, struct frames_seen);
	__uint(max_entries, 1);
} frames_seen SEC(".maps");

/* The sender's state. One thread sends. */
struct frames_sender {
	u64 sent;
	u64 first_ns;
	u64 last_ns;
	u64 next_ns; /* when the next frame is due */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, struct frames_sender);
	__uint(max_entries, 1);
} frames_sender SEC(".maps");

#define FRAMES_LATE_NS 50000000ull /* frames that are later than this are not made up for */

/* Packets and bytes by IP protocol. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, u32);
	__type(value, struct frames_seen);
	__uint(max_entries, 256);
} frames_counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} frames_ring SEC(".maps");

static __always_inline struct frames_seen *frames_count(void *map, u32 key, u32 bytes)
{
	struct frames_seen *seen = bpf_map_lookup_elem(map, &key);

	if (seen) {
		seen->packets++;
		seen->bytes += bytes;
	}
	return seen;
}

/*
 * Run on frames that the lab makes; each gets the next source port. A frame that comes before its time is dropped, which costs as little as
 * anything: each call of the test run sets up and takes down a pool of pages, in some 20 ms, so pauses cannot be between calls.
 */
SEC("xdp")
int frames_send(struct xdp_md *ctx)
{
	u8 *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	u64 now = bpf_ktime_get_ns();
	struct frames_sender *s;
	u32 zero = 0;

	s = bpf_map_lookup_elem(&frames_sender, &zero);
	if (!s)
		return XDP_ABORTED;
	if (!s->first_ns)
		s->first_ns = s->next_ns = now;
	if (now - s->first_ns > frames_length_ns || (frames_interval_ns && now < s->next_ns))
		return XDP_DROP;
	if (now - s->next_ns > FRAMES_LATE_NS)
		s->next_ns = now;
	s->next_ns += frames_interval_ns;
	s->last_ns = now;
	if (data + 36 <= end)
		*(u16 *)(data + 34) = (u16)(s->sent & frames_ports);
	s->sent++;
	return bpf_redirect(frames_device, 0);
}

SEC("xdp")
int frames_drop(struct xdp_md *ctx)
{
	return XDP_DROP;
}

/* The protocol of an IPv4 packet without options, or 0. */
static __always_inline u32 frames_protocol(const u8 *data, const u8 *end)
{
	if (data + 48 > end || *(const u16 *)(data + 12) != __builtin_bswap16(0x0800) || data[14] != 0x45)
		return 0;
	return data[23];
}

SEC("xdp")
int frames_to_counters(struct xdp_md *ctx)
{
	u32 bytes = ctx->data_end - ctx->data;

	frames_count(&frames_counters, frames_protocol((void *)(long)ctx->data, (void *)(long)ctx->data_end), bytes);
	return XDP_PASS;
}

SEC("xdp")
int frames_to_ring(struct xdp_md *ctx)
{
	u8 *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct frames_record *record;
	u32 protocol = frames_protocol(data, end);

	frames_count(&frames_seen, 0, end - data);
	if (!protocol || data + 48 > end)
		return XDP_PASS;
	record = bpf_ringbuf_reserve(&frames_ring, sizeof(*record), 0);
	if (!record)
		return XDP_PASS;
	record->at_ns = bpf_ktime_get_ns();
	record->src = *(u32 *)(data + 26);
	record->dst = *(u32 *)(data + 30);
	record->sport = *(u16 *)(data + 34);
	record->dport = *(u16 *)(data + 36);
	record->proto = (u8)protocol;
	record->tcp_flags = protocol == 6 ? data[47] : 0;
	bpf_ringbuf_submit(record, 0);
	return XDP_PASS;
}
