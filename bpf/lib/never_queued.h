/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Packets that go ahead of the queues of a wire: those that a built-in rule has chosen (choose.h), and LLDP, by which neighbours know each other's ports.
 * Without them there is no network, so a full wire must not take them down. The bucket of the built-in rules bounds them (SL_CONTROL_COST). Engine xsk and
 * crates/classifier ask it.
 */
#pragma once

#define SL_ETH_LLDP 0x88cc

static __always_inline int sl_is_lldp(const u8 *frame, const u8 *end)
{
	return frame + 14 <= end && frame[12] == SL_ETH_LLDP >> 8 && frame[13] == (SL_ETH_LLDP & 0xff);
}

/* `control`: a built-in rule has chosen the packet's class. */
static __always_inline int sl_is_never_queued(u32 control, const u8 *frame, const u8 *end)
{
	return control || sl_is_lldp(frame, end);
}
