/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The words, the configuration and the instances of a link that schedulers share: those below mq (engine qdisc), or the workers of a wire (engine xsk),
 * whose process has the maps in its memory.
 */
#pragma once
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include "../../abi/classifier.h"
#include "../../abi/shared_credit.h"

/* Mapped maps begin on a page, so each word has a line of its own. The loader sets the number of elements, and makes none of these maps where one queue sends. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, struct sl_shared_link);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
} shared_link SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32); /* buffer */
	__type(value, struct sl_shared_conf);
	__uint(max_entries, SL_BUFFERS);
	__uint(map_flags, BPF_F_MMAPABLE);
} shared_conf SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32); /* number of the scheduler */
	__type(value, struct sl_shared_instance);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
} shared_instance SEC(".maps");
