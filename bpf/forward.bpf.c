// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Port forwarding on arrival: at tcx or clsact, so that super-packets stay whole. One object for a network namespace; the arrival hook of a
 * managed interface calls it last, and on other interfaces by which targets answer it is the hook. Runs from Linux 6.1.
 */
#include "lib/kernel.h"
#include <bpf/bpf_helpers.h>
#include "../sched/world.h"
#include "lib/forward_tables.h"
#include "../forward/connections.h"
#include "lib/forward_packet.h"
#include "lib/forward_route.h"
#include "lib/forward_errors.h"
#include "lib/forward_translate.h"
#include "lib/forward_fragments.h"
#include "lib/forward_sockets.h"
#include "lib/own_clients.h"
#include "lib/after_arrival.h"
#include "lib/forward_begin.h"
#include "lib/forward_pass.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Parts of the hooks, which share them: each is verified once, and has a stack of its own. */
enum sl_stage { SL_STAGE_PACKET, SL_STAGE_ERROR, SL_STAGE_COMPLAINT, SL_STAGE_FRAGMENT, SL_STAGES };
int sl_forward_called(struct __sk_buff *skb);
int sl_forward_error(struct __sk_buff *skb);
int sl_forward_complaint(struct __sk_buff *skb);
int sl_forward_fragment(struct __sk_buff *skb);
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__type(key, u32);
	__uint(max_entries, SL_STAGES);
	__array(values, int(struct __sk_buff *));
} stages SEC(".maps") = { .values = { [SL_STAGE_PACKET] = (void *)&sl_forward_called,
				      [SL_STAGE_ERROR] = (void *)&sl_forward_error,
				      [SL_STAGE_COMPLAINT] = (void *)&sl_forward_complaint,
				      [SL_STAGE_FRAGMENT] = (void *)&sl_forward_fragment } };

/*
 * The connection that an error is about, or none. Sets *outer to the addresses that the error gets and *quoted to those of the packet in it. A
 * function of its own for its stack.
 */
SL_GLOBAL u32 sl_connection_of_error(struct sl_error *e SL_NONNULL, struct sl_tuple *outer SL_NONNULL,
				     struct sl_tuple *quoted SL_NONNULL)
{
	struct sl_connection *c;
	struct sl_tuple answer;
	u32 number, side;

	if (!e || !outer || !quoted)
		return SL_NO_CONNECTION;
	/* The error comes from the side to which the quoted packet went. */
	tuple_reverse(&answer, &e->quoted);
	number = connection_find(sl_table, &answer, tuple_hash(sl_table, &answer));
	c = number ? connection_at(sl_table, number) : NULL;
	side = c ? connection_side(c, &answer) : SL_SIDES;
	if (side >= SL_SIDES)
		return SL_NO_CONNECTION;
	connection_rewrite(outer, c, side);
	tuple_reverse(quoted, outer);
	/* A router on the way keeps its name; what is behind the forward is not shown. */
	if (side == SL_CLIENT && !ends_are_equal(&e->src, &c->client) && ends_are_equal(&c->client, &c->source))
		outer->src = e->src;
	return number;
}

/* Sends an error on to whom it concerns. A function of its own for its stack. */
SL_GLOBAL int sl_send_error(struct __sk_buff *skb, struct sl_error *e SL_NONNULL, struct sl_tuple *outer SL_NONNULL, u32 turn)
{
	struct sl_forwardable f = {};
	struct sl_hop hop;
	u32 way;

	if (!e || !outer)
		return SL_UNTOUCHED;
	f.l3 = e->l3;
	f.l4 = e->l4;
	f.ipv6 = e->ipv6;
	way = turn != SL_GOES_ON || e->ttl <= 1 ? SL_WAY_UP : sl_route(skb, &f, outer, skb->ingress_ifindex, &hop);
	return way <= SL_WAY_NEIGHBOUR ? sl_send(skb, &f, way, &hop) : SL_REWRITTEN;
}

