/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The configurations of an interface's schedulers: engine qdisc reads them here, and the process of engine xsk in its own memory. */
#pragma once
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include "../../abi/classifier.h"
#include "../../abi/sched.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32); /* buffer * SL_DIRECTIONS + direction */
	__type(value, struct sl_sched_conf);
	__uint(max_entries, SL_BUFFERS *SL_DIRECTIONS);
	__uint(map_flags, BPF_F_MMAPABLE);
} sched_conf SEC(".maps");
