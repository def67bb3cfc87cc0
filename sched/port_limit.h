/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The limit on the bytes that a port has under way: as few as keep it busy. A port has them in one queue, in which an urgent packet waits for all that
 * is ahead; others are in the scheduler.
 *
 *	port_limit_configure	between which bounds, and how fast it falls
 *	port_limit_has_room	whether a packet may be given to the port
 *	port_limit_give		the port was given a packet of so many bytes
 *	port_limit_return	it has sent so many of these bytes
 *
 * The algorithm is that of the kernel's dynamic queue limits, by which drivers keep their rings short (lib/dynamic_queue_limits.c and
 * include/linux/dynamic_queue_limits.h, Tom Herbert 2011), in bytes, with the time as an argument. It knows neither the rate of the port nor how often
 * the engine looks at it; it sees what comes back each time that the engine looks:
 *
 * - If nothing is left, and more would have been given without the limit, the port may have been idle. The limit grows by what has both been
 *   given and come back since the last look, and by what was beyond the limit before.
 * - If the port was busy all the time, what was under way beyond twice that which came back was too much. The least of this over hold_ns is
 *   taken off the limit. So a limit of two looks remains, and the longest time between two looks within hold_ns counts.
 *
 * A packet may be given as long as no more is under way than the limit, so one packet may go beyond it. A port that sends a packet while it is given
 * has nothing under way at any look, and its limit soon is more than it is given at a time.
 *
 * Bounds: what is under way is at most the limit and a packet. The limit is between the bounds at any time. Cost: a few instructions.
 */
#pragma once
#include "world.h"
#include "../abi/port_limit.h"

#define SL_NO_SLACK (~0ULL)

/* a - b, or 0 if b is more. */
SL_FN u64 port_limit_beyond(u64 a, u64 b)
{
	return a > b ? a - b : 0;
}

SL_FN u64 port_limit_between(const struct sl_port_limit_conf *conf, u64 bytes)
{
	return sl_max(conf->least_bytes, sl_min(bytes, conf->most_bytes));
}

/* These are the bounds from now on; what is under way stays so. */
SL_FN void port_limit_configure(struct sl_port_limit *l, const struct sl_port_limit_conf *conf, u64 now_ns)
{
	l->conf = *conf;
	l->limit_bytes = port_limit_between(&l->conf, l->limit_bytes);
	l->least_slack_bytes = SL_NO_SLACK;
	l->slack_since_ns = now_ns;
}

/* Bytes that the port has. */
SL_FN u64 port_limit_under_way(const struct sl_port_limit *l)
{
	return l->given_bytes - l->returned_bytes;
}

/* Whether the port may be given a packet. */
SL_FN u32 port_limit_has_room(const struct sl_port_limit *l)
{
	return port_limit_under_way(l) <= l->limit_bytes;
}

/* The port was given a packet. */
SL_FN void port_limit_give(struct sl_port_limit *l, u32 bytes)
{
	l->given_bytes += bytes;
	l->last_bytes = bytes;
}

/* The port was busy since the last look, and packets came back: what was too much, in bytes. */
SL_FN u64 port_limit_slack(const struct sl_port_limit *l, u64 came_bytes)
{
	u64 slack_bytes = port_limit_beyond(l->limit_bytes + l->then_over_bytes, 2 * came_bytes), last_bytes = 0;

	/* The part of the last packet that was within the limit: without it, the packet would not have been given. */
	if (l->then_over_bytes)
		last_bytes = port_limit_beyond(l->then_last_bytes, l->then_over_bytes);
	return sl_max(slack_bytes, last_bytes);
}

/* The engine has seen that packets of so many bytes have come back, which is not 0. More than was under way counts as all of it. */
SL_FN void port_limit_return(struct sl_port_limit *l, u64 came_bytes, u64 now_ns)
{
	u64 over_bytes = port_limit_beyond(port_limit_under_way(l), l->limit_bytes), limit_bytes = l->limit_bytes, returned_bytes;
	u32 was_busy = l->then_given_bytes > l->returned_bytes, all_of_then;

	came_bytes = sl_min(came_bytes, port_limit_under_way(l));
	returned_bytes = l->returned_bytes + came_bytes;
	all_of_then = returned_bytes >= l->then_given_bytes;
	if ((over_bytes && returned_bytes == l->given_bytes) || (l->then_over_bytes && all_of_then)) {
		limit_bytes += port_limit_beyond(returned_bytes, l->then_given_bytes) + l->then_over_bytes;
		l->slack_since_ns = now_ns;
		l->least_slack_bytes = SL_NO_SLACK;
	} else if (returned_bytes < l->given_bytes && was_busy && !all_of_then) {
		l->least_slack_bytes = sl_min(l->least_slack_bytes, port_limit_slack(l, came_bytes));
		if (now_ns - l->slack_since_ns > l->conf.hold_ns) {
			limit_bytes = port_limit_beyond(limit_bytes, l->least_slack_bytes);
			l->slack_since_ns = now_ns;
			l->least_slack_bytes = SL_NO_SLACK;
		}
	}
	limit_bytes = port_limit_between(&l->conf, limit_bytes);
	/* Another limit was not exceeded yet. */
	l->then_over_bytes = limit_bytes == l->limit_bytes ? over_bytes : 0;
	l->limit_bytes = limit_bytes;
	l->then_last_bytes = l->last_bytes;
	l->then_given_bytes = l->given_bytes;
	l->returned_bytes = returned_bytes;
}
