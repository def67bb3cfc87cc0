#!/usr/bin/env bash
# [PACKETS [REPEATS [RATES]]]. Measures the instructions that a packet costs while queues are full and contend for one rate; runs inside the virtual
# machine, whose clock counts instructions. pktgen fills the queues of a dummy device with eight tx queues, which then send at the rate. A program
# that counts has the processor whenever nothing else wants it: the rest of the time is what the packets took, from pktgen to the device.
#
# Two classes of weights 1 and 3, by port, frames of 1,514 bytes, weighted fair queuing:
#   one   one scheduler for all tx queues
#   all   a scheduler for each, which share the rate
# Eight subscribers below the link, frames of 1,514 bytes to each in turn, one FIFO each:
#   tree  one tree of classes for all tx queues
#   trees a tree for each, which share the rate; a filter leads the packets of each subscriber to one queue
#
# What sending by pktgen and the device costs without a qdisc is in the figures. All packets must have left when a run ends, and with `all` and `trees` each
# queue but one must have sent some: the last one gets only what the kernel's hash of flows gives it.
#
# Prints: contender,rate_mbit,repeat,instructions_per_packet
set -euo pipefail
PACKETS=${1:-4000} REPEATS=${2:-3} RATES=${3:-100 1000 4000}
# shellcheck source=bench/cost/measure.sh disable=SC1091 # beside this in the guest
. ./measure.sh
echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6 # sends on its own

policy() { # contender, rate in Mbit/s
  case $1 in
    tree) subscribers one "$2" ;;
    trees) subscribers all "$2" ;;
    *) classes "$1" "$2" ;;
  esac
}

subscribers() { # queues, rate
  jq -n --arg queues "$1" --arg rate "$2mbit" --argjson limit "$PACKETS" '{
    link: { rate: $rate, queues: $queues, split_gso: "off" }, subscriber_side: ["bench0"],
    plans: { all: { queue: "fifo", limit: $limit } },
    subscribers: [range(8) | { name: "s\(.)", plan: "all", addresses: ["10.99.64.\(.)"] }] }'
}

classes() { # queues, rate
  cat << EOF
{ "scheduler": "weighted_fair_queuing", "link": { "rate": "$2mbit", "queues": "$1", "split_gso": "off" }, "flow_table": 0,
  "classes": [ { "id": 0, "weight": 1, "limit": $PACKETS }, { "id": 1, "weight": 3, "limit": $PACKETS } ],
  "rules": [ { "priority": 1, "protocol": "udp", "dst_port_min": 7000, "dst_port_max": 7000, "class_id": 0 } ], "default_class": 1 }
EOF
}

departed() { cat /sys/class/net/bench0/statistics/tx_packets; }
now_ns() { local now=$EPOCHREALTIME; echo "${now/./}000"; }

# Counts for ever, and says how far it is when it is asked.
counter() {
  local n=0
  trap 'echo $n' USR1
  while :; do n=$((n + 1)); done
}

# Sets `now`, the time in ns, and `counted`, how far the counter is.
look() {
  kill -USR1 "$spinner"
  read -r counted <&"${spin[0]}"
  now=$(now_ns)
}

# Runs a command, and sets `window`, the time that it took, ns, and `progress`, how far the counter came meanwhile.
beside_counter() { # command...
  local from before
  look
  from=$now before=$counted
  "$@"
  look
  window=$((now - from)) progress=$((counted - before))
}

fill_and_drain() { # ms to wait
  pktgen_send "$PACKETS"
  sleep "$(awk "BEGIN { print $1 / 1000 }")"
}

prepare() { # contender
  local to=10.99.0.2
  case $1 in tree*) to=10.99.64.0 ;; esac
  pktgen_prepare "$PACKETS" 7000 7001 0 "$to" 10000 10063
  pktgen_set "pkt_size 1510" "queue_map_min 0" "queue_map_max 7"
  case $1 in tree*) pktgen_set "dst_min $to" "dst_max 10.99.64.7" ;; esac
}

fresh_with_queues() {
  if ip link show bench0 > /dev/null 2>&1; then ip link del bench0; fi
  ip link add bench0 numtxqueues 8 type dummy
  ip link set bench0 up
}

coproc spin { exec nice -n 19 bash -c "$(declare -f counter); counter"; }
spinner=$!
trap 'kill "$spinner"' EXIT
sleep 1
beside_counter sleep 2
speed=$((progress * 1000000 / (window / 1000))) # a second

for rate in $RATES; do
  # A run lasts as long as the packets take at the rate, and 50 ms.
  wait_ms=$((PACKETS * 1514 * 8 / rate / 1000 + 50))
  for queues in one all tree trees; do
    fresh_with_queues
    policy $queues "$rate" > /tmp/policy.json
    sluice up bench0 --policy /tmp/policy.json --engine qdisc > /tmp/up.log 2>&1 || { cat /tmp/up.log >&2; exit 1; }
    prepare $queues
    fill_and_drain "$wait_ms" # every flow has been there
    for ((repeat = 1; repeat <= REPEATS; repeat++)); do
      before=$(departed)
      beside_counter fill_and_drain "$wait_ms"
      [ $(($(departed) - before)) = "$PACKETS" ] || { echo "$queues: $(($(departed) - before)) of $PACKETS packets left" >&2; exit 1; }
      awk -v OFS=, -v q=$queues -v r="$rate" -v n="$repeat" -v w="$window" -v c="$progress" -v s="$speed" -v p="$PACKETS" \
        'BEGIN { print q, r, n, sprintf("%.1f", (w - c / s * 1e9) / p) }'
    done
    if [ $queues = all ] || [ $queues = trees ]; then
      idle=$(tc -s -j qdisc show dev bench0 | jq '[.[] | select((.kind | startswith("sluice")) and .packets == 0)] | length')
      [ "$idle" -le 1 ] || { echo "$idle queues have sent nothing" >&2; exit 1; }
    fi
    sluice down bench0 > /dev/null
  done
done
