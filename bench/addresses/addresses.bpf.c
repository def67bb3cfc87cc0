// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * The programs that the bench of the address table times: the look-up, and the kernel's own tables beside it. Each run looks up the next of some
 * addresses; one program only fetches it.
 */
#include "../../bpf/lib/kernel.h"
#include <bpf/bpf_helpers.h>
#include "../../sched/addresses.h"

#define BENCH_ADDRESSES 4096u
#define BENCH_LPM_TRIE  11 /* BPF_MAP_TYPE_LPM_TRIE */

char LICENSE[] SEC("license") = "Dual MIT/GPL";

struct bench_address {
	u32 word[4];
};

struct bench_control {
	u32 n; /* addresses so far */
	u32 pad;
	u64 sum; /* of the leaves that were found: equal for all that search the same */
};

struct bench_key_v4 {
	u32 length;
	u32 word;
};

struct bench_key_v6 {
	u32 length;
	struct bench_address address;
};

#define BENCH_MAP(name, kind, of_key, of, entries, flags) \
	struct {                                          \
		__uint(type, kind);                       \
		__uint(map_flags, flags);                 \
		__type(key, of_key);                      \
		__type(value, of);                        \
		__uint(max_entries, entries);             \
	} name SEC(".maps")
BENCH_MAP(bench_control, BPF_MAP_TYPE_ARRAY, u32, struct bench_control, 1, 0);
BENCH_MAP(bench_addresses, BPF_MAP_TYPE_ARRAY, u32, struct bench_address, BENCH_ADDRESSES, 0);
BENCH_MAP(table, BPF_MAP_TYPE_ARRAY, u32, struct sl_addresses, 1, 0);
BENCH_MAP(hash_v4, BPF_MAP_TYPE_HASH, u32, u32, SL_ADDRESSES, 0);
BENCH_MAP(hash_v6, BPF_MAP_TYPE_HASH, struct bench_address, u32, SL_ADDRESSES, 0);
BENCH_MAP(trie_v4, BENCH_LPM_TRIE, struct bench_key_v4, u32, SL_ADDRESSES, BPF_F_NO_PREALLOC);
BENCH_MAP(trie_v6, BENCH_LPM_TRIE, struct bench_key_v6, u32, SL_ADDRESSES, BPF_F_NO_PREALLOC);

/* The next address, in an order that no prefetcher knows. */
static __always_inline const struct bench_address *bench_next(struct bench_control **control)
{
	u32 zero = 0, key;

	*control = bpf_map_lookup_elem(&bench_control, &zero);
	if (!*control)
		return NULL;
	key = (*control)->n++ * 40503u & (BENCH_ADDRESSES - 1);
	return bpf_map_lookup_elem(&bench_addresses, &key);
}

static __always_inline int bench_add(struct bench_control *control, const u32 *leaf)
{
	control->sum += leaf ? *leaf : SL_ADDRESS_NO_LEAF;
	return XDP_PASS;
}

SEC("xdp")
int bench_fetch(struct xdp_md *ctx)
{
	struct bench_control *control;
	const struct bench_address *address = bench_next(&control);

	return address ? bench_add(control, &address->word[3]) : XDP_PASS;
}

SEC("xdp")
int bench_table(struct xdp_md *ctx)
{
	struct bench_control *control;
	const struct bench_address *address = bench_next(&control);
	u32 zero = 0, leaf;
	struct sl_addresses *t;

	if (!address)
		return XDP_PASS;
	t = bpf_map_lookup_elem(&table, &zero);
	if (!t)
		return XDP_PASS;
	leaf = addresses_leaf(t, address->word);
	return bench_add(control, &leaf);
}

SEC("xdp")
int bench_hash_v4(struct xdp_md *ctx)
{
	struct bench_control *control;
	const struct bench_address *address = bench_next(&control);

	return address ? bench_add(control, bpf_map_lookup_elem(&hash_v4, &address->word[3])) : XDP_PASS;
}

SEC("xdp")
int bench_hash_v6(struct xdp_md *ctx)
{
	struct bench_control *control;
	const struct bench_address *address = bench_next(&control);

	return address ? bench_add(control, bpf_map_lookup_elem(&hash_v6, address)) : XDP_PASS;
}

SEC("xdp")
int bench_trie_v4(struct xdp_md *ctx)
{
	struct bench_control *control;
	const struct bench_address *address = bench_next(&control);
	struct bench_key_v4 key = { .length = 32 };

	if (!address)
		return XDP_PASS;
	key.word = address->word[3];
	return bench_add(control, bpf_map_lookup_elem(&trie_v4, &key));
}

SEC("xdp")
int bench_trie_v6(struct xdp_md *ctx)
{
	struct bench_control *control;
	const struct bench_address *address = bench_next(&control);
	struct bench_key_v6 key = { .length = 128 };

	if (!address)
		return XDP_PASS;
	key.address = *address;
	return bench_add(control, bpf_map_lookup_elem(&trie_v6, &key));
}
