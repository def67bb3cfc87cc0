/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The leaves of hosts, as a table of functions that Rust can call: struct Hosts of each_host.rs. */
#include "each_host.h"

static u32 core_host_leaf(struct sl_each_host *h, const struct sl_tree *t, u32 leaf, const struct sl_address_key *address,
			  u64 now_ns)
{
	return host_leaf(h, t, leaf, address, now_ns);
}

static u32 core_host_leaf_if_known(const struct sl_each_host *h, u32 leaf, const struct sl_address_key *address)
{
	return host_leaf_if_known(h, leaf, address);
}

const struct {
	u32 hosts_bytes;
	u32 tree_bytes;
	u32 (*leaf)(struct sl_each_host *h, const struct sl_tree *t, u32 leaf, const struct sl_address_key *address, u64 now_ns);
	u32 (*leaf_if_known)(const struct sl_each_host *h, u32 leaf, const struct sl_address_key *address);
} sl_each_host_core = {
	.hosts_bytes = sizeof(struct sl_each_host),
	.tree_bytes = sizeof(struct sl_tree),
	.leaf = core_host_leaf,
	.leaf_if_known = core_host_leaf_if_known,
};