/* Sends an error about a packet of a connection on in the other family, at once; or drops it. */
static __always_inline int sl_send_translated(struct __sk_buff *skb, struct sl_error *e, struct sl_tuple *outer,
					      struct sl_tuple *quoted, u32 number)
{
	int outcome = sl_translate_error(skb, e, quoted, outer) ? sl_send_error(skb, e, outer, SL_GOES_ON) : SL_REWRITTEN;

	if (outcome != SL_REWRITTEN)
		return outcome;
	sl_count_refused_of(number, SL_NOT_FORWARDED_FAMILY);
	return TC_ACT_SHOT;
}

/* The forward that listens where a packet goes, or 0. */
static __always_inline u32 sl_listening(struct __sk_buff *skb, struct sl_forwardable *f)
{
	u32 forward = sl_forward_of(f, skb->ingress_ifindex, 0);

	if (forward)
		return forward;
	forward = sl_forward_of(f, skb->ingress_ifindex, 1);
	return forward && sl_is_for_this_host(skb, f) ? forward : 0;
}

/* The number of a packet's connection, unless that is to end before it. A function of its own for its stack. */
SL_GLOBAL u32 sl_unless_over(struct sl_forwardable *f SL_NONNULL, u32 number)
{
	struct sl_connection *c = connection_at(sl_table, number);
	u32 state;

	if (!c || !f)
		return number;
	state = shared_read(&c->state);
	if (!connection_is_over(sl_table, c, state, connection_side(c, &f->tuple), &f->segment, f->tick))
		return number;
	connection_end(sl_table, c, number, state);
	return SL_NO_CONNECTION;
}

/* Whether a connection may be over: that is to be looked at. */
static __always_inline int sl_may_be_over(const struct sl_forwardable *f, u32 number)
{
	struct sl_connection *c = connection_at(sl_table, number);

	return f->segment.flags & SL_TCP_SYN ||
	       (c && connection_silence(c, f->tick) >= sl_forwarding.timeouts.ticks[SL_UDP_ONE_WAY]);
}

/* Whether a packet belongs to a VLAN: the device of that VLAN has it. A tag with a priority alone goes. */
static __always_inline int sl_is_of_vlan(struct __sk_buff *skb)
{
	return skb->vlan_present && (skb->vlan_tci & 0xfff || bpf_skb_vlan_pop(skb));
}

static __always_inline int sl_forward_packet(struct __sk_buff *skb, u32 l3, u32 turn)
{
	struct sl_forwardable f = { .tick = (u32)(bpf_ktime_get_coarse_ns() >> SL_TICK_SHIFT) };
	u32 number, forward;
	int outcome;

	if (skb->pkt_type != PACKET_HOST && skb->pkt_type != PACKET_OUTGOING)
		return SL_UNTOUCHED; /* it is for another host, or for several */
	if (sl_is_of_vlan(skb))
		return SL_UNTOUCHED;
	outcome = sl_pass_known(skb, &f, l3, turn);
	if (outcome == SL_UNTOUCHED) {
		sl_read_forwardable(skb, l3, &f); /* sets what could be read */
		if (f.fragment == SL_LATER_FRAGMENT)
			bpf_tail_call(skb, &stages, SL_STAGE_FRAGMENT);
		if (sl_is_icmp(&f))
			bpf_tail_call(skb, &stages, SL_STAGE_ERROR);
		return SL_UNTOUCHED;
	}
	if (outcome != SL_UNKNOWN)
		return outcome;
	number = connection_find(sl_table, &f.tuple, f.hash);
	if (number && sl_may_be_over(&f, number))
		number = sl_unless_over(&f, number);
	if (!number) {
		forward = sl_listening(skb, &f);
		if (forward)
			number = sl_begin(skb, &f, forward);
		if (number == SL_REFUSED)
			return TC_ACT_SHOT;
	}
	if (f.fragment == SL_FIRST_FRAGMENT)
		sl_note_first(&f, number);
	outcome = number ? sl_pass_on(skb, &f, number, turn) : SL_UNTOUCHED;
	if (outcome == SL_FAULTY) {
		bpf_tail_call(skb, &stages, SL_STAGE_COMPLAINT);
		return TC_ACT_SHOT;
	}
	return outcome;
}

