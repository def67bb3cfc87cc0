#!/usr/bin/env bash
# [COUNT [REPEATS [PATTERN]]]. Runs inside the virtual machine. For each contender, pktgen sends COUNT game packets (UDP to port 3074, 64 bytes, one
# flow) through the qdisc of a dummy device, REPEATS times; a packet's time is its instructions. Queues stay empty: each
# packet is classified, enqueued, dequeued and given to the device. PATTERN: only contenders that match it, and `none`.
#
# Prints: contender,rules,repeat,instructions_per_packet (the device and pktgen included; `none` is what to subtract).
set -euo pipefail
COUNT=${1:-50000} REPEATS=${2:-5} ONLY=${3:-}
modprobe pktgen
modprobe dummy
bench=/proc/net/pktgen

pktgen() { # device: instructions per packet
  echo rem_device_all > $bench/kpktgend_0
  echo "add_device $1" > $bench/kpktgend_0
  local setting
  for setting in "count $COUNT" "pkt_size 64" "clone_skb 0" "delay 0" "dst 10.99.0.2" "src_min 10.99.0.1" "src_max 10.99.0.1" \
    "dst_mac 02:00:00:00:00:02" "udp_src_min 40000" "udp_src_max 40000" "udp_dst_min 3074" "udp_dst_max 3074" \
    "xmit_mode queue_xmit"; do
    echo "$setting" > "$bench/$1"
  done
  echo start > $bench/pgctrl
  local sent
  sent=$(awk '/pkts-sofar/ { print $2 }' "$bench/$1")
  [ "$sent" = "$COUNT" ] || { echo "$1: pktgen sent $sent of $COUNT" >&2; cat "$bench/$1" >&2; exit 1; }
  sed -n 's/^Result: OK: \([0-9]*\)(.*/\1/p' "$bench/$1" | awk -v n="$COUNT" '{ printf "%.1f", $1 * 1000 / n }'
}

fresh() {
  if ip link show bench0 > /dev/null 2>&1; then ip link del bench0; fi
  ip link add bench0 type dummy
  ip link set bench0 up
}

measure() { # name rules
  local repeat
  if [ -n "$ONLY" ] && [ "$1" != none ] && [[ ! $1 =~ $ONLY ]]; then return; fi
  for ((repeat = 1; repeat <= REPEATS; repeat++)); do echo "$1,$2,$repeat,$(pktgen bench0)"; done
}

flower() { # parent rules: as many rules as ours have, the game last; one mask, so flower looks up one hash
  local n
  {
    for ((n = 1; n < $2; n++)); do
      echo "filter add dev bench0 parent $1 protocol ip pref 1 flower ip_proto udp dst_port $((20000 + n)) classid ${1}$((n % 8 + 1))"
    done
    echo "filter add dev bench0 parent $1 protocol ip pref 1 flower ip_proto udp dst_port 3074 classid ${1}2"
  } | tc -batch -
}

htb() {
  tc qdisc add dev bench0 root handle 1: htb default 8
  tc class add dev bench0 parent 1: classid 1:99 htb rate 10gbit
  local class
  for class in 1 2 3 4 5 6 7 8; do
    tc class add dev bench0 parent 1:99 classid 1:$class htb rate 1gbit ceil 10gbit prio $((class - 1)) quantum 1514
  done
}

fresh
pktgen bench0 > /dev/null # what the guest still does after boot is over then
pktgen bench0 > /dev/null
measure none 0
for qdisc in pfifo_fast fq_codel fq cake "prio bands 8 priomap 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7"; do
  fresh
  # shellcheck disable=SC2086 # words are options
  tc qdisc add dev bench0 root handle 1: $qdisc
  measure "${qdisc%% *}" 0
done
for rules in 2 200; do
  fresh
  tc qdisc add dev bench0 root handle 1: prio bands 8 priomap 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7
  flower 1: "$rules"
  measure prio+flower "$rules"
  fresh
  htb
  flower 1: "$rules"
  measure htb+flower "$rules"
  for engine in qdisc tc; do
    for scheduler in strict_priority deficit_round_robin; do
      if [ "$engine $scheduler" = "tc deficit_round_robin" ]; then continue; fi
      fresh
      ./policy.sh "$rules" 1000 "$scheduler" > /tmp/policy.json
      sluice up bench0 --policy /tmp/policy.json --engine "$engine" > /tmp/up.log 2>&1 || { cat /tmp/up.log >&2; exit 1; }
      measure "sluice-$engine-$scheduler" "$rules"
      sluice down bench0 > /dev/null
    done
  done
  fresh
  sed 's/{ "scheduler"/{ "flow_table": 0, "scheduler"/' <(./policy.sh "$rules") > /tmp/policy.json
  sluice up bench0 --policy /tmp/policy.json --engine qdisc > /tmp/up.log 2>&1 || { cat /tmp/up.log >&2; exit 1; }
  measure sluice-qdisc-strict_priority-without-flow-table "$rules"
  sluice down bench0 > /dev/null
  fresh
  ./policy.sh "$rules" > /tmp/policy.json
  sluice up bench0 --policy /tmp/policy.json --engine qdisc --rate 900mbit > /tmp/up.log 2>&1 || { cat /tmp/up.log >&2; exit 1; }
  measure sluice-qdisc-strict_priority-shaped-and-split "$rules"
  sluice down bench0 > /dev/null
done
