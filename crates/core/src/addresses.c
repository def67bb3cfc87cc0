/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The look-up of addresses, as a table of functions that Rust can call: struct LookUp of addresses.rs. */
#include "addresses.h"

static u32 core_leaf_marked(const struct sl_addresses *t, u32 mark, u32 vlan)
{
	return addresses_leaf_marked(t, mark, vlan);
}

static u32 core_leaf(const struct sl_addresses *t, const u32 *word)
{
	return addresses_leaf(t, word);
}

const struct {
	u32 table_bytes;
	u32 (*leaf)(const struct sl_addresses *t, const u32 *word);
	u32 (*leaf_marked)(const struct sl_addresses *t, u32 mark, u32 vlan);
} sl_addresses_core = {
	.table_bytes = sizeof(struct sl_addresses),
	.leaf = core_leaf,
	.leaf_marked = core_leaf_marked,
};
