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
#include "lib/forward_fragments.h"
#include "lib/forward_sockets.h"
#include "lib/own_clients.h"
#include "lib/after_arrival.h"
#include "../forward/ports.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

static __always_inline void sl_count_refused(u32 forward, u32 why)
{
	struct sl_forward_count *count = sl_count_of(forward);

	if (count && why < SL_NOT_FORWARDED_REASONS)
		__sync_fetch_and_add(&count->refused[why], 1);
}

/* Whether a packet is for this host. A function of its own for its stack. */
SL_GLOBAL int sl_is_for_this_host(struct __sk_buff *skb, struct sl_forwardable *f SL_NONNULL)
{
	struct sl_hop hop;

	return f && sl_route(skb, f, &f->tuple, skb->ingress_ifindex, &hop) == SL_WAY_LOCAL;
}

/* The index of the forward whose listen address and port a packet has, or 0. A function of its own for its stack. */
SL_GLOBAL u32 sl_forward_of(struct sl_forwardable *f SL_NONNULL, u32 ifindex, u32 everywhere)
{
	struct sl_listen key = {};
	u32 *found;

	if (!f)
		return 0;
	if (everywhere)
		key.ipv6 = f->ipv6;
	else
		key.end = f->tuple.dst;
	key.ifindex = ifindex;
	key.port = f->tuple.dport;
	key.proto = (u8)f->tuple.proto;
	found = bpf_map_lookup_elem(&listens, &key);
	return found ? *found : 0;
}

/* Ports of the host's own sockets that are passed over for a connection. */
#define SL_OWN_PORTS 4u

/* Finds a port and a place for a connection. Returns as connection_open. */
SL_GLOBAL u32 sl_enter(struct __sk_buff *skb, struct sl_connection *like SL_NONNULL, u32 hash, u32 tick)
{
	u32 i, tried = 0, held;

	if (!like)
		return SL_REFUSED;
	for (i = 0; i < SL_OWN_PORTS; i++) {
		tried = choose_source_port(sl_table, like, hash, tried);
		if (!tried)
			return SL_REFUSED | SL_NOT_FORWARDED_PORTS;
		/* Where the client's own address is kept, no socket of this host has it. */
		held = !ends_are_equal(&like->source, &like->client) && sl_host_has(skb, like);
		if (!held)
			break;
	}
	if (i == SL_OWN_PORTS)
		return SL_REFUSED | SL_NOT_FORWARDED_PORTS;
	return connection_open(sl_table, like, tick, __sync_fetch_and_add(&sl_hand, 1));
}

/*
 * Begins a connection of a forward. Returns its number; SL_NO_CONNECTION: the stack is to have the packet, and refuse it; SL_REFUSED: its sender is to
 * try again. A function of its own for its stack.
 */
