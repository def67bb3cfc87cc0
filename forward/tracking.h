/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Connection tracking: the state of a connection after a packet. TCP as in RFC 9293, 3.3.2, from the view of a machine between both sides.
 *
 * A packet that is not of the connection (its sender guessed addresses and ports, not the numbers) is passed on, for its receiver will ignore it, and
 * changes nothing here. A segment counts only if both of its numbers lie near those of the connection, which one of 2^22 guesses does; a reset only
 * with the very number that the other side expects (RFC 5961, 3.2); and a connection is established when the client acknowledges the very number
 * that the target began with. Compare van Rooij, "Real Stateful TCP Packet Filtering in IP Filter" (2001), which needs the windows of both sides too.
 */
#pragma once
#include "../abi/forward.h"
#include "../sched/world.h"

/* Flags of a TCP segment (RFC 9293, 3.1). */
enum sl_tcp_flag { SL_TCP_FIN = 1, SL_TCP_SYN = 2, SL_TCP_RST = 4, SL_TCP_ACK = 16 };

/* Bytes that may have been lost in a row before they came here, and that a segment sent again, or overtaken, may lie behind. */
#define SL_TCP_LOST   (1u << 22)
#define SL_TCP_BEHIND (1u << 16)
/* Bytes that a side may acknowledge though they were not seen here: the numbers of another segment were not believed. */
#define SL_TCP_UNSEEN (1u << 20)

/* A packet, as tracking sees it. Of UDP, all members are 0. */
struct sl_segment {
	u32 seq; /* host byte order, as ack */
	u32 ack;
	u32 bytes; /* of payload */
	u32 flags; /* bits of enum sl_tcp_flag */
};

/* Whether number lies from `first` to `last`, modulo 2^32. */
SL_FN int tcp_is_within(u32 number, u32 first, u32 last)
{
	return number - first <= last - first;
}

/* The later of two numbers that lie less than 2^31 apart. */
SL_FN u32 tcp_later(u32 a, u32 b)
{
	return (s32)(a - b) > 0 ? a : b;
}

/* The numbers that the segment takes: its payload, SYN and FIN (RFC 9293, 3.4). */
SL_FN u32 tcp_numbers(const struct sl_segment *p)
{
	return p->bytes + !!(p->flags & SL_TCP_SYN) + !!(p->flags & SL_TCP_FIN);
}

/* Whether a side can have acknowledged this number. */
SL_FN int tcp_may_acknowledge(const struct sl_tcp_side *own, const struct sl_tcp_side *other, const struct sl_segment *p)
{
	return p->flags & SL_TCP_ACK && tcp_is_within(p->ack, own->acked - SL_TCP_BEHIND, other->next + SL_TCP_UNSEEN);
}

/* Notes the numbers of a side's segment. Returns 0 if its sender cannot have been that side. */
SL_FN int tcp_note(struct sl_tcp_side *own, struct sl_tcp_side *other, const struct sl_segment *p)
{
	u32 end = p->seq + tcp_numbers(p), first = other->acked - SL_TCP_BEHIND, last = own->next + SL_TCP_LOST;

	if (!tcp_may_acknowledge(own, other, p) || !tcp_is_within(p->seq, first, last) || !tcp_is_within(end, first, last))
		return 0;
	own->next = tcp_later(end, own->next);
	own->acked = tcp_later(p->ack, own->acked);
	other->next = tcp_later(p->ack, other->next);
	return 1;
}

/* The client's first segment: SYN without ACK. */
SL_FN u32 tcp_open(struct sl_connection *c, const struct sl_segment *p)
{
	c->flags = 0;
	c->tcp[SL_CLIENT].next = p->seq + tcp_numbers(p);
	c->tcp[SL_CLIENT].acked = 0;
	c->tcp[SL_TARGET].next = 0;
	c->tcp[SL_TARGET].acked = p->seq + 1; /* the least that it will */
	return SL_TCP_OPENING;
}

