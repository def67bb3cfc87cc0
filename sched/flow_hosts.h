/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The hosts of flows, by class: how many bulk flows they have, by which their flows' turns are divided, and the source budget
 * that pays for what a source sends ahead of turns.
 *
 * A host is known by a hash of its address, which the engine makes with a random key, and by the class. It has one of the SL_HOST_WAYS
 * records of a set. A record that counts bulk flows stays with its host; one that counts none may be taken over.
 */
#pragma once
#include "scheduler.h"

/* The refill of a source budget in a round, in quanta, and its size, in allowances. */
#define SL_BUDGET_QUANTA     8u
#define SL_BUDGET_ALLOWANCES 8u

SL_FN u32 flow_host_key(u32 host, u32 class)
{
	return (host & 0xffff) | (class + 1) << 16;
}

/*
 * The record of a host in a class. A host that has none gets the one of its set from whose source budget least is missing; if all of them count
 * bulk flows, it shares the first.
 */
SL_GLOBAL u32 flow_host(SL_HOST_TABLE *t SL_NONNULL, u32 host, u32 class)
{
	u32 key = flow_host_key(host, class), set = (host ^ class * 37) & (sl_length(t->host) - 1) & ~(SL_HOST_WAYS - 1);
	u32 n, found = ~0u, least = ~0u;
	struct sl_host *h;

	sl_for (n, SL_HOST_WAYS) {
		h = sl_at(t->host, set + n);
		if (h->key == key)
			return set + n;
		if (!h->bulk_flows && (u32)h->used_bytes < least) {
			least = (u32)h->used_bytes;
			found = set + n;
		}
	}
	if (found == ~0u)
		return set;
	h = sl_at(t->host, found);
	h->key = key;
	h->used_bytes = 0;
	return found;
}

/* As flow_host; asks first for the record that the flow used last, which is mostly still its host's. */
SL_FN u16 flow_host_again(SL_HOST_TABLE *t, u32 host, u32 class, u32 last)
{
	return (u16)(sl_at(t->host, last)->key == flow_host_key(host, class) ? last : flow_host(t, host, class));
}

/* The hosts of a flow that is not bulk, from a packet of it; only those that its class looks at. */
SL_FN void flow_find_hosts(SL_SCHEDULER *s, const SL_CLASS *k, u32 class, struct sl_flow_queue *f, const SL_SLOT *q)
{
	f->hosts = k->hosts;
	if (k->hosts & SL_HOSTS_SOURCE)
		f->src_host = flow_host_again(&s->src_hosts, q->src_host, class, f->src_host);
	if (k->hosts & SL_HOSTS_DESTINATION)
		f->dst_host = flow_host_again(&s->dst_hosts, q->dst_host, class, f->dst_host);
}

/* The flow has become bulk (1), or is no longer (-1). */
SL_FN void flow_count_bulk(SL_SCHEDULER *s, const struct sl_flow_queue *f, int by)
{
	if (f->hosts & SL_HOSTS_SOURCE)
		sl_at(s->src_hosts.host, f->src_host)->bulk_flows += (u16)by;
	if (f->hosts & SL_HOSTS_DESTINATION)
		sl_at(s->dst_hosts.host, f->dst_host)->bulk_flows += (u16)by;
}

/* By how much the flow's turns are divided. */
SL_FN u32 flow_load(SL_SCHEDULER *s, const SL_CLASS *k, const struct sl_fair *fair, const struct sl_flow_queue *f)
{
	u32 load = 1, flows;

	if (!fair->wheel_used) /* it has them to itself */
		return 1;
	if (k->hosts & SL_HOSTS_SOURCE) {
		flows = sl_at(s->src_hosts.host, f->src_host)->bulk_flows;
		load = sl_max(load, flows);
	}
	if (k->hosts & SL_HOSTS_DESTINATION) {
		flows = sl_at(s->dst_hosts.host, f->dst_host)->bulk_flows;
		load = sl_max(load, flows);
	}
	return load;
}

/* The refill of so many rounds, in bytes; load divides it among flows of one host. */
SL_FN u32 flow_gain(u32 rounds, u32 quantum_bytes, u32 load)
{
	u64 gain = (u64)rounds * quantum_bytes;

	if (sl_unlikely(load > 1))
		gain /= load;
	return (u32)sl_min(gain, 1ULL << 30);
}

/* The rounds that have passed give back some of what was used. */
SL_FN void flow_recover(s32 *used_bytes, u32 *round, u32 now, u32 quantum_bytes, u32 load)
{
	u32 gain;

	if (*round == now)
		return;
	gain = flow_gain(now - *round, quantum_bytes, load);
	*used_bytes = *used_bytes > (s32)gain ? *used_bytes - (s32)gain : 0;
	*round = now;
}

/*
 * Whether the source budget of the flow's source pays for a packet that goes ahead of turns. It does so as the packet comes to stand there, so that
 * no crowd stands there before any has paid.
 */
SL_FN int flow_source_pays(SL_SCHEDULER *s, const SL_CLASS *k, const struct sl_flow_queue *f, u32 round, u32 len_bytes)
{
	struct sl_host *h;

	if (!(k->hosts & SL_HOSTS_SOURCE))
		return 1;
	h = sl_at(s->src_hosts.host, f->src_host);
	flow_recover(&h->used_bytes, &h->round, round, SL_BUDGET_QUANTA * k->flow_quantum_bytes, 1);
	if (h->used_bytes >= (s32)(SL_BUDGET_ALLOWANCES * k->allowance_bytes))
		return 0;
	h->used_bytes += (s32)len_bytes;
	return 1;
}