SL_GLOBAL u32 sl_begin(struct __sk_buff *skb, struct sl_forwardable *f SL_NONNULL, u32 index)
{
	u32 number;
	struct sl_connection like = {};
	struct sl_forward *forward;
	struct sl_target *target;
	struct sl_forward_count *count;

	if (!f)
		return SL_NO_CONNECTION;
	forward = bpf_map_lookup_elem(&forwards, &index);
	if (!forward || !forward->targets)
		return SL_NO_CONNECTION;
	if (f->tuple.proto == 6 && (f->segment.flags & (SL_TCP_SYN | SL_TCP_ACK | SL_TCP_RST | SL_TCP_FIN)) != SL_TCP_SYN) {
		sl_count_refused(index, SL_NOT_FORWARDED_UNKNOWN);
		return SL_NO_CONNECTION;
	}
	if (!sl_source_is_there(skb, f, forward->flags & SL_FORWARD_STRICT)) {
		sl_count_refused(index, SL_NOT_FORWARDED_SOURCE);
		return SL_NO_CONNECTION;
	}
	target = sl_target_of(forward, f->hash);
	if (!target)
		return SL_NO_CONNECTION;
	like.client = f->tuple.src;
	like.listen = f->tuple.dst;
	like.target = target->end;
	like.client_port = f->tuple.sport;
	like.listen_port = f->tuple.dport;
	like.target_port = sl_target_port(forward, target, f->tuple.dport);
	like.proto = (u8)f->tuple.proto;
	like.forward = (u16)index;
	like.class =
		forward->class | (forward->flags & SL_FORWARD_CUTS ? SL_MAY_BE_CUT : 0) | (u32)forward->digest << SL_DIGEST_SHIFT;
	like.source = f->tuple.src;
	like.source_port = f->tuple.sport;
	if (target->source.address[0] || target->source.address[2])
		like.source = target->source;
	if (like.proto == 6)
		tcp_open(&like, &f->segment);
	number = sl_enter(skb, &like, f->hash, f->tick);
	if (number == (SL_REFUSED | SL_NOT_FORWARDED_TWIN)) {
		/* Another CPU has entered this very connection, or taken the port. */
		number = connection_find(sl_table, &f->tuple, f->hash);
		if (number)
			return number;
		number = sl_enter(skb, &like, f->hash, f->tick);
	}
	if (number & SL_REFUSED) {
		sl_count_refused(index, number & ~SL_REFUSED);
		return number == (SL_REFUSED | SL_NOT_FORWARDED_TWIN) ? SL_REFUSED : SL_NO_CONNECTION;
	}
	count = sl_count_of(index);
	if (count)
		__sync_fetch_and_add(&count->opened, 1);
	return number;
}

static __always_inline u32 sl_segments_of(struct __sk_buff *skb)
{
	return skb->gso_segs ? skb->gso_segs : 1;
}

static __always_inline int sl_is_replaced(u32 forward)
{
	struct sl_forward *found = bpf_map_lookup_elem(&forwards, &forward);

	return !found || !found->targets || found->flags & SL_FORWARD_REPLACED;
}

/* Gives the packet the class of its forward, as the queue of the interface by which it leaves believes it. */
static __always_inline void sl_hand_over_class(struct __sk_buff *skb, u32 class, u32 ifindex)
{
	u16 *tag = bpf_map_lookup_elem(&egress_tags, &ifindex);

	if (tag)
		skb->tc_index = *tag << SL_CLASS_BITS | class;
}

/* The outcome for a packet: a verdict, or one of these. */
enum sl_outcome { SL_UNTOUCHED = -2, SL_REWRITTEN = -3, SL_FAULTY = -4, SL_UNKNOWN = -5 };

/* What becomes of a packet after it was rewritten. */
enum sl_turn {
	SL_GOES_ON, /* it is sent on at once */
	SL_DEPARTS, /* it is of this host, and on its way out */
	SL_IS_QUEUED /* it is queued as it arrives; then the stack sends it on, which takes no IPv4 packet from an address of this host */
};

/*
 * Sends a packet of a connection on, or rewrites it for the stack: where the kernel must decide on its way or cut it into fragments, or its turn says
 * so. What the stack is to send keeps its source until it leaves, when sl_leave knows it by its hash. A function of its own for its stack. Returns an enum sl_outcome, or
 * the verdict of a tc program.
 */