/* The target answers the SYN, or refuses it with a reset that acknowledges it (RFC 9293, 3.10.7.1). */
SL_FN u32 tcp_answer(struct sl_connection *c, const struct sl_segment *p)
{
	struct sl_tcp_side *client = &c->tcp[SL_CLIENT], *target = &c->tcp[SL_TARGET];

	if (!(p->flags & SL_TCP_ACK) || !tcp_is_within(p->ack, target->acked, client->next))
		return SL_TCP_OPENING;
	if (p->flags & SL_TCP_RST)
		return SL_TCP_CLOSED;
	if (p->flags & SL_TCP_SYN) {
		target->next = p->seq + tcp_numbers(p);
		client->acked = p->seq + 1; /* the least that it will */
		c->flags |= SL_TARGET_ANSWERED;
	} else if (c->flags & SL_TARGET_ANSWERED) {
		tcp_note(target, client, p);
	}
	return SL_TCP_OPENING;
}

/* Whether the client's segment acknowledges what the target has answered. */
SL_FN int tcp_is_agreed(const struct sl_connection *c, const struct sl_segment *p)
{
	return c->flags & SL_TARGET_ANSWERED && p->flags & SL_TCP_ACK &&
	       tcp_is_within(p->ack, c->tcp[SL_CLIENT].acked, c->tcp[SL_TARGET].next);
}

/*
 * Whether a reset has the number that its receiver expects: the last that this side has acknowledged; or, where bytes are on their way, the sender's
 * next, if it acknowledges what it can have seen.
 */
SL_FN int tcp_resets(const struct sl_tcp_side *own, const struct sl_tcp_side *other, const struct sl_segment *p)
{
	return p->seq == other->acked || (p->seq == own->next && tcp_may_acknowledge(own, other, p));
}

/* A segment of a connection that both sides have agreed to. */
SL_FN u32 tcp_exchange(struct sl_connection *c, u32 state, u32 from, const struct sl_segment *p)
{
	struct sl_tcp_side *own = sl_at(c->tcp, from), *other = sl_at(c->tcp, from ^ 1);

	if (p->flags & SL_TCP_RST)
		return tcp_resets(own, other, p) ? SL_TCP_CLOSED : state;
	if (p->flags & SL_TCP_SYN)
		return state; /* its receiver questions it (RFC 5961, 4.2) */
	if (tcp_note(own, other, p) && p->flags & SL_TCP_FIN)
		c->flags |= from == SL_CLIENT ? SL_CLIENT_FIN : SL_TARGET_FIN;
	if (!(c->flags & (SL_CLIENT_FIN | SL_TARGET_FIN)))
		return state;
	return c->flags & SL_CLIENT_FIN && c->flags & SL_TARGET_FIN ? SL_TCP_CLOSED : SL_TCP_CLOSING;
}

/* The state after a segment of TCP from a side; state is one of TCP's. */
SL_FN u32 tcp_state(struct sl_connection *c, u32 state, u32 from, const struct sl_segment *p)
{
	u32 opens = from == SL_CLIENT && (p->flags & (SL_TCP_SYN | SL_TCP_ACK | SL_TCP_RST)) == SL_TCP_SYN;

	if (state == SL_TCP_CLOSED)
		return state;
	if (state != SL_TCP_OPENING)
		return tcp_exchange(c, state, from, p);
	if (from == SL_TARGET)
		return tcp_answer(c, p);
	if (opens)
		return c->flags & SL_TARGET_ANSWERED ? state : tcp_open(c, p);
	if (p->flags & SL_TCP_RST)
		return p->seq == c->tcp[SL_CLIENT].next ? SL_TCP_CLOSED : state;
	return tcp_is_agreed(c, p) ? tcp_exchange(c, SL_TCP_ESTABLISHED, from, p) : state;
}

/* The state of a connection after a packet from a side. */
SL_FN u32 connection_state(struct sl_connection *c, u32 state, u32 from, const struct sl_segment *p)
{
	if (state != SL_UDP_ONE_WAY)
		return state == SL_UDP_ANSWERED ? state : tcp_state(c, state, from, p);
	if (from == SL_TARGET)
		c->flags |= SL_TARGET_ANSWERED;
	/* Whoever forges a client's address gets no answer, and goes on without one. */
	return from == SL_CLIENT && c->flags & SL_TARGET_ANSWERED ? SL_UDP_ANSWERED : state;
}
