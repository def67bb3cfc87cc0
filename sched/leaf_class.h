/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The leaf for packets of a class, where a leaf is divided into parts, or in a class tree, where the class alone chooses the leaf. */
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

/* Whether this is a class tree: the class of a packet chooses its leaf, whatever its addresses. */
SL_FN int is_class_tree(const struct sl_tree *t)
{
	return t->class_leaf[SL_TREE_CLASSES - 1] != 0;
}

/* The leaf that queues a packet of this class, in a class tree. SL_NO_NODE: the class has none, or it is not configured. */
SL_FN u32 leaf_by_class(const struct sl_tree *t, u32 class)
{
	u32 n = *sl_at(t->class_leaf, class) - 1u;

	if (n >= SL_FIRST_INNER)
		return SL_NO_NODE;
	return sl_at(t->leaf, n)->limit_pkts ? n : SL_NO_NODE;
}
