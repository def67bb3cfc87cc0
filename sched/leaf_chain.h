/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The chains by which a flow of a leaf is found. */
#pragma once
#include "world.h"
#include "../abi/hierarchy.h"

/* Flows of a chain that are looked at. By chance, one in 10^89 is longer, with as many flows as there are. */
#define SL_CHAIN_FLOWS 64u

/* The chain of a flow of a leaf: an element of sl_tree.flow_of_hash. Of flows with one hash, each leaf's has another chain. */
SL_FN u32 leaf_chain(u32 leaf, u32 hash)
{
	return hash ^ leaf * 40503;
}
