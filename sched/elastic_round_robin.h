/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Elastic round robin (Kanhere, Sethu and Parekh, IEEE Transactions on Parallel and Distributed Systems, 2002), with weights.
 *
 * Classes take turns. In its turn a class of weight w sends until it has had its allowance, w * grant - surplus bytes, and its last packet
 * may go beyond: that is its surplus, which its next turn pays. The grant of a round, bytes for each unit of weight, is 1 + the greatest
 * surplus / weight of the round before, rounded down; so w * grant is more than any surplus, and every class that is ready in a round sends.
 * Rounds are as short as the packets allow: no quantum is configured, and no length is asked for before a packet leaves.
 *
 * Unlike in the paper, which appends a class that becomes ready to a list, a round goes by the numbers of classes, and a class takes part at
 * once if its number is still to come. Thus the turns of any two classes alternate, which the bound needs.
 *
 * Fairness: while classes i and j stay ready, | W_i / w_i - W_j / w_j | <= G + l_i / w_i + l_j / w_j: W what they have sent, l their largest
 * packets, G = 1 + the greatest (l - 1) / w of all classes. A class that is not ready any more owes nothing. A guarantee sends outside the
 * turn of its class without a charge, as with round robin. Cost: O(1), and a division at the end of a turn.
 */
#pragma once
#include "discipline.h"

struct sl_err_class {
	s64 left_bytes; /* of its turn; 0 or less: it has none now */
	u64 surplus_bytes; /* beyond the allowance of its last turn */
};

struct sl_err_sched {
	u64 to_come; /* classes whose turn of this round is to come */
	u64 surplus_before; /* the greatest surplus / weight of the round before; the grant is 1 more */
	u64 surplus_most; /* the greatest surplus / weight since the round began */
	u8 cursor; /* the class that had the last turn */
};

SL_CLASS_STATE(err)
SL_SCHED_STATE(err)

/* Class c takes part in this round if its number is still to come. */
SL_FN void err_join(struct sl_sched *s, struct sl_class *k, u32 c, u64 now_ns)
{
	(void)k;
	(void)now_ns;
	if (c > err_sched(s)->cursor)
		err_sched(s)->to_come |= SL_BIT(c);
	else
		err_sched(s)->to_come &= ~SL_BIT(c);
}

/* The rest of its turn is lost, and its surplus forgiven. */
SL_FN void err_leave(struct sl_sched *s, struct sl_class *k, u32 c)
{
	(void)s;
	(void)c;
	err_class(k)->left_bytes = 0;
	err_class(k)->surplus_bytes = 0;
}

/* The next round begins, with these classes. */
SL_FN void err_round(struct sl_sched *s, u64 classes)
{
	struct sl_err_sched *o = err_sched(s);

	o->to_come = classes;
	o->surplus_before = o->surplus_most;
	o->surplus_most = 0;
}

SL_FN u32 err_pick(struct sl_sched *s)
{
	struct sl_err_sched *o = err_sched(s);
	u32 c = o->cursor;
	struct sl_class *k = sl_at(s->classes, c);

	if (s->ready >> (c & 63) & 1 && err_class(k)->left_bytes > 0)
		return c;
	if (!(o->to_come & s->ready))
		err_round(s, s->ready);
	c = sl_lowest(o->to_come & s->ready);
	o->to_come &= ~SL_BIT(c);
	o->cursor = (u8)c;
	k = sl_at(s->classes, c);
	err_class(k)->left_bytes = (s64)(k->weight * (o->surplus_before + 1) - err_class(k)->surplus_bytes);
	err_class(k)->surplus_bytes = 0;
	return c;
}

SL_FN void err_charge(struct sl_sched *s, struct sl_class *k, u32 bytes)
{
	struct sl_err_class *own = err_class(k);
	u64 surplus;

	if (own->left_bytes <= 0)
		return;
	own->left_bytes -= bytes;
	if (own->left_bytes > 0)
		return;
	own->surplus_bytes = (u64)-own->left_bytes;
	surplus = own->surplus_bytes / sl_max(k->weight, 1);
	if (err_sched(s)->surplus_most < surplus)
		err_sched(s)->surplus_most = surplus;
}

SL_FN void err_pass(struct sl_sched *s, struct sl_class *k, u32 c, u32 bytes, u64 arrived_ns)
{
	struct sl_err_sched *o = err_sched(s);
	u64 grant;

	(void)arrived_ns;
	if (c <= o->cursor)
		err_round(s, 0);
	o->to_come &= ~SL_BIT(c);
	o->cursor = (u8)c;
	grant = k->weight * (o->surplus_before + 1);
	if (bytes >= grant)
		o->surplus_most = sl_max(o->surplus_most, (bytes - grant) / sl_max(k->weight, 1));
}

static const struct sl_discipline elastic_round_robin = {
	.join = err_join,
	.leave = err_leave,
	.pick = err_pick,
	.charge = err_charge,
	.pass = err_pass,
};
