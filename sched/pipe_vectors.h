/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Which of 64 elements of 16 bits have a bit in common with a mask, by AVX-512, AVX2, SSE2, NEON or plain C. All ways find the same.
 * pipes_in_common is the best way for the processor that this is compiled for. The native core defines SL_PIPE_ALL_WAYS, so that tests can compare
 * every way that this kind of processor may have.
 */
#pragma once
#include "world.h"
#if defined(SL_PIPE_ALL_WAYS) && defined(__x86_64__)
#define SL_PIPE_X86_WAYS
#endif
#if defined(__AVX2__) || defined(SL_PIPE_X86_WAYS)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>
#endif

/* A function of a way that the compiler need not have been told of. */
#define SL_WAY(processor) __attribute__((target(processor)))

/* The plain way, for other processors and for tests. */
SL_FN u64 pipes_in_common_plainly(const u16 *element, u32 queues)
{
	u64 found = 0;
	u32 i;

	sl_for (i, 64)
		found |= (u64)((element[i] & queues) != 0) << i;
	return found;
}

#if defined(__AVX512BW__) || defined(SL_PIPE_X86_WAYS)
#define SL_PIPE_AVX512
SL_WAY("avx512bw") SL_FN u64 pipes_in_common_avx512(const u16 *element, u32 queues)
{
	__m512i wanted = _mm512_set1_epi16((short)queues);
	u64 low = _mm512_test_epi16_mask(_mm512_loadu_si512(element), wanted);
	u64 high = _mm512_test_epi16_mask(_mm512_loadu_si512(element + 32), wanted);

	return low | high << 32;
}
#endif

#if defined(__AVX2__) || defined(SL_PIPE_X86_WAYS)
#define SL_PIPE_AVX2
SL_WAY("avx2") SL_FN u64 pipes_in_common_avx2(const u16 *element, u32 queues)
{
	__m256i wanted = _mm256_set1_epi16((short)queues), zero = _mm256_setzero_si256(), low, high, packed;
	u64 empty = 0;
	u32 i;

	sl_for (i, 2) {
		low = _mm256_loadu_si256((const __m256i *)(const void *)(element + 32 * i));
		high = _mm256_loadu_si256((const __m256i *)(const void *)(element + 32 * i + 16));
		low = _mm256_cmpeq_epi16(_mm256_and_si256(low, wanted), zero);
		high = _mm256_cmpeq_epi16(_mm256_and_si256(high, wanted), zero);
		/* Packing takes halves in turn: quarters 0, 2, 1 and 3 are in order. */
		packed = _mm256_permute4x64_epi64(_mm256_packs_epi16(low, high), 0xd8);
		empty |= (u64)(u32)_mm256_movemask_epi8(packed) << 32 * i;
	}
	return ~empty;
}
#endif

#if defined(__SSE2__)
#define SL_PIPE_SSE2
SL_FN u64 pipes_in_common_sse2(const u16 *element, u32 queues)
{
	__m128i wanted = _mm_set1_epi16((short)queues), zero = _mm_setzero_si128(), low, high;
	u64 none = 0;
	u32 i;

	sl_for (i, 4) {
		low = _mm_loadu_si128((const __m128i *)(const void *)(element + 16 * i));
		high = _mm_loadu_si128((const __m128i *)(const void *)(element + 16 * i + 8));
		low = _mm_cmpeq_epi16(_mm_and_si128(low, wanted), zero);
		high = _mm_cmpeq_epi16(_mm_and_si128(high, wanted), zero);
		none |= (u64)(u32)_mm_movemask_epi8(_mm_packs_epi16(low, high)) << 16 * i;
	}
	return ~none;
}
#endif

#if defined(__ARM_NEON) && defined(__aarch64__)
#define SL_PIPE_NEON
SL_FN u64 pipes_in_common_neon(const u16 *element, u32 queues)
{
	static const u8 place[16] = { 1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128 };
	uint16x8_t wanted = vdupq_n_u16((u16)queues);
	uint8x16_t bit = vld1q_u8(place), part[4];
	u32 i;

	sl_for (i, 4) {
		uint16x8_t low = vtstq_u16(vld1q_u16(element + 16 * i), wanted);
		uint16x8_t high = vtstq_u16(vld1q_u16(element + 16 * i + 8), wanted);

		part[i] = vandq_u8(vcombine_u8(vmovn_u16(low), vmovn_u16(high)), bit);
	}
	/* Neighbours are added three times, so that a byte has the bits of eight elements. */
	part[0] = vpaddq_u8(vpaddq_u8(part[0], part[1]), vpaddq_u8(part[2], part[3]));
	return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(part[0], part[0])), 0);
}
#endif

/* Those of 64 elements that have a bit in common with queues. */
SL_FN u64 pipes_in_common(const u16 *element, u32 queues)
{
#if defined(SL_PIPE_PLAINLY)
	return pipes_in_common_plainly(element, queues);
#elif defined(__AVX512BW__)
	return pipes_in_common_avx512(element, queues);
#elif defined(__AVX2__)
	return pipes_in_common_avx2(element, queues);
#elif defined(__SSE2__)
	return pipes_in_common_sse2(element, queues);
#elif defined(SL_PIPE_NEON)
	return pipes_in_common_neon(element, queues);
#else
	return pipes_in_common_plainly(element, queues);
#endif
}
