/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Observes a packet of one kind of program: see parse_any.h, whose macros this uses, and
 *
 *	SL_OBSERVE_PARSE(x, fields, h)	parses the packet
 *	SL_OBSERVE_META(x, c)		notes what is known of a captured packet beside its bytes
 */

/* Time to live, window and flags, which the parser does not keep: of the outer header, without extension headers. */
static __always_inline void SL_PARSER(sl_read_details)(SL_PACKET *x, struct sl_seen *s)
{
	u8 b[16] __attribute__((aligned(8)));
	u32 off = 0, type, header;

	s->tcp_flags = s->h.tcp_flags == SL_NO_TCP_FLAGS ? 0 : (u8)s->h.tcp_flags;
	if (!s->h.is_ip)
		return;
	if (!sl_l3_type) {
		if (SL_LOAD(x, 12, b, 2))
			return;
		type = sl_be16(b);
		off = 14;
		if (sl_is_vlan((u16)type)) {
			if (SL_LOAD(x, 16, b, 2))
				return;
			type = sl_be16(b);
			off = 18;
		}
		if (type != SL_ETH_IPV4 && type != SL_ETH_IPV6)
			return;
	}
	if (SL_LOAD(x, off, b, 10))
		return;
	if (b[0] >> 4 == 4) {
		s->ttl = b[8];
		type = b[9];
		header = (b[0] & 15) * 4;
	} else {
		s->ttl = b[7];
		type = b[6];
		header = 40;
	}
	if (type != SL_PROTO_TCP || s->h.proto != SL_PROTO_TCP || s->h.fragment == SL_LATER_FRAGMENT ||
	    SL_LOAD(x, off + header + 14, b, 2))
		return;
	s->window = sl_be16(b);
}

/* Copies the packet, or its first bytes, into a room of `most` bytes. A constant, so that the verifier knows the room. */
#define SL_CAPTURE_INTO(most)                                                                                         \
	{                                                                                                             \
		struct sl_captured *r = bpf_ringbuf_reserve(ring, sizeof(*r) + most, 0);                              \
                                                                                                                      \
		if (!r) {                                                                                             \
			sl_count_missed(c, s->bytes, weight);                                                         \
			return 0;                                                                                     \
		}                                                                                                     \
		/* Before 6.2 the verifier does not conclude from a comparison with 0 that a length is at least 1. */ \
		last = length - 1;                                                                                    \
		sl_opaque(last);                                                                                      \
		if (last >= (most) || SL_LOAD(x, 0, r + 1, last + 1))                                                 \
			length = 0;                                                                                   \
		r->captured = length;                                                                                 \
		r->at_ns = bpf_ktime_get_ns();                                                                        \
		r->length = s->bytes;                                                                                 \
		r->missed = c->missed_since;                                                                          \
		r->rule = s->rule;                                                                                    \
		r->class = s->class;                                                                                  \
		r->verdict = s->verdict;                                                                              \
		r->direction = s->direction;                                                                          \
		r->weight = weight;                                                                                   \
		r->has_vlan = 0;                                                                                      \
		r->vlan_tci = 0;                                                                                      \
		r->mark = 0;                                                                                          \
		SL_OBSERVE_META(x, r);                                                                                \
		c->missed_since = 0;                                                                                  \
		bpf_ringbuf_submit(r, sl_wakes(c, sizeof(*r) + most + 8));                                            \
		return 0;                                                                                             \
	}

SL_GLOBAL int SL_PARSER(sl_capture)(SL_PACKET *x SL_PACKET_ARG, const struct sl_seen *s SL_NONNULL, u32 cpu)
{
	struct sl_telemetry_cpu *c = sl_this_cpu(cpu);
	void *ring = bpf_map_lookup_elem(&rings, &cpu);
	u32 weight, length, last;

	if (!s || !c || !ring)
		return 0;
	weight = c->weight;
	c->sampled_pkts++;
	length = s->bytes;
	if (length > sl_conf.snap_bytes) {
		c->truncated_pkts++;
		length = sl_conf.snap_bytes;
	}
	if (length <= 128)
		SL_CAPTURE_INTO(128)
	if (length <= 512)
		SL_CAPTURE_INTO(512)
	if (length <= 1600)
		SL_CAPTURE_INTO(1600)
	if (length <= 9216)
		SL_CAPTURE_INTO(9216)
	SL_CAPTURE_INTO(SL_CAPTURE_MOST)
}

/*
 * Observes a packet whose headers must be parsed. told: what is known of it, class | verdict << 8 | direction << 16. A function of its own for
 * its stack. Returns whether the filter lets the packet through.
 */
SL_GLOBAL int SL_PARSER(sl_observe_parsed)(SL_PACKET *x SL_PACKET_ARG, u32 told, u32 bytes, u32 segments)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct sl_telemetry_cpu *c = sl_this_cpu(cpu);
	struct sl_seen s = {};

	if (!c)
		return 0;
	s.bytes = bytes;
	s.segments = (u16)segments;
	s.class = (u8)told;
	s.verdict = (u8)(told >> 8);
	s.direction = (u8)(told >> 16);
	s.rule = SL_RULE_UNKNOWN;
	SL_OBSERVE_PARSE(x, sl_fields_to_read(), &s.h);
	if (sl_conf.by_policy && (s.class == SL_CLASS_UNKNOWN || sl_conf.records == SL_CAPTURES))
		sl_class_of_headers(&s);
	if (!sl_is_wanted(&s)) {
		c->filtered_pkts++;
		return 0;
	}
	c->seen_pkts += s.segments;
	c->seen_bytes += s.bytes;
	sl_count_seen(&s, c, cpu);
	if (!sl_conf.records)
		return 1;
	if (!sl_conf.samples_unseen)
		c->weight = sl_conf.sampling == SL_SAMPLE_FLOWS ? sl_weight_of_flow(&s) : sl_weight_of_any(c, cpu);
	if (!c->weight)
		return 1;
	if (sl_conf.records == SL_PACKET_RECORDS) {
		SL_PARSER(sl_read_details)(x, &s);
		sl_record(&s, cpu);
	}
	if (sl_conf.records == SL_CAPTURES)
		SL_PARSER(sl_capture)(x, &s, cpu);
	return 1;
}
