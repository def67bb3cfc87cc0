/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Names of the members of abi/'s lists, for Rust. */
#include "disciplines.h"
#include "reason.h"
#include "classifier.h"

const char *sl_drop_name(u32 reason)
{
	static const char *const names[] = {
#define X(upper, lower, text) #lower,
		SL_DROP_REASONS(X)
#undef X
	};

	return reason < SL_DROPS ? names[reason] : "";
}

const char *sl_drop_text(u32 reason)
{
	static const char *const texts[] = {
#define X(upper, lower, text) text,
		SL_DROP_REASONS(X)
#undef X
	};

	return reason < SL_DROPS ? texts[reason] : "";
}

const char *sl_limit_name(u32 limit)
{
	static const char *const names[] = {
#define X(upper, lower, text) #lower,
		SL_LIMIT_REASONS(X)
#undef X
	};

	return limit < SL_LIMITS ? names[limit] : "";
}

const char *sl_parse_name(u32 kind)
{
	static const char *const names[] = {
#define X(upper, lower, malformed) #lower,
		SL_PARSE_KINDS(X)
#undef X
	};

	return kind < SL_PARSES ? names[kind] : "";
}

/* By number; the caller stays below SL_KINDS. */
const struct sl_discipline_line *sl_discipline_line(u32 kind)
{
	static const struct sl_discipline_line lines[] = {
#define X(upper, lower, keys, share, on_tc, text) { keys, share, on_tc, #lower, text },
		SL_DISCIPLINES(X)
#undef X
	};

	return &lines[kind];
}

/* By number; the caller stays below SL_RANKS. */
const struct sl_discipline_line *sl_rank_line(u32 rank)
{
	static const struct sl_discipline_line lines[] = {
#define X(upper, lower, keys, on_tc, text) { keys, 0, on_tc, #lower, text },
		SL_RANK_FUNCTIONS(X)
#undef X
	};

	return &lines[rank];
}
