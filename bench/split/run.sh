#!/usr/bin/env bash
# [SECONDS [REPEATS]]. Runs inside the virtual machine: what splitting super-packets costs. One TCP flow (cubic) is forwarded by a
# router whose way out is shaped; the processor time of the whole machine (both hosts and the router) is set against
# the bytes that arrive, without and with the splitter.
#
# Prints: rate_mbit,split,repeat,goodput_mbit,busy_percent,instructions_per_frame
set -euo pipefail
SECONDS_EACH=${1:-4} REPEATS=${2:-3}

for ns in server router home; do ip netns add $ns; done
ip link add s0 netns server type veth peer name r0 netns router
ip link add r1 netns router type veth peer name h0 netns home
ip -n server addr add 10.98.1.2/24 dev s0
ip -n router addr add 10.98.1.1/24 dev r0
ip -n router addr add 10.98.2.1/24 dev r1
ip -n home addr add 10.98.2.2/24 dev h0
for pair in "server s0" "router r0" "router r1" "home h0"; do ip -n "${pair% *}" link set "${pair#* }" up; done
ip -n server route add default via 10.98.1.1
ip -n home route add default via 10.98.2.1
ip netns exec router sysctl -q net.ipv4.ip_forward=1

busy() { awk '/^cpu / { print $2 + $3 + $4 + $6 + $7 + $8, $5 }' /proc/stat; }

for rate in 20 100 300; do
  for split in off on; do
    printf '{ "scheduler": "strict_priority", "link": { "split_gso": "%s" }, "classes": [ { "id": 0, "priority": 0, "limit": 1000 } ] }\n' $split > /tmp/policy.json
    sluice --netns router up r1 --policy /tmp/policy.json --rate ${rate}mbit > /tmp/up.log 2>&1 || { cat /tmp/up.log >&2; exit 1; }
    for ((repeat = 1; repeat <= REPEATS; repeat++)); do
      ip netns exec home iperf3 --server --one-off --daemon --pidfile /tmp/iperf3.pid > /dev/null
      until ip netns exec home ss -Hltn | grep -q :5201; do :; done
      read -r busy0 idle0 < <(busy)
      ip netns exec server iperf3 -c 10.98.2.2 -C cubic -t "$SECONDS_EACH" -J > /tmp/result.json
      read -r busy1 idle1 < <(busy)
      jq -r '.end.sum_received | "\(.bits_per_second) \(.bytes)"' /tmp/result.json | awk -v b=$((busy1 - busy0)) -v i=$((idle1 - idle0)) \
        -v head="$rate,$split,$repeat" '{ printf "%s,%.1f,%.1f,%.0f\n", head, $1 / 1e6, 100 * b / (b + i), b * 1e7 / ($2 / 1448) }'
    done
    sluice --netns router down r1 > /dev/null
  done
done
