/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The one place that knows whether the core is compiled for BPF or natively: loops, indices, bits. */
#pragma once
#include "../abi/types.h"

#ifdef __bpf__
#define SL_FN        static __always_inline
/* A global function: the verifier checks it once, on its own, however often it is called. */
#define SL_GLOBAL    __attribute__((noinline))
#define SL_NONNULL   __arg_nonnull
/* Verified once, whatever the bound. */
#define sl_for(i, n) bpf_for (i, 0, n)
/* Hides a value from the compiler, so that it cannot remove a mask that the verifier needs to see. */
#define sl_opaque(x) asm volatile("" : "+r"(x))
/* In front of a loop: its steps are written one after the other, so that the verifier knows each index. */
#define SL_UNROLLED  _Pragma("unroll")
#else
#define SL_UNROLLED
#define SL_FN     static inline __attribute__((unused))
#define SL_GLOBAL static inline __attribute__((unused))
#define SL_NONNULL
#define sl_for(i, n) for (i = 0; i < (u32)(n); i++)
#define sl_opaque(x)
#endif

#define sl_likely(x)   __builtin_expect(!!(x), 1)
#define sl_unlikely(x) __builtin_expect(!!(x), 0)
#define sl_max(a, b)   ((a) > (b) ? (a) : (b))
#define sl_min(a, b)   ((a) < (b) ? (a) : (b))

#define sl_length(array) (sizeof(array) / sizeof((array)[0]))

/* Element i of an array whose length is a power of two. Out of bounds wraps round: a wrong element, never wild memory. */
#define sl_at(array, i)                      \
	(&(array)[({                         \
		u32 i_ = (i);                \
		sl_opaque(i_);               \
		(sl_length(array) - 1) & i_; \
	})])

#define SL_BIT(n) (1ULL << ((n) & 63))

#ifdef __bpf__
/* Number of the only bit that is set, by its place in a de Bruijn sequence (Leiserson, Prokop & Randall 1998). No branches: cheap to verify. */
SL_FN u32 sl_only(u64 x)
{
	static const u8 place[64] = { 0,  1,  2,  53, 3,  7,  54, 27, 4,  38, 41, 8,  34, 55, 48, 28, 62, 5,  39, 46, 44, 42,
				      22, 9,  24, 35, 59, 56, 49, 18, 29, 11, 63, 52, 6,  26, 37, 40, 33, 47, 61, 45, 43, 21,
				      23, 58, 17, 10, 51, 25, 36, 32, 60, 20, 57, 16, 50, 31, 19, 15, 30, 14, 13, 12 };

	return place[(x * 0x022fdd63cc95386dULL) >> 58];
}
#endif

/* Number of the lowest set bit; x is not 0. */
SL_FN u32 sl_lowest(u64 x)
{
#ifdef __bpf__
	return sl_only(x & -x);
#else
	return (u32)__builtin_ctzll(x);
#endif
}

/* The lowest set bit at or above from, else the lowest of all; x is not 0. */
SL_FN u32 sl_lowest_from(u64 x, u32 from)
{
	u64 above = x & (~0ULL << (from & 63));

	return sl_lowest(above ? above : x);
}

/* Floor of the logarithm to base 2; v is not 0. */
SL_FN u32 sl_log2(u32 v)
{
#ifdef __bpf__
	v |= v >> 1;
	v |= v >> 2;
	v |= v >> 4;
	v |= v >> 8;
	v |= v >> 16;
	return sl_only(v - (v >> 1));
#else
	return 31 - (u32)__builtin_clz(v);
#endif
}

/* Number of the highest set bit; x is not 0. */
SL_FN u32 sl_highest(u64 x)
{
#ifdef __bpf__
	x |= x >> 1;
	x |= x >> 2;
	x |= x >> 4;
	x |= x >> 8;
	x |= x >> 16;
	x |= x >> 32;
	return sl_only(x - (x >> 1));
#else
	return 63 - (u32)__builtin_clzll(x);
#endif
}

/* For each bit of left, from the lowest on: c is its number, and left what is behind it. n counts. */
#define sl_for_bits(n, c, left)                       \
	sl_for (n, 64)                                \
		if (!(left))                          \
			break;                        \
		else if (({                           \
				 c = sl_lowest(left); \
				 left &= left - 1;    \
				 0;                   \
			 })) {                        \
		} else

/* Whether one virtual time is before another. They wrap round, and are less than half of their range apart. */
SL_FN int virtual_before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

/* How long ago a time is; 0 for one that another CPU's clock has put ahead of this one's. */
SL_FN u64 sl_since(u64 now_ns, u64 then_ns)
{
	return now_ns > then_ns ? now_ns - then_ns : 0;
}
