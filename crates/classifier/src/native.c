/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The parser and the rules of the BPF programs, on frames in memory: the functions that lib.rs calls. */
#include <stddef.h>
#include <string.h>
#include "../../../sched/world.h"
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#define SEC(name)

/* An array map, or a map of them: its values one after the other, and how many bytes each has. */
struct sl_values {
	const void *first;
	u32 bytes;
	u32 count;
};

/* The tables of a policy, and the maps beside them: struct Maps of lib.rs. */
struct sl_policy {
	const struct sl_tables *tables;
	struct sl_values rows; /* one map of rows */
	struct sl_values ranges; /* a map for each enum sl_range_field */
};

static _Thread_local struct sl_values rows, ranges;

static void *bpf_map_lookup_elem(const void *map, const u32 *key)
{
	const struct sl_values *values = map;

	return *key < values->count ? (u8 *)values->first + (size_t)*key * values->bytes : NULL;
}

#define bpf_loop(n, step, x, flags)                 \
	do {                                        \
		u32 n_;                             \
		for (n_ = 0; n_ < (n); n_++)        \
			if (step(n_, x) || (flags)) \
				break;              \
	} while (0)

#include "../../../bpf/lib/parse.h"
#include "../../../bpf/lib/flow_hash.h"
#include "../../../bpf/lib/hosts.h"
#include "../../../bpf/lib/choose.h"
#include "../../../bpf/lib/never_queued.h"

#include "../../../bpf/lib/parse_memory.h"

/* The result for a packet: struct Found of lib.rs. */
struct sl_found {
	u32 class;
	u32 rule; /* or enum sl_no_rule */
	u32 kind; /* enum sl_parse */
	u32 drops; /* it is malformed, and the policy drops such packets */
	u32 flow_hash;
	u16 src_host;
	u16 dst_host;
	u32 ecn; /* as the IP header has it */
	u32 control; /* a built-in rule has chosen the class */
	u32 never_queued; /* a wire does not queue it */
};

/* Hashes are by these keys from now on; to be called before packets are. */
void sl_native_keys(const u64 *key)
{
	u32 i;

	for (i = 0; i < sizeof(sl_hash.key) / sizeof(sl_hash.key[0]); i++)
		sl_hash.key[i] = key[i];
}

u32 sl_native_key_count(void)
{
	return sizeof(sl_hash.key) / sizeof(sl_hash.key[0]);
}

/* A packet without firewall mark, which has come by this interface. */
void sl_native_classify(const struct sl_policy *policy, const u8 *bytes, u32 length, u32 interface, struct sl_found *found)
{
	struct sl_frame frame = { bytes, length };
	const struct sl_tables *t = policy->tables;
	struct sl_values maps[2] = { { &policy->rows, 0, 1 }, policy->ranges };
	u64 front[SL_FRONT_BYTES / 8], word;
	struct sl_flow_key flow;
	struct sl_headers h;
	u32 control;
	int has_front;

	rows = maps[0];
	ranges = maps[1];
	has_front = !load_frame(&frame, SL_FRONT, front, sizeof(front));
	sl_headers_init(&h, SL_NO_TAG, 0, interface);
	sl_parse_frame(&frame, has_front ? front : NULL, 0, t->fields, &h);
	word = sl_choose(t, &h);
	control = sl_is_control(sl_choice_of(word).rule);
	memset(&flow, 0, sizeof(flow));
	sl_flow_key(&flow, &h, SL_EGRESS);
	*found = (struct sl_found){
		.class = sl_choice_of(word).class,
		.rule = sl_choice_of(word).rule,
		.kind = h.kind,
		.drops = t->drop_malformed && (u32)SL_MALFORMED >> h.kind & 1,
		.flow_hash = sl_flow_hash(&flow),
		.src_host = sl_packet_host((const u8 *)h.src),
		.dst_host = sl_packet_host((const u8 *)h.dst),
		.ecn = h.is_ip >> 1 & 3,
		.control = control,
		.never_queued = sl_is_never_queued(control, bytes, bytes + length),
	};
}
