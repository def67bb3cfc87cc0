/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Reads bytes of a packet that a qdisc holds: struct sk_buff, not the context of tc programs. */
#pragma once
#include "kernel.h"

int bpf_dynptr_from_skb(struct __sk_buff *skb, u64 flags, struct bpf_dynptr *ptr) __ksym;

/* Reads bytes outside the linear part. */
static __always_inline int sl_load_far(struct sk_buff *skb, u32 off, void *to, u32 size)
{
	struct bpf_dynptr bytes;

	return bpf_dynptr_from_skb((struct __sk_buff *)skb, 0, &bytes) || bpf_dynptr_read(to, size, &bytes, off, 0);
}

/* Reads bytes, those of the linear part directly, which is memory that the verifier lets be read untrusted (from 6.17). size is a constant. */
static __always_inline int sl_load(struct sk_buff *skb, u32 off, void *to, u32 size)
{
	const u8 *p = skb->data + off;
	u32 i;

	if (sl_unlikely(off + size > skb->len - skb->data_len))
		return sl_load_far(skb, off, to, size);
#pragma unroll
	for (i = 0; i + 8 <= size; i += 8)
		*(u64 *)(to + i) = *(const u64 *)(p + i);
	if (size & 4) {
		*(u32 *)(to + i) = *(const u32 *)(p + i);
		i += 4;
	}
	if (size & 2)
		*(u16 *)(to + i) = *(const u16 *)(p + i);
	return 0;
}
