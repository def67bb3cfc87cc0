/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What engine qdisc keeps for one of its qdiscs: the scheduler, and what is counted under the same lock. */
#pragma once
#include "classifier.h"
#include "sched.h"

struct sl_instance {
	struct sl_sched sched;
	/* Beside those of the map rule_counts; by direction, since a qdisc that comes later may serve the other one. */
	struct sl_count rule_counts[SL_DIRECTIONS][SL_RULE_COUNTS];
};
