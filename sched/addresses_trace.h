/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Looks a packet's mark, VLAN and address of a trace up: the same source in the kernel and natively. */
#pragma once
#include "addresses.h"
#include "../abi/addresses_trace.h"

SL_FN void addresses_play(const struct sl_addresses *t, struct sl_address_op *op)
{
	op->leaf = addresses_leaf_marked(t, op->mark, op->vlan);
	if (op->leaf == SL_ADDRESS_NO_LEAF)
		op->leaf = addresses_leaf(t, op->address);
}
