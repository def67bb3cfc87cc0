/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Passing packets of open connections on: rewritten and sent, or rewritten for the stack, which has them finished as they leave. */
#pragma once
#include "forward_errors.h"
#include "forward_route.h"
#include "forward_begin.h"
#include "forward_translate.h"
#include "../../forward/connections.h"

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

/* Sends a packet of a forward that has been rewritten, or counts that the kernel would not. Returns the verdict of a tc program. */
static __always_inline int sl_send_counted(struct __sk_buff *skb, const struct sl_forwardable *f, u32 way,
					   const struct sl_hop *hop, u32 forward)
{
	int outcome = sl_send(skb, f, way, hop);

	if (outcome == TC_ACT_SHOT)
		sl_count_refused(forward, SL_NOT_FORWARDED_UNWRITTEN);
	return outcome;
}

/* The outcome for a packet: a verdict, or one of these. */
enum sl_outcome { SL_UNTOUCHED = -2, SL_REWRITTEN = -3, SL_FAULTY = -4, SL_UNKNOWN = -5 };

/* The next step of a packet that was rewritten. */
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
	u32 state, side, way, class, crosses, change;
	struct sl_tuple to;

	if (!c || !f)
		return SL_UNTOUCHED;
	state = shared_read(&c->state);
	side = connection_side(c, &f->tuple);
	if (side >= SL_SIDES || connection_state_of(state) < SL_TCP_OPENING)
		return SL_UNTOUCHED;
	connection_rewrite(&to, c, side);
	class = c->class;
	crosses = sl_crosses(f, &to);
	if (crosses && turn == SL_DEPARTS)
		return SL_UNTOUCHED; /* no target of the other family is on this host */
	if (shared_read(&c->state) >> 8 != state >> 8)
		return SL_UNTOUCHED; /* another connection has come there since */
	if (class & SL_MAY_BE_CUT && sl_is_replaced(c->forward)) {
		connection_end(sl_table, c, number, state);
		if (side == SL_CLIENT)
			return SL_UNTOUCHED; /* the client gets the stack's reset */
		sl_count_refused(c->forward, SL_NOT_FORWARDED_CUT);
		return TC_ACT_SHOT;
	}
	class &= SL_MAY_BE_CUT - 1;
	if (f->fragment == SL_LATER_FRAGMENT)
		connection_count(c, side, 1, skb->len, f->tick);
	else
		connection_pass(sl_table, c, state, side, &f->segment, sl_segments_of(skb), skb->len, f->tick);
	way = turn == SL_DEPARTS ? SL_WAY_UP : sl_route_of_side(skb, f, &to, number, state, side, &hop);
	if (crosses && !sl_is_translatable(f, way, &hop)) {
		sl_count_refused(c->forward, SL_NOT_FORWARDED_FAMILY);
		return TC_ACT_SHOT;
	}
	if ((way <= SL_WAY_NEIGHBOUR && f->ttl <= 1) || (way == SL_WAY_NARROW && (f->whole || crosses))) {
		sl_count_refused(c->forward, way == SL_WAY_NARROW ? SL_NOT_FORWARDED_LONG : SL_NOT_FORWARDED_OLD);
		/* Fragments that the sender makes then get a header more in translation. */
		if (way == SL_WAY_NARROW && crosses && !f->whole && f->fragment == SL_WHOLE)
			hop.mtu -= SL_FRAGMENT_BYTES;
		skb->cb[SL_CB_FAULT / 4] = way == SL_WAY_NARROW ? hop.mtu : SL_FAULT_OLD;
		return SL_FAULTY;
	}
	if (crosses || (turn == SL_IS_QUEUED && way <= SL_WAY_NEIGHBOUR && !bpf_map_lookup_elem(&departures, &hop.ifindex)))
		turn = SL_GOES_ON; /* nobody would give it its source later, or the other family's */
	if (turn == SL_IS_QUEUED || (turn == SL_GOES_ON && (way == SL_WAY_UP || way == SL_WAY_NARROW))) {
		to.src = f->tuple.src;
		to.sport = f->tuple.sport;
		bpf_set_hash(skb, number);
		way = SL_WAY_UP;
	}
	change = sl_address_change(f, &to);
	if (crosses && sl_translate(skb, f, &to, change)) {
		sl_count_refused(c->forward, SL_NOT_FORWARDED_FAMILY);
		return TC_ACT_SHOT;
	}
	if (!crosses && sl_rewrite(skb, f, &to, change, way <= SL_WAY_NEIGHBOUR)) {
		sl_count_refused(c->forward, SL_NOT_FORWARDED_UNWRITTEN);
		return TC_ACT_SHOT;
	}
	if (way > SL_WAY_NEIGHBOUR)
		return SL_REWRITTEN;
	if (class < SL_CLASSES)
		sl_hand_over_class(skb, class, hop.ifindex);
	return sl_send_counted(skb, f, way, &hop, c->forward);
}

/*
 * Sends a whole packet of an open connection on by the way that is remembered. Returns SL_UNKNOWN if there is none, or if sl_pass_on must decide: the
 * packet's time to live ends, it may begin another connection, it is to be translated, or there was a change.
 */
static __always_inline int sl_pass_by_known_way(struct __sk_buff *skb, const struct sl_forwardable *f)
{
	struct sl_known_way *known = sl_known_way(f);
	struct sl_connection *c;
	u32 state, class;

	if (!known || !sl_is_way_of(skb, known, f) || f->fragment != SL_WHOLE || f->ttl <= 1 || f->segment.flags & SL_TCP_SYN ||
	    known->crosses)
		return SL_UNKNOWN;
	c = connection_at(sl_table, known->number);
	if (!c)
		return SL_UNKNOWN;
	class = shared_read(&c->class);
	state = shared_read(&c->state);
	if (state != known->state || (class & SL_MAY_BE_CUT && sl_is_replaced(c->forward)))
		return SL_UNKNOWN;
	connection_pass(sl_table, c, state, known->side, &f->segment, sl_segments_of(skb), skb->len, f->tick);
	if (sl_rewrite(skb, f, &known->to, known->change, 1)) {
		sl_count_refused(c->forward, SL_NOT_FORWARDED_UNWRITTEN);
		return TC_ACT_SHOT;
	}
	class &= SL_MAY_BE_CUT - 1;
	if (class < SL_CLASSES)
		sl_hand_over_class(skb, class, known->hop.ifindex);
	return sl_send_counted(skb, f, SL_WAY_OUT, &known->hop, c->forward);
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
	if (!sl_rewrite(skb, &f, &to, sl_address_change(&f, &to), 0))
		return TC_ACT_UNSPEC;
	sl_count_refused(c->forward, SL_NOT_FORWARDED_UNWRITTEN);
	return TC_ACT_SHOT;
}
