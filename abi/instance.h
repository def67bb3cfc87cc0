/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The state of one qdisc of engine `qdisc`: the scheduler, and counters under the same lock. */
#pragma once
#include "classifier.h"
#include "sched.h"

struct sl_instance {
	struct sl_sched sched;
	/*
	 * Hits of rules by plain packets; readers add the map rule_counts. By direction: a later qdisc may take this instance for the other
	 * direction, and counters stay.
	 */
	struct sl_count rule_counts[SL_DIRECTIONS][SL_RULE_COUNTS];
};
