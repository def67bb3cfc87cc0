/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The leaf for packets of a class, where a leaf is divided into parts, or where classes alone choose the leaf. */
#pragma once
#include "world.h"
#include "../abi/hierarchy.h"

/* Whether a leaf holds its packets in parts. */
SL_FN int leaf_is_divided(const struct sl_leaf *leaf)
{
	return leaf->queue == SL_LEAF_DIVIDED;
}

/*
 * The leaf that queues a packet of this class: leaf n, or the part of n for the class if n is divided. SL_NO_NODE: leaf n is not configured, or has
 * no part for the class, since a change waits yet.
 */
SL_FN u32 leaf_of_class(const struct sl_tree *t, u32 n, u32 class)
{
	if (sl_unlikely(leaf_is_divided(sl_at(t->leaf, n)))) {
		n = *sl_at(sl_at(t->parts, n)->of_class, class) - 1u;
		if (n >= SL_FIRST_INNER)
			return SL_NO_NODE;
	}
	return sl_at(t->leaf, n)->limit_pkts ? n : SL_NO_NODE;
}

/* Whether classes alone choose the leaf of a packet, whatever its addresses. */
SL_FN int classes_choose_leaf(const struct sl_tree *t)
{
	return t->leaf_of_class[SL_TREE_CLASSES - 1] != 0;
}

/* The leaf that queues a packet of this class, where classes alone choose it. SL_NO_NODE: the class has none, or it is not configured. */
SL_FN u32 leaf_by_class(const struct sl_tree *t, u32 class)
{
	u32 n = *sl_at(t->leaf_of_class, class) - 1u;

	if (n >= SL_FIRST_INNER)
		return SL_NO_NODE;
	return sl_at(t->leaf, n)->limit_pkts ? n : SL_NO_NODE;
}
