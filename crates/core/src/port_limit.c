/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The limit on what a port has under way, as a table of functions that Rust can call: struct LimitCore of port_limit.rs. */
#include "port_limit.h"

static void core_limit_configure(struct sl_port_limit *l, const struct sl_port_limit_conf *conf, u64 now_ns)
{
	port_limit_configure(l, conf, now_ns);
}

static u32 core_limit_has_room(const struct sl_port_limit *l)
{
	return port_limit_has_room(l);
}

static void core_limit_give(struct sl_port_limit *l, u32 bytes)
{
	port_limit_give(l, bytes);
}

static void core_limit_return(struct sl_port_limit *l, u64 bytes, u64 now_ns)
{
	port_limit_return(l, bytes, now_ns);
}

const struct {
	u32 state_bytes;
	u32 conf_bytes;
	void (*configure)(struct sl_port_limit *l, const struct sl_port_limit_conf *conf, u64 now_ns);
	u32 (*has_room)(const struct sl_port_limit *l);
	void (*give)(struct sl_port_limit *l, u32 bytes);
	void (*come_back)(struct sl_port_limit *l, u64 bytes, u64 now_ns);
} sl_limit_core = {
	.state_bytes = sizeof(struct sl_port_limit),
	.conf_bytes = sizeof(struct sl_port_limit_conf),
	.configure = core_limit_configure,
	.has_room = core_limit_has_room,
	.give = core_limit_give,
	.come_back = core_limit_return,
};