SL_GLOBAL int sl_pass_on(struct __sk_buff *skb, struct sl_forwardable *f SL_NONNULL, u32 number, u32 turn)
{
	struct sl_connection *c = connection_at(sl_table, number);
	struct sl_hop hop;
	u32 state, side, way, class;
	struct sl_tuple to;

	if (!c || !f)
		return SL_UNTOUCHED;
	state = shared_read(&c->state);
	side = connection_side(c, &f->tuple);
	if (side >= SL_SIDES || connection_state_of(state) < SL_TCP_OPENING)
		return SL_UNTOUCHED;
	connection_rewrite(&to, c, side);
	class = c->class;
	if (shared_read(&c->state) >> 8 != state >> 8)
		return SL_UNTOUCHED; /* another connection has come there since */
	if (class & SL_MAY_BE_CUT && sl_is_replaced(c->forward)) {
		connection_end(sl_table, c, number, state);
		return side == SL_CLIENT ? SL_UNTOUCHED : TC_ACT_SHOT; /* the client gets the stack's reset */
	}
	class &= SL_MAY_BE_CUT - 1;
	if (f->fragment == SL_LATER_FRAGMENT)
		connection_count(c, side, 1, skb->len, f->tick);
	else
		connection_pass(sl_table, c, state, side, &f->segment, sl_segments_of(skb), skb->len, f->tick);
	way = turn == SL_DEPARTS ? SL_WAY_UP : sl_route_of_side(skb, f, &to, number, state, side, &hop);
	if ((way <= SL_WAY_NEIGHBOUR && f->ttl <= 1) || (way == SL_WAY_NARROW && f->whole)) {
		skb->cb[SL_CB_FAULT / 4] = way == SL_WAY_NARROW ? hop.mtu : SL_FAULT_OLD;
		return SL_FAULTY;
	}
	if (turn == SL_IS_QUEUED && way <= SL_WAY_NEIGHBOUR && !bpf_map_lookup_elem(&departures, &hop.ifindex))
		turn = SL_GOES_ON; /* nobody would give it its source */
	if (turn == SL_IS_QUEUED || (turn == SL_GOES_ON && (way == SL_WAY_UP || way == SL_WAY_NARROW))) {
		to.src = f->tuple.src;
		to.sport = f->tuple.sport;
		bpf_set_hash(skb, number);
		way = SL_WAY_UP;
	}
	if (sl_rewrite(skb, f, &to, sl_address_change(f, &to), way <= SL_WAY_NEIGHBOUR))
		return TC_ACT_SHOT;
	if (way > SL_WAY_NEIGHBOUR)
		return SL_REWRITTEN;
	if (class < SL_CLASSES)
		sl_hand_over_class(skb, class, hop.ifindex);
	return sl_send(skb, f, way, &hop);
}

/*
 * Sends a whole packet of an open connection on by the way that is remembered. Returns SL_UNKNOWN if there is none, or if sl_pass_on must decide: the
 * packet's time to live ends, it may begin another connection, or there was a change.
 */
static __always_inline int sl_pass_by_known_way(struct __sk_buff *skb, const struct sl_forwardable *f)
{
	struct sl_known_way *known = sl_known_way(f);
	struct sl_connection *c;
	u32 state, class;

	if (!known || !sl_is_way_of(skb, known, f) || f->fragment != SL_WHOLE || f->ttl <= 1 || f->segment.flags & SL_TCP_SYN)
		return SL_UNKNOWN;
	c = connection_at(sl_table, known->number);
	if (!c)
		return SL_UNKNOWN;
	class = shared_read(&c->class);
	state = shared_read(&c->state);
	if (state != known->state || (class & SL_MAY_BE_CUT && sl_is_replaced(c->forward)))
		return SL_UNKNOWN;
	connection_pass(sl_table, c, state, known->side, &f->segment, sl_segments_of(skb), skb->len, f->tick);
	if (sl_rewrite(skb, f, &known->to, known->change, 1))
		return TC_ACT_SHOT;
	class &= SL_MAY_BE_CUT - 1;
	if (class < SL_CLASSES)
		sl_hand_over_class(skb, class, known->hop.ifindex);
	return sl_send(skb, f, SL_WAY_OUT, &known->hop);
}

