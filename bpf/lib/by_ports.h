/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Classes of policies whose rules ask for the protocol and ports alone: from the words of a plain packet, without a struct of headers. */
#pragma once
#include "classify.h"
#include "parse.h"

/*
 * The choice for a packet whose words from SL_FRONT on are these. Returns 0 where the parser must look: the packet is not plain
 * (sl_parse_plain), or a built-in rule may be asked for it. t->by_ports is set.
 */
static __always_inline int sl_choose_by_ports(const struct sl_tables *t, const volatile u64 *w, struct sl_choice *choice)
{
	u64 ip = w[1], addresses, rest, hit;
	u32 proto, sport, dport, rule;

	if (w[0] >> 48 != __builtin_bswap16(SL_ETH_IPV4) || (ip & 0xff) != 0x45 || ip >> 48 & __builtin_bswap16(0x3fff) ||
	    __builtin_bswap16((u16)(ip >> 16)) < 24)
		return 0;
	addresses = w[2];
	proto = addresses >> 8 & 0xff;
	if (proto != 6 && proto != 17)
		return 0;
	rest = w[3];
	sport = __builtin_bswap16((u16)(rest >> 32));
	dport = __builtin_bswap16((u16)(rest >> 48));
	hit = sl_small_row(t, t->proto_row[proto]) & sl_small_row(t, t->sport_row[sport]) & sl_small_row(t, t->dport_row[dport]);
	rule = hit ? sl_lowest(hit) : SL_RULE_NONE;
	/* DHCP has a port below 1024 on both sides. */
	if (rule >= t->control_from && proto == 17 && sport < 1024 && dport < 1024)
		return 0;
	choice->rule = rule;
	choice->class = (hit ? *sl_at(t->rule_class, rule) : t->default_class) & (SL_CLASSES - 1);
	return 1;
}
