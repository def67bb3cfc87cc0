/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Translation between IPv4 and IPv6 (RFC 7915): what a packet or an error says in the other family. */
#pragma once
#include "../abi/forward.h"
#include "../sched/world.h"

/* The difference between both headers. */
#define SL_FAMILY_BYTES   20u
/* The least MTU of IPv6 (RFC 8200, 5): a sender does not go below it, so what is no longer may be cut into fragments as IPv4. */
#define SL_IPV6_LEAST_MTU 1280u
/* The longest packet whose length both headers can say. */
#define SL_LONGEST_PACKET 65535u

/* An ICMP error. */
struct sl_icmp {
	u32 type;
	u32 code;
	u32 mtu; /* of "fragmentation needed" and "packet too big", else 0 */
};

/* The MTU that an IPv6 host is told, where an IPv4 router has said `mtu`; 0: the router is older than RFC 1191, and has said none. */
SL_FN u32 mtu_of_ipv6(u32 mtu)
{
	return sl_max(mtu + SL_FAMILY_BYTES, SL_IPV6_LEAST_MTU);
}

/* The MTU that an IPv4 host is told, where an IPv6 router has said `mtu`. */
SL_FN u32 mtu_of_ipv4(u32 mtu)
{
	return sl_min(sl_max(mtu, SL_IPV6_LEAST_MTU), SL_LONGEST_PACKET) - SL_FAMILY_BYTES;
}

/* Makes an error of ICMP one of ICMPv6 (RFC 7915, 4.2). Returns 0 if there is none that says the same. */
SL_FN int icmp_to_ipv6(struct sl_icmp *e)
{
	u32 type = e->type, code = e->code;

	if (type == 11) { /* time exceeded */
		e->type = 3;
		return 1;
	}
	if (type != 3) /* unreachable */
		return 0;
	e->type = 1;
	switch (code) {
	case 0: /* network */
	case 1: /* host */
	case 5: /* source route failed */
	case 6:
	case 7:
	case 8:
	case 11: /* network, for the type of service */
	case 12:
		e->code = 0; /* no route */
		return 1;
	case 2: /* protocol */
		e->type = 4; /* parameter problem: next header; the place of that in the header is where an MTU stands */
		e->code = 1;
		e->mtu = 6;
		return 1;
	case 3: /* port */
		e->code = 4;
		return 1;
	case 4: /* fragmentation needed */
		e->type = 2;
		e->code = 0;
		e->mtu = mtu_of_ipv6(e->mtu);
		return 1;
	case 9: /* administratively prohibited */
	case 10:
	case 13:
	case 15:
		e->code = 1;
		return 1;
	}
	return 0;
}

/* Makes an error of ICMPv6 one of ICMP (RFC 7915, 5.2). Returns 0 if there is none that says the same. */
SL_FN int icmp_to_ipv4(struct sl_icmp *e)
{
	u32 type = e->type, code = e->code;

	if (type == 3) {
		e->type = 11;
		return 1;
	}
	e->type = 3;
	if (type == 2) {
		e->code = 4;
		e->mtu = mtu_of_ipv4(e->mtu);
		return 1;
	}
	if (type == 4 && code == 1) {
		e->code = 2;
		e->mtu = 0;
		return 1;
	}
	if (type != 1 || code > 4)
		return 0;
	e->code = code == 1 ? 10 : code == 4 ? 3 : 1;
	return 1;
}
