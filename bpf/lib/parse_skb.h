/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The parser of packets of tc programs, for objects that have no other. */
#pragma once
#include "parse.h"

#define SL_PACKET_ARG
#define SL_PACKET       struct __sk_buff
#define SL_LOAD         bpf_skb_load_bytes
#define SL_LENGTH(x)    ((x)->len)
#define SL_PARSER(name) name##_skb
#include "parse_any.h"
#include "frame.h"
