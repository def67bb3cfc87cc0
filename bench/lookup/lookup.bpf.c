// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * The programs that the bench of the classifier times: the product's own functions, and a walk through the same rules. BPF_PROG_TEST_RUN sends the
 * same bytes each time, so the programs vary packets by themselves; one that does nothing else says what that costs.
 */
#include "../../bpf/classifier.bpf.c"

#define BENCH_HEADERS 4096u
#define BENCH_FRAMES  65536u

struct bench_control {
	u32 n; /* packets so far */
	u32 mask; /* flows, less one */
	u32 flood; /* each packet is of another flow */
	u32 pad;
	u64 sum; /* of the rules that were found: equal for all that search the same */
};

/* A rule of the walk; of IPv4. Masks of 0 and full ranges match everything. */
struct bench_rule {
	u32 src, src_mask, dst, dst_mask;
	u16 sport_low, sport_high, dport_low, dport_high;
	u16 proto; /* 0xffff: any */
	u16 pad;
	u32 class;
};

struct bench_rules {
	u32 count;
	u32 pad;
	struct bench_rule rule[SL_RULES];
};

/* The words of a frame that differ: TTL, protocol, checksum, source; destination, ports. As the parser reads them. */
struct bench_frame {
	u64 word[2];
};

#define BENCH_MAP(name, of, entries)              \
	struct {                                  \
		__uint(type, BPF_MAP_TYPE_ARRAY); \
		__type(key, u32);                 \
		__type(value, of);                \
		__uint(max_entries, entries);     \
	} name SEC(".maps")
BENCH_MAP(bench_control, struct bench_control, 1);
BENCH_MAP(bench_headers, struct sl_headers, BENCH_HEADERS);
BENCH_MAP(bench_frames, struct bench_frame, BENCH_FRAMES);
BENCH_MAP(bench_rules, struct bench_rules, 1);

static __always_inline struct bench_control *bench_control_now(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&bench_control, &zero);
}

/* All numbers below a power of two, in an order that no prefetcher knows. */
static __always_inline u32 bench_shuffled(u32 n, u32 mask)
{
	return n * 40503u & mask;
}

static __always_inline const struct sl_headers *bench_next_headers(struct bench_control *c)
{
	u32 key = bench_shuffled(c->n++, BENCH_HEADERS - 1);

	return bpf_map_lookup_elem(&bench_headers, &key);
}

SEC("xdp")
int bench_nothing(struct xdp_md *ctx)
{
	return XDP_PASS;
}

SEC("xdp")
int bench_parse(struct xdp_md *ctx)
{
	struct sl_headers h;

	sl_headers_init(&h, SL_NO_TAG, 0, ctx->ingress_ifindex);
	sl_parse_frame_xdp(ctx, 0, &h);
	asm volatile("" : : "r"(&h) : "memory"); /* whatever is not read here is written all the same */
	return h.kind;
}

/* The input of the stages below. */
static __always_inline int bench_begin(struct bench_control *c, struct sl_tables **t, const struct sl_headers **h)
{
	*t = sl_live_tables();
	if (!*t)
		return 0;
	*h = bench_next_headers(c);
	return *h != NULL;
}

SEC("xdp")
int bench_fetch(struct xdp_md *ctx)
{
	struct bench_control *c = bench_control_now();
	const struct sl_headers *h;
	struct sl_tables *t;

	if (!c || !bench_begin(c, &t, &h))
		return 0;
	c->sum += h->proto + t->default_class;
	return XDP_PASS;
}

SEC("xdp")
int bench_lookup(struct xdp_md *ctx)
{
	struct bench_control *c = bench_control_now();
	const struct sl_headers *h;
	struct sl_tables *t;

	if (!c || !bench_begin(c, &t, &h))
		return 0;
	c->sum += sl_choice_of(sl_choose(t, h)).rule;
	return XDP_PASS;
}

static __always_inline int bench_matches(const struct bench_rule *r, u32 src, u32 dst, u32 sport, u32 dport, u32 proto)
{
	return !((src ^ r->src) & r->src_mask) && !((dst ^ r->dst) & r->dst_mask) && sport >= r->sport_low &&
	       sport <= r->sport_high && dport >= r->dport_low && dport <= r->dport_high &&
	       (r->proto == 0xffff || r->proto == proto);
}

struct bench_walker {
	const struct bench_rules *rules;
	u32 src, dst, sport, dport, proto, found;
};

static long bench_step(u32 i, void *of)
{
	struct bench_walker *w = of;

	if (!bench_matches(sl_at(w->rules->rule, i), w->src, w->dst, w->sport, w->dport, w->proto))
		return 0;
	w->found = i;
	return 1;
}

