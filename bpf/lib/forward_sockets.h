/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The host's own sockets, whose ports no masqueraded connection may have. */
#pragma once
#include "forward_packet.h"
#include "../../abi/forward.h"

#define SL_TCP_LISTEN 10 /* include/net/tcp_states.h */

/* Whether a socket of this host has what c's target sends to c's source. One that waits for any connection has not: ours is found first. */
SL_GLOBAL int sl_host_has(struct __sk_buff *skb, struct sl_connection *c SL_NONNULL)
{
	struct bpf_sock_tuple tuple = {};
	struct bpf_sock *socket;
	u32 bytes, has;

	if (!c)
		return 0;
	if (sl_end_is_ipv4(&c->target)) {
		tuple.ipv4.saddr = c->target.address[3];
		tuple.ipv4.daddr = c->source.address[3];
		tuple.ipv4.sport = c->target_port;
		tuple.ipv4.dport = c->source_port;
		bytes = sizeof(tuple.ipv4);
	} else {
		__builtin_memcpy(tuple.ipv6.saddr, &c->target, 16);
		__builtin_memcpy(tuple.ipv6.daddr, &c->source, 16);
		tuple.ipv6.sport = c->target_port;
		tuple.ipv6.dport = c->source_port;
		bytes = sizeof(tuple.ipv6);
	}
	if (c->proto == 6)
		socket = bpf_sk_lookup_tcp(skb, &tuple, bytes, (u64)BPF_F_CURRENT_NETNS, 0);
	else
		socket = bpf_sk_lookup_udp(skb, &tuple, bytes, (u64)BPF_F_CURRENT_NETNS, 0);
	if (!socket)
		return 0;
	has = c->proto != 6 || socket->state != SL_TCP_LISTEN;
	bpf_sk_release(socket);
	return (int)has;
}
