/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The state of the limit on what a port has under way (sched/port_limit.h). Plain old data, as in sched.h. All zeroes lets one packet at a time be under way, and
 * never more.
 */
#pragma once
#include "types.h"

struct sl_port_limit_conf {
	u64 least_bytes; /* the limit is not below this, */
	u64 most_bytes; /* and not above this */
	u64 hold_ns; /* what was too much for so long is taken off */
};

struct sl_port_limit {
	struct sl_port_limit_conf conf;
	u64 limit_bytes;
	u64 given_bytes; /* to the port, ever */
	u64 returned_bytes; /* of these, ever */
	u64 last_bytes; /* of the packet that was given last */
	/* when packets came back last: */
	u64 then_given_bytes; /* given_bytes */
	u64 then_over_bytes; /* what was under way beyond the limit, before they came back */
	u64 then_last_bytes; /* last_bytes */
	/* what was too much each time since slack_since_ns, in bytes; ~0: packets have not come back since then, or the port was not busy */
	u64 least_slack_bytes;
	u64 slack_since_ns;
};
