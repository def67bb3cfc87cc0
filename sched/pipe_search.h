/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The next pipes that may send, from bitmaps alone: no memory of a pipe is touched before it is found.
 *
 * A pipe has 16 bits, its queues that are ready; one bit if it has such queues (active); and one if it stands in a group or waits for tokens
 * (engaged). A word of 64 pipes has a bit in the summary if one of them may be active and not engaged, and 16 bits for the queues that may be
 * ready in one of them. If some classes are held back, 64 pipes' queues are compared with the others' at once. So neither a pipe without
 * packets, nor one without tokens, nor one whose classes are all held back is looked at.
 *
 * The bits of a word in summary and any may be out of date in one way: they name more than there is. A search that finds nothing there corrects it.
 */
#pragma once
#include "pipe_wheel.h"
#if defined(__AVX512BW__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

#define SL_PIPE_ALL_QUEUES 0xffffu

/* Queues of pipe p are ready that were not. */
SL_FN void pipe_ready(struct sl_pipes *t, u32 p, u32 queues)
{
	u32 word = p >> 6;

	*sl_at(t->ready, p) |= (u16)queues;
	*sl_at(t->any, word) |= (u16)queues;
	*sl_at(t->active, word) |= SL_BIT(p);
	*sl_at(t->summary, word >> 6) |= SL_BIT(word);
}

/* Pipe p stands in no group any more, and does not wait for tokens. */
SL_FN void pipe_release(struct sl_pipes *t, u32 p)
{
	u32 word = p >> 6, ready = *sl_at(t->ready, p);

	*sl_at(t->engaged, word) &= ~SL_BIT(p);
	if (!ready) {
		*sl_at(t->active, word) &= ~SL_BIT(p);
		return;
	}
	*sl_at(t->any, word) |= (u16)ready;
	*sl_at(t->summary, word >> 6) |= SL_BIT(word);
}

/* Those of 64 elements that have a bit in common with queues: the plain way, for other processors and for tests. */
SL_FN u64 pipes_in_common_plainly(const u16 *element, u32 queues)
{
	u64 found = 0;
	u32 i;

	sl_for (i, 64)
		found |= (u64)((element[i] & queues) != 0) << i;
	return found;
}

/* Those of 64 elements that have a bit in common with queues. */
SL_FN u64 pipes_in_common(const u16 *element, u32 queues)
{
#if defined(__AVX512BW__)
	__m512i wanted = _mm512_set1_epi16((short)queues);

	return _mm512_test_epi16_mask(_mm512_loadu_si512(element), wanted) |
	       (u64)_mm512_test_epi16_mask(_mm512_loadu_si512(element + 32), wanted) << 32;
#elif defined(__SSE2__)
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
#else
	return pipes_in_common_plainly(element, queues);
#endif
}

/* Of the pipes of a word, those that may have a turn: they have one of these queues ready, and are not engaged. */
SL_FN u64 pipe_word_search(struct sl_pipes *t, u32 word, u32 queues)
{
	u64 bits = *sl_at(t->active, word) & ~*sl_at(t->engaged, word);

	SL_PIPE_STEP();
	if (sl_unlikely(queues != SL_PIPE_ALL_QUEUES) && bits) {
		bits &= pipes_in_common(sl_at(t->ready, word * 64), queues);
		if (!bits)
			*sl_at(t->any, word) &= (u16)~queues;
	}
	return bits;
}

/* These pipes of a word have been found, and are engaged from now on. */
SL_FN void pipe_word_engage(struct sl_pipes *t, u32 word, u64 found)
{
	u64 *engaged = sl_at(t->engaged, word);

	*engaged |= found;
	if (!(*sl_at(t->active, word) & ~*engaged))
		*sl_at(t->summary, word >> 6) &= ~SL_BIT(word);
}
