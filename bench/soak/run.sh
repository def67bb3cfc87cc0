#!/usr/bin/env bash
# Lets everything that looks run for some minutes beside flows that come and go, and fails if one of them grows: `top --json`, `flows --json`,
# `events`, and `serve`, which is scraped and polled as a page polls it. In network namespaces of its own. Needs root, curl and python3.
#
# Usage: bench/soak/run.sh [MINUTES] [ENGINE]        15, auto; the program is target/release/sluice, or SLUICE_BIN
# Prints resident memory at the start, in the middle and at the end; all samples go to target/soak.csv.
set -euo pipefail

minutes=${1:-15} engine=${2:-auto}
root=$(cd "$(dirname "$0")/../.." && pwd)
sluice=${SLUICE_BIN:-$root/target/release/sluice}
samples=$root/target/soak.csv
# The most that a process may grow by once the page's five minutes are full, and be in all. An hour of history takes 0.8 MB.
most_growth_kb=4096 most_kb=65536
a=slsoak-$$-a b=slsoak-$$-b
work=$(mktemp -d)
pids=() managed=

end() {
  set +e # whatever fails is said, and the rest is cleaned up all the same
  for pid in "${pids[@]}"; do
    if [ -d "/proc/$pid" ]; then kill "$pid"; fi
  done
  wait
  if [ -n "$managed" ]; then "$sluice" --netns "$a" down a0 > /dev/null; fi
  for ns in "$a" "$b"; do
    if [ -e "/run/netns/$ns" ]; then ip netns del "$ns"; fi
  done
  rm -rf "$work"
}
trap end EXIT

ip netns add "$a"
ip netns add "$b"
ip link add a0 netns "$a" type veth peer name b0 netns "$b"
for side in "$a lo" "$a a0" "$b lo" "$b b0"; do ip -n "${side% *}" link set "${side#* }" up; done
ip -n "$a" address add 10.93.0.1/16 dev a0
ip -n "$b" address add 10.93.0.2/16 dev b0
# A table of flows that is soon full, so that what is kept of flows grows no more.
cat > "$work/policy.json" << 'END'
{ "scheduler": "strict_priority", "flow_table": 4096,
  "classes": [{ "id": 0, "name": "game", "priority": 0, "ceil": "2mbit", "police": true }, { "id": 1, "name": "call", "priority": 1 }, { "id": 2, "name": "bulk", "priority": 2 }],
  "rules": [{ "priority": 1, "protocol": "udp", "dst_port_min": 3074, "class_id": 0 }, { "priority": 2, "protocol": "udp", "dst_port_min": 5060, "class_id": 1 }] }
END
"$sluice" --netns "$a" up a0 --policy "$work/policy.json" --rate 20mbit --engine "$engine" > /dev/null
managed=yes

# Some thousand flows at a time: 50 sockets, each sends some packets to ports that change, then another takes its place. Every half
# minute as much as the link cannot carry, so that queues fill and events happen.
ip netns exec "$a" python3 - > /dev/null << 'END' &
import random, socket, time
sockets, begin = [], time.monotonic()
while True:
    if len(sockets) > 50:
        sockets.pop(0).close()
    sockets.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    flood = int(time.monotonic() - begin) % 30 < 3
    for _ in range(600 if flood else 20):
        port = random.choice((3074, 5060, 443, random.randrange(1024, 65535)))
        random.choice(sockets).sendto(bytes(1200 if flood else 200), (f"10.93.0.{random.randrange(2, 30)}", port))
    time.sleep(0.1)
END
pids+=($!)

"$sluice" --netns "$a" top --json > /dev/null &
top=$!
"$sluice" --netns "$a" flows --json > /dev/null &
flows=$!
"$sluice" --netns "$a" events --json > "$work/events" &
events=$!
"$sluice" --netns "$a" serve --listen 127.0.0.1:8080 > "$work/serve" &
serve=$!
pids+=("$top" "$flows" "$events" "$serve")

get() { ip netns exec "$a" curl -s -f -o /dev/null -m 10 --compressed "http://127.0.0.1:8080$1"; }
for ((attempt = 0; ; attempt++)); do
  # Flows are not known yet at the first question.
  if get /api/interfaces/a0/rates && get /api/interfaces/a0/flows; then break; fi
  if ((attempt == 100)); then echo 'soak: serve does not answer' >&2; exit 1; fi
  sleep 0.2
done

rss_kb() { sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$1/status"; }
echo 'seconds,top_kb,flows_kb,events_kb,serve_kb' > "$samples"
polls=0 failed=0
SECONDS=0
while ((SECONDS < minutes * 60)); do
  # As the page does each second, and when it is opened.
  for path in rates flows "series?points=300" policy; do get "/api/interfaces/a0/$path" || failed=$((failed + 1)); done
  get /metrics || failed=$((failed + 1))
  polls=$((polls + 1))
  if ((polls % 10 == 1)); then
    echo "$SECONDS,$(rss_kb "$top"),$(rss_kb "$flows"),$(rss_kb "$events"),$(rss_kb "$serve")" >> "$samples"
  fi
  sleep 1
done
echo "$SECONDS,$(rss_kb "$top"),$(rss_kb "$flows"),$(rss_kb "$events"),$(rss_kb "$serve")" >> "$samples"
echo "$polls polls of 5 requests, $failed of them failed; $(wc -l < "$work/events") events"

awk -F, -v growth="$most_growth_kb" -v most="$most_kb" '
  NR == 1 { for (n = 2; n <= NF; n++) name[n] = $n; next }
  { for (n = 2; n <= NF; n++) { value[NR - 1, n] = $n; if ($n == "") gone[n] = 1 } }
  END {
    rows = NR - 1; warm = int(rows * 0.4) + 1; middle = int(rows / 2) + 1
    for (n = 2; n in name; n++) {
      printf "%-10s start %d kB, warm %d, middle %d, end %d", name[n], value[1, n], value[warm, n], value[middle, n], value[rows, n]
      bad = gone[n] || value[rows, n] > value[warm, n] + growth || value[rows, n] > most
      print bad ? "  GROWS, or has ended" : ""
      failed += bad
    }
    exit failed > 0
  }' "$samples"
((failed == 0)) || { echo 'soak: requests have failed' >&2; exit 1; }