/* The inputs of a walk: the rules, and the next packet's headers. The tables are asked for because every lookup does. */
static __always_inline int bench_begin_walk(struct bench_control *c, const struct bench_rules **rules,
					    const struct sl_headers **h)
{
	u32 zero = 0;

	if (!sl_live_tables())
		return 0;
	*rules = bpf_map_lookup_elem(&bench_rules, &zero);
	if (!*rules)
		return 0;
	*h = bench_next_headers(c);
	return *h != NULL;
}

/* The walk by bpf_loop, from Linux 5.17 on. */
SEC("xdp")
int bench_walk_helper(struct xdp_md *ctx)
{
	struct bench_control *c = bench_control_now();
	const struct bench_rules *rules;
	const struct sl_headers *h;

	if (!c || !bench_begin_walk(c, &rules, &h))
		return 0;

	struct bench_walker w = { rules, h->src[3], h->dst[3], h->sport, h->dport, h->proto, SL_RULE_NONE };

	bpf_loop(rules->count & 0xffff, bench_step, &w, 0);
	c->sum += w.found;
	return XDP_PASS;
}

/* The walk by loops that the verifier follows to their ends; two, since 4,096 rounds in one are too much for it. */
SL_GLOBAL u32 bench_walk_some(const struct bench_rules *rules SL_NONNULL, const struct sl_headers *h SL_NONNULL, u32 from)
{
	u32 src, dst, sport, dport, proto, i;

	if (!rules || !h)
		return SL_RULE_NONE;
	src = h->src[3], dst = h->dst[3], sport = h->sport, dport = h->dport, proto = h->proto;
	from &= SL_RULES - 64;
	for (i = 0; i < 64; i++)
		if (bench_matches(&rules->rule[from + i], src, dst, sport, dport, proto))
			return from + i;
	return SL_RULE_NONE;
}

/* Bits behind the last rule match nothing. */
SL_GLOBAL u32 bench_walk_all(const struct bench_rules *rules SL_NONNULL, const struct sl_headers *h SL_NONNULL)
{
	u32 found, i;

	if (!rules || !h)
		return SL_RULE_NONE;
	for (i = 0; i < SL_RULES / 64; i++) {
		if (i * 64 >= rules->count)
			break;
		found = bench_walk_some(rules, h, i * 64);
		if (found != SL_RULE_NONE)
			return found;
	}
	return SL_RULE_NONE;
}

SEC("xdp")
int bench_walk_loop(struct xdp_md *ctx)
{
	struct bench_control *c = bench_control_now();
	const struct bench_rules *rules;
	const struct sl_headers *h;

	if (!c || !bench_begin_walk(c, &rules, &h))
		return 0;
	c->sum += bench_walk_all(rules, h);
	return XDP_PASS;
}

/* Makes the frame one of another flow. */
static __always_inline int bench_vary(struct xdp_md *ctx)
{
	u64 *front = (void *)(long)ctx->data + SL_FRONT;
	struct bench_control *c = bench_control_now();
	const struct bench_frame *f;
	u32 n, key;

	if (!c || (void *)front + SL_FRONT_BYTES > (void *)(long)ctx->data_end)
		return -1;
	n = c->n++;
	key = bench_shuffled(n, c->mask);
	f = bpf_map_lookup_elem(&bench_frames, &key);
	if (!f)
		return -1;
	front[2] = f->word[0];
	front[3] = c->flood ? f->word[1] ^ (u64)(n >> 16 & 0xffff) << 32 : f->word[1]; /* the source port */
	return 0;
}

SEC("xdp")
int bench_vary_only(struct xdp_md *ctx)
{
	if (bench_vary(ctx))
		return 0;
	bpf_xdp_adjust_meta(ctx, 0);
	return XDP_PASS;
}

/* All of sl_xdp. Its metadata is taken off again, else there would be no room for it from the fifth run on. */
SEC("xdp")
int bench_whole_varied(struct xdp_md *ctx)
{
	struct sl_admission a = {};
	int verdict;

	if (bench_vary(ctx))
		return 0;
	verdict = sl_arrive_xdp(ctx, &a);
	bpf_xdp_adjust_meta(ctx, (int)sizeof(struct sl_xdp_meta));
	return verdict;
}

SEC("xdp")
int bench_meta_only(struct xdp_md *ctx)
{
	bpf_xdp_adjust_meta(ctx, 0);
	return XDP_PASS;
}

SEC("xdp")
int bench_whole(struct xdp_md *ctx)
{
	struct sl_admission a = {};
	int verdict = sl_arrive_xdp(ctx, &a);

	bpf_xdp_adjust_meta(ctx, (int)sizeof(struct sl_xdp_meta));
	return verdict;
}

/* Beside sl_ingress, which needs nothing around it: a packet of tc has no metadata here, so it is parsed each time. */
SEC("tc")
int bench_nothing_tc(struct __sk_buff *skb)
{
	return TC_ACT_UNSPEC;
}