/* sl_pass_known where l3 and the EtherType are constants. The words of the packet stay in registers; only where it is not sent on does *read get them. */
static __always_inline int sl_pass_known_of(struct __sk_buff *skb, struct sl_forwardable *read, const u32 l3, const u32 type,
					    u32 turn)
{
	struct sl_forwardable f = { .tick = read->tick };
	int outcome = SL_UNKNOWN;

	if (!sl_read_of_type(skb, l3, type, &f))
		return SL_UNTOUCHED;
	f.hash = tuple_hash(sl_table, &f.tuple);
	if (turn == SL_GOES_ON)
		outcome = sl_pass_by_known_way(skb, &f);
	if (outcome == SL_UNKNOWN)
		*read = f;
	return outcome;
}

/*
 * Sends a packet on if its way is remembered, and it goes on at once. Returns the verdict of a tc program; SL_UNKNOWN: *f says what the packet is, and no
 * more has been done; SL_UNTOUCHED: it is none that a forward can take.
 */
SL_GLOBAL int sl_pass_known(struct __sk_buff *skb, struct sl_forwardable *f SL_NONNULL, u32 l3, u32 turn)
{
	if (!f)
		return SL_UNTOUCHED;
	if (sl_ethertype(skb) == SL_ETH_IPV4)
		return l3 ? sl_pass_known_of(skb, f, SL_ETH_BYTES, SL_ETH_IPV4, turn)
			  : sl_pass_known_of(skb, f, 0, SL_ETH_IPV4, turn);
	if (sl_ethertype(skb) == SL_ETH_IPV6)
		return l3 ? sl_pass_known_of(skb, f, SL_ETH_BYTES, SL_ETH_IPV6, turn)
			  : sl_pass_known_of(skb, f, 0, SL_ETH_IPV6, turn);
	return SL_UNTOUCHED;
}

/* Whether a packet that leaves is one of a side which has its source still as it arrived. Sets *to to the addresses that it is to have. */
static __always_inline int sl_left_of(struct sl_tuple *to, const struct sl_forwardable *f, const struct sl_connection *c,
				      u32 side)
{
	struct sl_tuple arrived;

	connection_tuple(&arrived, c, side);
	connection_rewrite(to, c, side);
	return f->tuple.proto == c->proto && ends_are_equal(&arrived.src, &f->tuple.src) &&
	       ends_are_equal(&to->dst, &f->tuple.dst) &&
	       (f->fragment == SL_LATER_FRAGMENT || (arrived.sport == f->tuple.sport && to->dport == f->tuple.dport));
}

/* Gives a packet that the stack sends on its source and its class as it leaves. A function of its own for its stack. */
SL_GLOBAL int sl_leave(struct __sk_buff *skb, u32 l3, u32 number)
{
	struct sl_connection *c = connection_at(sl_table, number);
	struct sl_forwardable f = {};
	struct sl_tuple to;
	u32 class;

	if (!c || connection_state_of(shared_read(&c->state)) < SL_TCP_OPENING)
		return TC_ACT_UNSPEC;
	sl_read_forwardable(skb, l3, &f); /* of a later fragment, the addresses */
	if (!sl_left_of(&to, &f, c, SL_CLIENT) && !sl_left_of(&to, &f, c, SL_TARGET))
		return TC_ACT_UNSPEC;
	class = c->class & (SL_MAY_BE_CUT - 1);
	if (class < SL_CLASSES)
		sl_hand_over_class(skb, class, skb->ifindex);
	return sl_rewrite(skb, &f, &to, sl_address_change(&f, &to), 0) ? TC_ACT_SHOT : TC_ACT_UNSPEC;
}

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
	from = c->listen;
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

	e.hops = turn == SL_GOES_ON;
	if (!sl_read_error(skb, sl_l3_of(skb), &e) || !sl_connection_of_error(&e, &outer, &quoted))
		return sl_verdict_of(skb, SL_UNTOUCHED);
	if (turn == SL_IS_QUEUED)
		outer.src = e.src; /* it may not come from this host, and nobody knows it when it leaves */
	if (sl_rewrite_error(skb, &e, &quoted, &outer))
		return TC_ACT_SHOT;
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
