/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The kernel types that the programs touch, and of each only the members they touch. preserve_access_index makes the
 * loader find the real offsets (CO-RE), so no vmlinux.h of one machine is needed, and one object serves every kernel
 * and architecture.
 */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char s8;
typedef short s16;
typedef int s32;
typedef long long s64;
typedef u8 __u8;
typedef u16 __u16;
typedef u32 __u32;
typedef u64 __u64;
typedef s8 __s8;
typedef s16 __s16;
typedef s32 __s32;
typedef s64 __s64;
typedef u16 __be16;
typedef u32 __be32;
typedef u64 __be64;
typedef u16 __sum16;
typedef u32 __wsum;
typedef _Bool bool;
#define true  1
#define false 0
#define NULL  ((void *)0)

/* include/uapi/linux/bpf.h */
#define BPF_ANY              0
#define BPF_NOEXIST          1
#define BPF_F_NO_PREALLOC    (1U << 0)
#define BPF_F_MMAPABLE       (1U << 10)
#define BPF_F_INNER_MAP      (1U << 12)
#define BPF_F_RECOMPUTE_CSUM (1ULL << 0)
#define BPF_F_PSEUDO_HDR     (1ULL << 4)
#define BPF_ADJ_ROOM_NET     0
#define BPF_ADJ_ROOM_MAC     1
#define BPF_F_MARK_MANGLED_0 (1ULL << 5)
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PROG_ARRAY = 3,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_XSKMAP = 17,
	BPF_MAP_TYPE_RINGBUF = 27
};
/* include/uapi/linux/bpf.h; unions of which only one side is used have its members alone. */
enum {
	BPF_FIB_LKUP_RET_SUCCESS = 0,
	BPF_FIB_LKUP_RET_NOT_FWDED = 4,
	BPF_FIB_LKUP_RET_NO_NEIGH = 7,
	BPF_FIB_LKUP_RET_FRAG_NEEDED = 8
};
struct bpf_fib_lookup {
	u8 family;
	u8 l4_protocol;
	u16 sport;
	u16 dport;
	u16 tot_len; /* in: 0 checks no MTU; out: the MTU */
	u32 ifindex; /* in: where the packet came in; out: where it goes */
	u32 tos; /* of IPv6 the flow label; out: the route's metric */
	u32 src[4]; /* of IPv4 the first word */
	u32 dst[4]; /* out: the next hop */
	u32 vlan;
	u8 smac[6];
	u8 dmac[6];
};
#define BPF_F_CURRENT_NETNS (-1L)
/* Its length tells which of the two it is. */
struct bpf_sock_tuple {
	union {
		struct {
			u32 saddr, daddr;
			u16 sport, dport;
		} ipv4;
		struct {
			u32 saddr[4], daddr[4];
			u16 sport, dport;
		} ipv6;
	};
};
struct bpf_sock {
	u32 bound_dev_if, family, type, protocol, mark, priority, src_ip4, src_ip6[4], src_port;
	u16 dst_port, pad;
	u32 dst_ip4, dst_ip6[4], state;
	s32 rx_queue_mapping;
};
/* The context of hooks of sockets' addresses; sk is left out. Ports in network byte order. */
struct bpf_sock_addr {
	u32 user_family, user_ip4, user_ip6[4], user_port, family, type, protocol, msg_src_ip4, msg_src_ip6[4];
};
struct bpf_redir_neigh {
	u32 nh_family;
	u32 nh[4];
};
enum xdp_action { XDP_ABORTED, XDP_DROP, XDP_PASS, XDP_TX, XDP_REDIRECT };
struct xdp_md {
	u32 data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex;
};
struct bpf_sock;
struct bpf_flow_keys;
struct __sk_buff {
	u32 len, pkt_type, mark, queue_mapping, protocol, vlan_present, vlan_tci, vlan_proto, priority, ingress_ifindex, ifindex,
		tc_index, cb[5], hash, tc_classid, data, data_end, napi_id, family, remote_ip4, local_ip4, remote_ip6[4],
		local_ip6[4], remote_port, local_port, data_meta;
	union {
		struct bpf_flow_keys *flow_keys;
		u64 pad_flow_keys;
	};
	u64 tstamp;
	u32 wire_len, gso_segs;
	union {
		struct bpf_sock *sk;
		u64 pad_sk;
	};
	u32 gso_size;
};
#define PACKET_HOST     0
#define PACKET_OUTGOING 4
#define TC_ACT_UNSPEC   (-1)
#define TC_ACT_OK       0
#define TC_ACT_SHOT     2
struct bpf_iter_num {
	u64 opaque[1];
} __attribute__((aligned(8)));
struct bpf_dynptr {
	u64 opaque[2];
} __attribute__((aligned(8)));
struct bpf_sk_buff_ptr {
	struct sk_buff *skb;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct net_device {
	int ifindex;
};
struct netdev_queue {
	struct net_device *dev;
};
struct sk_buff {
	unsigned int len;
	unsigned int data_len;
	u16 tc_index;
	u16 vlan_tci;
	u16 vlan_proto;
	u16 protocol;
	u32 mark;
	int skb_iif;
	unsigned long _nfct;
	char cb[48];
	unsigned int end;
	unsigned char *head;
	unsigned char *data;
};
struct skb_shared_info {
	u16 gso_size;
	u16 gso_segs;
};
union nf_inet_addr {
	u32 all[4];
};
struct nf_conntrack_man {
	union nf_inet_addr u3;
};
struct nf_conntrack_tuple {
	struct nf_conntrack_man src;
	struct {
		union nf_inet_addr u3;
	} dst;
};
struct nf_conntrack_tuple_hash {
	struct nf_conntrack_tuple tuple;
};
struct nf_conn {
	struct nf_conntrack_tuple_hash tuplehash[2];
	unsigned long status;
};
struct qdisc_skb_cb {
	unsigned int pkt_len;
	unsigned char data[20]; /* cb of struct __sk_buff */
};
struct qdisc_skb_head {
	u32 qlen;
};
struct gnet_stats_queue {
	u32 qlen, backlog, drops, requeues, overlimits;
};
struct Qdisc {
	u32 limit;
	u32 parent;
	struct netdev_queue *dev_queue;
	struct qdisc_skb_head q;
	struct gnet_stats_queue qstats;
};
#pragma clang attribute pop

struct nlattr;
struct netlink_ext_ack;
struct Qdisc_ops {
	char id[16];
	int (*enqueue)(struct sk_buff *, struct Qdisc *, struct bpf_sk_buff_ptr *);
	struct sk_buff *(*dequeue)(struct Qdisc *);
	int (*init)(struct Qdisc *, struct nlattr *, struct netlink_ext_ack *);
	void (*reset)(struct Qdisc *);
	void (*destroy)(struct Qdisc *);
};
