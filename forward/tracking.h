/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Connection tracking: the state of a connection after a packet. TCP as in RFC 9293, 3.3.2, from the view of a machine between both sides.
 *
 * A packet that is not of the connection (its sender guessed addresses and ports, not the sequence number) is passed on, for its receiver will
 * ignore it, and changes nothing here: a reset counts only with the very number that the other side expects (RFC 5961, 3.2), a FIN only near it, and
 * a connection is established when the client acknowledges what the target has sent.
 */
#pragma once
#include "../abi/forward.h"
#include "../sched/world.h"

/* Flags of a TCP segment (RFC 9293, 3.1). */
enum sl_tcp_flag { SL_TCP_FIN = 1, SL_TCP_SYN = 2, SL_TCP_RST = 4, SL_TCP_ACK = 16 };

/* Numbers that a segment may lie ahead of the last one seen, or behind it: what was lost before it came here, or sent again. */
#define SL_TCP_AHEAD  (1u << 20)
#define SL_TCP_BEHIND (1u << 30)
/* Bytes that a target may have sent before the client's first acknowledgement: the first window (RFC 7413). */
#define SL_TCP_FIRST  (1u << 16)

/* A packet, as tracking sees it. Of UDP, all members are 0. */
struct sl_segment {
	u32 seq; /* host byte order, as ack */
	u32 ack;
	u32 bytes; /* of payload */
	u32 flags; /* bits of enum sl_tcp_flag */
};

/* Whether number is one of the `many` from `from` on, modulo 2^32. */
SL_FN int tcp_is_within(u32 number, u32 from, u32 many)
{
	return number - from < many;
}

/* Whether number is the last of some, or not many before it. */
SL_FN int tcp_is_recent(u32 number, u32 last, u32 many)
{
	return last - number <= many;
}

/* The numbers that the segment takes: its payload, SYN and FIN (RFC 9293, 3.4). */
SL_FN u32 tcp_numbers(const struct sl_segment *p)
{
	return p->bytes + !!(p->flags & SL_TCP_SYN) + !!(p->flags & SL_TCP_FIN);
}

/* Notes what a side's segment says of the numbers of both. */
SL_FN void tcp_note(struct sl_tcp_side *own, struct sl_tcp_side *other, const struct sl_segment *p)
{
	u32 end = p->seq + tcp_numbers(p);

	if (tcp_is_within(end, own->next, SL_TCP_AHEAD))
		own->next = end;
	if (!(p->flags & SL_TCP_ACK))
		return;
	own->acked = p->ack;
	/* Numbers that the other side sent past this machine, or that were lost on their way here. */
	if (tcp_is_within(p->ack, other->next, SL_TCP_BEHIND))
		other->next = p->ack;
}

/* The client's first segment: SYN without ACK. */
SL_FN u32 tcp_open(struct sl_connection *c, const struct sl_segment *p)
{
	c->flags = 0;
	c->tcp[SL_CLIENT].next = p->seq + tcp_numbers(p);
	c->tcp[SL_CLIENT].acked = 0;
	c->tcp[SL_TARGET].next = 0;
	c->tcp[SL_TARGET].acked = p->seq + 1;
	return SL_TCP_OPENING;
}

/* The target answers the SYN, or refuses it with a reset that acknowledges it (RFC 9293, 3.10.7.1). */
SL_FN u32 tcp_answer(struct sl_connection *c, const struct sl_segment *p)
{
	struct sl_tcp_side *client = &c->tcp[SL_CLIENT], *target = &c->tcp[SL_TARGET];

	if (!(p->flags & SL_TCP_ACK) || !tcp_is_recent(p->ack, client->next, SL_TCP_FIRST))
		return SL_TCP_OPENING;
	if (p->flags & SL_TCP_RST)
		return SL_TCP_CLOSED;
	if (p->flags & SL_TCP_SYN) {
		target->next = p->seq + tcp_numbers(p);
		target->acked = p->ack;
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
	       tcp_is_recent(p->ack, c->tcp[SL_TARGET].next, SL_TCP_FIRST);
}

/* A segment of a connection that both sides have agreed to. */
SL_FN u32 tcp_exchange(struct sl_connection *c, u32 state, u32 from, const struct sl_segment *p)
{
	struct sl_tcp_side *own = sl_at(c->tcp, from), *other = sl_at(c->tcp, from ^ 1);

	if (p->flags & SL_TCP_RST)
		return p->seq == other->acked || p->seq == own->next ? SL_TCP_CLOSED : state;
	if (p->flags & SL_TCP_SYN)
		return state; /* its receiver questions it (RFC 5961, 4.2) */
	tcp_note(own, other, p);
	if (p->flags & SL_TCP_FIN && tcp_is_recent(p->seq + tcp_numbers(p), own->next, SL_TCP_AHEAD))
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
	if (state == SL_UDP_ONE_WAY || state == SL_UDP_ANSWERED)
		return from == SL_TARGET ? SL_UDP_ANSWERED : state;
	return tcp_state(c, state, from, p);
}
