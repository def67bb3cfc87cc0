/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Whether the devices that packets are sent through still hand them on. No program can see that an ifb was deleted or is down: whatever
 * is redirected there is lost without a word. So each answers.
 *
 * The queue of what arrives runs our code on the CPU that has redirected the packet, before the next packet comes there: it answers at
 * once. If it does not, a few packets later arrivals pass up the stack as if they were not shaped. What the splitter returns passes the hook
 * that sent it there, a softirq later: if nothing has come back for a while, packets stay whole. In both cases one packet in a while tries again.
 */
#pragma once

#define SL_UNANSWERED_PKTS 8 /* on one CPU, until the queue is taken for dead */
#define SL_ASK_AGAIN_PKTS  1024 /* then one of so many is sent there */
#define SL_SPLITTER_TICKS  100 /* jiffies, 0.1 to 1 s, until the splitter is taken for dead */
#define SL_TRY_AGAIN_TICKS 1000 /* then one packet is sent there each so many */

struct sl_answers {
	u32 asked;
	u32 answered;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, u32);
	__type(value, struct sl_answers);
	__uint(max_entries, 1);
} answers SEC(".maps");

static __always_inline struct sl_answers *sl_own_answers(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&answers, &zero);
}

/* Before a packet goes to the queue of what arrives: whether to send it. */
static __always_inline int sl_queue_is_alive(void)
{
	struct sl_answers *a = sl_own_answers();
	u32 open;

	if (!a)
		return 1;
	open = a->asked++ - a->answered;
	return open < SL_UNANSWERED_PKTS || open % SL_ASK_AGAIN_PKTS == 0;
}

/* In that queue. */
static __always_inline void sl_queue_answers(void)
{
	struct sl_answers *a = sl_own_answers();

	if (a)
		a->answered = a->asked;
}
