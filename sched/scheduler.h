/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Which scheduler the headers of slots, of flow queues and of the wire are compiled for: the flat one with its classes, unless the
 * includer has named another before (leaf_flows.h). A program has one of them.
 *
 *	SL_SCHEDULER	its state, with slot, free, free_count, fresh, slots, dropped, dropped_slots, fair, src_hosts, dst_hosts, and framing
 *	SL_SLOT		a packet, as in struct sl_slot
 *	SL_CLASS	how a class queues by flow: hosts, flow_quantum_bytes, allowance_bytes, round_ns, target_ns, interval_ns
 *	SL_HOST_TABLE	of src_hosts and dst_hosts
 */
#pragma once
#include "world.h"
#include "../abi/sched.h"

#ifndef SL_SCHEDULER
#define SL_SCHEDULER  struct sl_sched
#define SL_SLOT       struct sl_slot
#define SL_CLASS      struct sl_class
#define SL_HOST_TABLE struct sl_host_table
#endif
