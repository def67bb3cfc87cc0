#!/usr/bin/env bash
# [COUNT [REPEATS]]. Runs inside the virtual machine: what looking costs packets. pktgen sends COUNT packets through Sluice's qdisc on a
# dummy device: with nobody looking (alone); with events told (listen), where programs do more for each packet; and with everything open
# at once (look), each at its usual interval: events, top, flows, and serve with a page that asks every second and a scraper that does
# every five. The processor is the packets' own, so what readers take is in the packets' figure, spread over some 230,000 a second.
#
# Prints: state,flows,repeat,instructions_per_packet
set -euo pipefail
COUNT=${1:-1000000} REPEATS=${2:-3}
# shellcheck source=bench/cost/measure.sh disable=SC1091 # beside this in the guest
. ./measure.sh

readers=()
stop() {
  local reader
  for reader in "${readers[@]}"; do
    if [ -d "/proc/$reader" ]; then kill "$reader"; fi
  done
  wait
  readers=()
}

alive() { # all of them, after a while
  local reader
  sleep 2
  for reader in "${readers[@]}"; do kill -0 "$reader"; done
}

trap stop EXIT

# One process asks again and again, so often a minute.
ask() { # path, times a minute
  curl -sf -o /dev/null --rate "$2/m" "http://127.0.0.1:8080$1#[1-100000]" &
  readers+=($!)
}

listen() {
  sleep 2.5 # a reader of events that was killed gives way
  sluice events bench0 > /dev/null &
  readers+=($!)
  alive
}

look() {
  sleep 2.5
  sluice events bench0 > /dev/null &
  readers+=($!)
  sluice top --json > /dev/null &
  readers+=($!)
  sluice flows --json > /dev/null &
  readers+=($!)
  sluice serve > /tmp/serve.log 2>&1 &
  readers+=($!)
  until grep -q http /tmp/serve.log; do sleep 0.1; done
  ask /api/interfaces/bench0/rates 60
  ask /api/interfaces/bench0/flows 60
  ask /metrics 12
  alive
}

cat > /tmp/policy.json << 'JSON'
{ "scheduler": "strict_priority", "classes": [ { "id": 0, "name": "game", "priority": 0, "limit": 1300 }, { "id": 1, "name": "rest", "priority": 1, "queue": "flows" } ],
  "rules": [ { "priority": 0, "protocol": "udp", "dst_port_min": 3074, "class_id": 0 } ] }
JSON
ip link set lo up
sluice up bench0 --policy /tmp/policy.json > /tmp/up.log 2>&1 || { cat /tmp/up.log >&2; exit 1; }

measure() { # state flows
  local repeat
  pktgen 200000 3074 3081 0 10.99.0.2 10000 $((9999 + $2))
  for ((repeat = 1; repeat <= REPEATS; repeat++)); do
    pktgen "$COUNT" 3074 3081 0 10.99.0.2 10000 $((9999 + $2))
    echo "$1,$2,$repeat,$(awk "BEGIN { printf \"%.1f\", $(elapsed) / $COUNT }")"
  done
}

for flows in 1 1000; do
  measure alone $flows
  for readers_of in listen look; do
    $readers_of
    measure $readers_of $flows
    alive
    stop
  done
done
sluice down bench0 > /dev/null