/* The verdict on a packet, after an outcome. */
static __always_inline int sl_verdict_of(struct __sk_buff *skb, int outcome)
{
	return outcome < TC_ACT_UNSPEC ? sl_verdict_after(SL_AFTER(skb->cb[SL_CB_FORWARD / 4])) : outcome;
}

static __always_inline u32 sl_l3_of(struct __sk_buff *skb)
{
	return skb->cb[SL_CB_FORWARD / 4] & SL_FORWARD_L3 ? 0 : SL_ETH_BYTES;
}

static __always_inline enum sl_turn sl_turn_of(struct __sk_buff *skb)
{
	u32 word = skb->cb[SL_CB_FORWARD / 4] & ~SL_FORWARD_L3;

	return word == SL_AFTER_NEXT ? SL_GOES_ON : word & SL_FORWARD_OUT ? SL_DEPARTS : SL_IS_QUEUED;
}

/* Leaves the packet to the part that forwards. word: as in the control block. */
static __always_inline int sl_hook(struct __sk_buff *skb, u32 word)
{
	skb->cb[SL_CB_FORWARD / 4] = word;
	bpf_tail_call(skb, &stages, SL_STAGE_PACKET);
	return TC_ACT_UNSPEC;
}

/* The hook of an interface without a policy. Nothing there says a packet's class. */
SEC("tc")
int sl_forward(struct __sk_buff *skb)
{
	skb->tc_index = 0;
	return sl_hook(skb, SL_AFTER_NEXT);
}

SEC("tc")
int sl_forward_l3(struct __sk_buff *skb)
{
	skb->tc_index = 0;
	return sl_hook(skb, SL_AFTER_NEXT | SL_FORWARD_L3);
}

/*
 * On departure: answers of targets that are on this host, and errors that its stack sends about packets that were rewritten; and what was queued
 * on arrival.
 */
static __always_inline int sl_depart(struct __sk_buff *skb, u32 word)
{
	if (!skb->ingress_ifindex)
		return sl_hook(skb, SL_AFTER_NEXT | SL_FORWARD_OUT | word);
	if (!skb->hash || skb->hash > sl_forwarding.last_connection)
		return TC_ACT_UNSPEC;
	return sl_leave(skb, word & SL_FORWARD_L3 ? 0 : SL_ETH_BYTES, skb->hash);
}

SEC("tc")
int sl_forward_out(struct __sk_buff *skb)
{
	return sl_depart(skb, 0);
}

SEC("tc")
int sl_forward_out_l3(struct __sk_buff *skb)
{
	return sl_depart(skb, SL_FORWARD_L3);
}

/* Called by the arrival hook of an interface with a policy, and by those above. */
SEC("tc")
int sl_forward_called(struct __sk_buff *skb)
{
	return sl_verdict_of(skb, sl_forward_packet(skb, sl_l3_of(skb), sl_turn_of(skb)));
}

/*
 * Tells the sender of a packet that its time to live has ended, or that it is too long for the way: about the packet as it was sent, from where it was
 * sent to.
 */
SEC("tc")
int sl_forward_complaint(struct __sk_buff *skb)
{
	u32 mtu = skb->cb[SL_CB_FAULT / 4], number;
	struct sl_forwardable f = {};
	struct sl_connection *c;
	struct sl_end from;
	u8 macs[12];
	int made;

	if (!sl_may_complain(bpf_ktime_get_ns()) || !sl_read_forwardable(skb, sl_l3_of(skb), &f))
		return TC_ACT_SHOT;
	number = connection_find(sl_table, &f.tuple, tuple_hash(sl_table, &f.tuple));
	c = number ? connection_at(sl_table, number) : NULL;
	if (!c || (f.l3 && bpf_skb_load_bytes(skb, 0, macs, 12)))
		return TC_ACT_SHOT;
	from = sl_end_is_ipv4(&c->listen) == f.ipv6 ? c->source : c->listen;
	made = f.ipv6 ? sl_complain_ipv6(skb, &f, &from, mtu) : sl_complain_ipv4(skb, &f, from.address[3], mtu);
	if (!made || (f.l3 && (bpf_skb_store_bytes(skb, 0, macs + 6, 6, 0) || bpf_skb_store_bytes(skb, 6, macs, 6, 0))))
		return TC_ACT_SHOT;
	return (int)bpf_redirect(skb->ingress_ifindex, 0);
}

