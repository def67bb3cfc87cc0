/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What the lists of abi/ call their members, for Rust. */
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
