/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The class with the smallest key, of up to 64: a tournament tree (Knuth, TAOCP 3, 5.4.1). Leaf c is class c if it takes part; every inner node
 * holds the winner of the two below. The tree is as deep as the highest class that has taken part needs: three levels for classes 0 to 7, six for
 * 63. A change replays the matches between its leaf and the root, one on each level; the winner is read in one step. Keys
 * are virtual times: they wrap round, and are compared by the sign of their difference.
 */
#pragma once
#include "world.h"
#include "../abi/sched.h"

SL_FN u32 tournament_root(const struct sl_tournament *t)
{
	return SL_CLASSES >> t->levels;
}

/* Adds levels above the root until the tree holds class c. */
SL_GLOBAL int tournament_grow(struct sl_tournament *t SL_NONNULL, u32 c)
{
	u8 best = *sl_at(t->winner, tournament_root(t));
	u32 i;

#pragma GCC unroll 6
	for (i = 0; i < 6; i++) {
		if (!(c >> t->levels))
			break;
		t->levels++;
		*sl_at(t->winner, tournament_root(t)) = best;
	}
	return 0;
}

SL_GLOBAL int tournament_replay(struct sl_tournament *t SL_NONNULL, u32 c)
{
	u32 node = SL_CLASSES + (c & (SL_CLASSES - 1)), root = tournament_root(t), best = *sl_at(t->winner, node), i;
	u64 key = *sl_at(t->key, best - 1);

#pragma GCC unroll 6
	for (i = 0; i < 6; i++) {
		u32 other;
		u64 its;

		if (node <= root)
			break;
		other = *sl_at(t->winner, node ^ 1);
		its = *sl_at(t->key, other - 1);
		if (other && (!best || virtual_before(its, key))) {
			best = other;
			key = its;
		}
		node >>= 1;
		*sl_at(t->winner, node) = (u8)best;
	}
	return 0;
}

/* Class c takes part with this key, or gets a new one. */
SL_FN void tournament_put(struct sl_tournament *t, u32 c, u64 key)
{
	if (sl_unlikely(c >> t->levels))
		tournament_grow(t, c);
	*sl_at(t->key, c) = key;
	*sl_at(t->winner, SL_CLASSES + c) = (u8)(c + 1);
	tournament_replay(t, c);
}

SL_FN void tournament_cut(struct sl_tournament *t, u32 c)
{
	*sl_at(t->winner, SL_CLASSES + c) = 0;
	tournament_replay(t, c);
}

SL_FN int tournament_has(const struct sl_tournament *t, u32 c)
{
	return *sl_at(t->winner, SL_CLASSES + c) != 0;
}

SL_FN int tournament_empty(const struct sl_tournament *t)
{
	return !*sl_at(t->winner, tournament_root(t));
}

/* Not of an empty one. */
SL_FN u32 tournament_first(const struct sl_tournament *t)
{
	return (*sl_at(t->winner, tournament_root(t)) - 1u) & (SL_CLASSES - 1);
}

SL_FN void tournament_clear(struct sl_tournament *t)
{
	__builtin_memset(t->winner, 0, sizeof(t->winner));
	t->levels = 0;
}