/* Passes a later fragment on as its first was. */
SEC("tc")
int sl_forward_fragment(struct __sk_buff *skb)
{
	struct sl_forwardable f = { .tick = (u32)(bpf_ktime_get_coarse_ns() >> SL_TICK_SHIFT) };
	u32 number, forward;
	int outcome;

	sl_read_forwardable(skb, sl_l3_of(skb), &f);
	number = sl_follow_first(&f);
	if (number == SL_REFUSED) {
		/* Port 0 stands for whatever listens at the address. */
		forward = sl_listening(skb, &f);
		if (!forward)
			return sl_verdict_of(skb, SL_UNTOUCHED);
		sl_count_refused(forward, SL_NOT_FORWARDED_FRAGMENT);
		return TC_ACT_SHOT;
	}
	outcome = number ? sl_pass_on(skb, &f, number, sl_turn_of(skb)) : SL_UNTOUCHED;
	return outcome == SL_FAULTY ? TC_ACT_SHOT : sl_verdict_of(skb, outcome);
}

/* Passes an error about a packet of a connection on. */
SEC("tc")
int sl_forward_error(struct __sk_buff *skb)
{
	struct sl_tuple outer, quoted;
	enum sl_turn turn = sl_turn_of(skb);
	struct sl_error e = {};
	u32 number;

	e.hops = turn == SL_GOES_ON;
	if (!sl_read_error(skb, sl_l3_of(skb), &e))
		return sl_verdict_of(skb, SL_UNTOUCHED);
	number = sl_connection_of_error(&e, &outer, &quoted);
	if (!number)
		return sl_verdict_of(skb, SL_UNTOUCHED);
	if (sl_end_is_ipv4(&outer.dst) == e.ipv6)
		return turn == SL_DEPARTS ? TC_ACT_UNSPEC : sl_send_translated(skb, &e, &outer, &quoted, number);
	if (turn == SL_IS_QUEUED)
		outer.src = e.src; /* it may not come from this host, and nobody knows it when it leaves */
	if (sl_rewrite_error(skb, &e, &quoted, &outer)) {
		sl_count_refused_of(number, SL_NOT_FORWARDED_UNWRITTEN);
		return TC_ACT_SHOT;
	}
	return sl_verdict_of(skb, sl_send_error(skb, &e, &outer, turn));
}

SEC("cgroup/connect4")
int sl_connect4(struct bpf_sock_addr *ctx)
{
	return sl_socket_ipv4(ctx, 1);
}

SEC("cgroup/connect6")
int sl_connect6(struct bpf_sock_addr *ctx)
{
	return sl_socket_ipv6(ctx, 1);
}

SEC("cgroup/sendmsg4")
int sl_sendmsg4(struct bpf_sock_addr *ctx)
{
	return sl_socket_ipv4(ctx, 1);
}

SEC("cgroup/sendmsg6")
int sl_sendmsg6(struct bpf_sock_addr *ctx)
{
	return sl_socket_ipv6(ctx, 1);
}

SEC("cgroup/recvmsg4")
int sl_recvmsg4(struct bpf_sock_addr *ctx)
{
	return sl_socket_ipv4(ctx, 0);
}

SEC("cgroup/recvmsg6")
int sl_recvmsg6(struct bpf_sock_addr *ctx)
{
	return sl_socket_ipv6(ctx, 0);
}

SEC("cgroup/getpeername4")
int sl_getpeername4(struct bpf_sock_addr *ctx)
{
	return sl_socket_ipv4(ctx, 0);
}

SEC("cgroup/getpeername6")
int sl_getpeername6(struct bpf_sock_addr *ctx)
{
	return sl_socket_ipv6(ctx, 0);
}
