// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Sends frames to a device as fast as a driver could, and observes them in the ways of published work: a record of each packet in one ring for
 * all CPUs, or counters that are read once a second. The lab holds `sluice count` and `features` against them. Another
 * program stands for a slow card: it keeps its processor for the time that a frame takes at a rate. Nothing else uses them.
 */
#include "lib/kernel.h"
#include <bpf/bpf_helpers.h>

/* Set before load. */
const volatile u64 frames_interval_ns = 0; /* between two frames; 0: none */
const volatile u64 frames_length_ns = 0; /* from the first frame to the last */
const volatile u32 frames_device = 0; /* to which frames are sent */
const volatile u32 frames_ports = 0; /* source ports of frames, a power of two, less one */

const volatile u64 frames_byte_cost = 0; /* time of a slow card for a byte, in 1/1024 ns */
const volatile u32 frames_overhead = 0; /* bytes that it adds to each frame */
const volatile u32 frames_records = 0; /* frames that it has room to note, a power of two, less one */
const volatile u32 frames_pass = 0; /* whether frames go on, else they end here */

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

/* A frame that a slow card has sent. */
struct frames_left {
	u64 stamp; /* the first eight bytes behind its UDP header: the time at which its sender has made it */
	u64 at_ns; /* when its last bit was sent */
	u32 bytes;
	u16 ports[2]; /* from which and to which it goes, in network byte order */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, struct frames_left);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
} frames_left SEC(".maps");

/* A card that sends: one processor runs it at a time. */
struct frames_card {
	u64 sent;
	u64 bytes;
	u64 free_ns; /* when it has sent all */
	u64 idle_ns; /* time without a frame */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, struct frames_card);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
} frames_card SEC(".maps");

#define FRAMES_LOOKS   (1u << 22) /* at the clock, for one frame: some 100 ms */
#define FRAMES_SOON_NS 5000

static long frames_look(u32 look, u64 *until_ns)
{
	return bpf_ktime_get_ns() >= *until_ns;
}

static __always_inline void frames_note(const u8 *data, const u8 *end, u64 sent, u64 at_ns)
{
	u32 place = (u32)sent & frames_records;
	struct frames_left *left = bpf_map_lookup_elem(&frames_left, &place);

	if (!left || data + 50 > end)
		return;
	__builtin_memcpy(&left->stamp, data + 42, sizeof(left->stamp));
	left->at_ns = at_ns;
	left->bytes = end - data;
	left->ports[0] = *(const u16 *)(data + 34);
	left->ports[1] = *(const u16 *)(data + 36);
}

/*
 * A card that is slower than its driver, where there is none: at the end of a veth, it keeps the processor until the time of the frame is over. Meanwhile the
 * other end's queue gets full, and from Linux 6.16 on the veth refuses frames, if that end has a qdisc (drivers/net/veth.c). Its poll should have a
 * thread of its own (/sys/class/net/NAME/threaded), and that a processor.
 */
SEC("xdp")
int frames_slow(struct xdp_md *ctx)
{
	u8 *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	u64 now_ns = bpf_ktime_get_ns(), until_ns;
	struct frames_card *card;
	u32 zero = 0;

	card = bpf_map_lookup_elem(&frames_card, &zero);
	if (!card)
		return XDP_ABORTED;
	/* A little that comes late is made up for: the clock and the program itself take time. */
	if (now_ns > card->free_ns + FRAMES_SOON_NS) {
		card->idle_ns += card->sent ? now_ns - card->free_ns : 0;
		card->free_ns = now_ns;
	}
	until_ns = card->free_ns + (((u64)(end - data) + frames_overhead) * frames_byte_cost >> 10);
	if (now_ns < until_ns)
		bpf_loop(FRAMES_LOOKS, frames_look, &until_ns, 0);
	frames_note(data, end, card->sent, until_ns);
	card->free_ns = until_ns;
	card->bytes += end - data;
	card->sent++;
	return frames_pass ? XDP_PASS : XDP_DROP;
}
