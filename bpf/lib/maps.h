/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Maps that the classifier and the qdisc of one interface share. The loader creates them once and pins them. */
#pragma once
#include "../../abi/classifier.h"

/* A global variable is read without a look-up. Its section is a map all the same, and pinned as `live`. */
volatile struct sl_live sl_live SEC(".data.live");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, struct sl_tables);
	__uint(max_entries, SL_BUFFERS);
	__uint(map_flags, BPF_F_MMAPABLE);
} tables SEC(".maps");

/* A type that only maps name is not described to the kernel: so there is one of it. */
const struct sl_row sl_empty_row = {};

/* Made for each policy as large as it needs, and only if it needs any. */
struct sl_rows_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_INNER_MAP);
	__type(key, u32);
	__type(value, struct sl_row);
	__uint(max_entries, 1);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__type(key, u32); /* buffer */
	__uint(max_entries, SL_BUFFERS);
	__array(values, struct sl_rows_map);
} rows SEC(".maps");

struct sl_ranges_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, struct sl_ranges);
	__uint(max_entries, 1);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__type(key, u32); /* buffer * SL_RANGE_FIELDS + enum sl_range_field */
	__uint(max_entries, SL_BUFFERS *SL_RANGE_FIELDS);
	__array(values, struct sl_ranges_map);
} ranges SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, struct sl_flow_set);
	__uint(max_entries, SL_DEFAULT_FLOW_SETS);
	__uint(map_flags, BPF_F_MMAPABLE); /* so that the values begin on a page, and each flow on a cache line */
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, u32);
	__type(value, struct sl_ration);
	__uint(max_entries, 1);
} flow_ration SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__type(key, struct sl_fragment_key);
	__type(value, struct sl_fragment);
	__uint(max_entries, 4096);
} fragments SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, u32); /* direction * SL_CLASSES + class */
	__type(value, struct sl_class_count);
	__uint(max_entries, SL_DIRECTIONS *SL_CLASSES);
} class_counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, u32); /* direction * SL_RULE_COUNTS + index into sl_tables.rule, or enum sl_no_rule */
	__type(value, struct sl_count);
	__uint(max_entries, SL_DIRECTIONS *SL_RULE_COUNTS);
} rule_counts SEC(".maps"); /* plain packets at the queue are counted in struct sl_instance instead */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, u32); /* direction * SL_PARSES + enum sl_parse_kind; those of IPV4 are not counted, but what is left */
	__type(value, struct sl_count);
	__uint(max_entries, SL_DIRECTIONS *SL_PARSES);
} parse_counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, struct sl_police_state);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
} police_state SEC(".maps");

/* Interfaces of the machine whose arriving packets get their class from us, and have had whatever they brought along overwritten. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, struct sl_arrival);
	__type(value, u32);
	__uint(max_entries, SL_ARRIVALS);
} arrivals SEC(".maps");

const struct sl_shared_state sl_full_bucket = {}; /* likewise */

/* One of these is pinned for each name, whatever the interfaces that use it. */
struct sl_shared_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, struct sl_shared_state);
	__uint(max_entries, 1);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__type(key, u32); /* buffer * SL_CLASSES + class */
	__uint(max_entries, SL_BUFFERS *SL_CLASSES);
	__array(values, struct sl_shared_map);
} shared SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, struct sl_explanation);
	__uint(max_entries, 1);
} explanation SEC(".maps");

/* Set before load; a program that need not keep flows has the code removed by the verifier. */
const volatile u32 sl_keep_flows = 1;
const volatile u32 sl_netns = 0; /* number of the network namespace */

static __always_inline u32 sl_live_buffer(u64 word)
{
	return (u32)word & (SL_BUFFERS - 1);
}

static __always_inline u32 sl_live_generation(u64 word)
{
	return (u32)(word >> 32);
}

static __always_inline struct sl_tables *sl_live_tables(void)
{
	u32 buffer = sl_live_buffer(sl_live.word);

	return bpf_map_lookup_elem(&tables, &buffer);
}
