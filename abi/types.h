/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The integer types of every shared struct, in the world that includes this file. */
#pragma once

#ifdef __bpf__
/* bpf/lib/kernel.h has declared them. */
#else
#include <stdint.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
#endif
