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

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__type(key, struct sl_prefix);
	__type(value, u32); /* row */
	__uint(max_entries, 2 * SL_BUFFERS * SL_RULES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
} src_prefixes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__type(key, struct sl_prefix);
	__type(value, u32);
	__uint(max_entries, 2 * SL_BUFFERS * SL_RULES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
} dst_prefixes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__type(key, struct sl_flow_key);
	__type(value, struct sl_flow);
	__uint(max_entries, 65536);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, u32); /* direction * SL_CLASSES + class */
	__type(value, struct sl_class_count);
	__uint(max_entries, SL_DIRECTIONS *SL_CLASSES);
} class_counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, u32); /* direction * (SL_RULES + 1) + index into sl_tables.rule, SL_RULES: no rule matched */
	__type(value, struct sl_count);
	__uint(max_entries, SL_DIRECTIONS *(SL_RULES + 1));
} rule_counts SEC(".maps");

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

/* Set before load; a program that need not keep flows has the code removed by the verifier. */
const volatile u32 sl_keep_flows = 1;

static __always_inline u32 sl_live_buffer(u64 word)
{
	return (u32)word & (SL_BUFFERS - 1);
}

static __always_inline u32 sl_live_generation(u64 word)
{
	return (u32)(word >> 32);
}

static __always_inline struct sl_tables *sl_live_tables(u32 *buffer)
{
	*buffer = sl_live_buffer(sl_live.word);
	return bpf_map_lookup_elem(&tables, buffer);
}
