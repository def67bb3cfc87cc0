#!/usr/bin/env bash
# [SECONDS [REPEATS]]. Measures how many packets a second a wire passes, beside a bare AF_XDP forwarder, in network namespaces of its own. Needs root and
# two processors: one sends, and takes the packets up to the socket; the other has the process, and all that it sends. The programs are in
# target/release, or SLUICE_BIN and BARE_BIN.
#
#   sender -- h0 = w0 (bare forwarder, or sluice wire) w1 = h1, where packets are counted and dropped
#
# Contenders: `bare`, which schedules nothing; `fifo`, a wire with one class; `gaming`, a wire with that profile, whose classes queue by flow with CoDel.
# All are offered more than they pass, in frames of 64 and 1,514 bytes, and no wire is ever at its rate of 100 Gbit/s.
#
# Prints: contender,frame_bytes,repeat,offered_kpps,passed_kpps
set -euo pipefail
seconds=${1:-2} repeats=${2:-5}
here=$(dirname "$(realpath "$0")")
sluice=${SLUICE_BIN:-${here%/bench/wire}/target/release/sluice}
bare=${BARE_BIN:-${here%/bench/wire}/target/release/sluice-bare}
[ "$(nproc)" -ge 2 ] || { echo "bench wire: two processors are needed, one for the sender" >&2; exit 1; }
# A wire's process gives itself the highest priority: all have the same.
renice --priority -20 $$ > /dev/null
prefix=slwire-$$
left=$prefix-left wire=$prefix-wire right=$prefix-right
made=() process='' scratch=$(mktemp -d)

end() {
  stop
  for ns in "${made[@]}"; do ip netns del "$ns"; done
  rm -rf "$scratch"
}

stop() {
  [ -n "$process" ] || return 0
  exec 7>&- # the bare forwarder ends with its input
  kill "$process" 2> /dev/null && :
  wait "$process" && :
  process=
}
trap end EXIT

for ns in "$left" "$wire" "$right"; do
  ip netns add "$ns"
  made+=("$ns")
  ip netns exec "$ns" sysctl -q -w net.ipv6.conf.all.disable_ipv6=1
done
ip link add h0 netns "$left" type veth peer name w0 netns "$wire"
ip link add h1 netns "$right" type veth peer name w1 netns "$wire"
for end in "$left h0" "$right h1" "$wire w0" "$wire w1"; do
  read -r ns device <<< "$end"
  ip -n "$ns" link set "$device" up
  ip netns exec "$ns" ethtool -K "$device" tx off > /dev/null
done
# A veth takes frames of XDP only while its own end polls.
for end in "$left h0" "$right h1"; do
  read -r ns device <<< "$end"
  ip netns exec "$ns" ethtool -K "$device" gro on > /dev/null
done
echo '{ "scheduler": "round_robin", "classes": [{ "id": 0, "queue": "fifo" }], "default_class": 0 }' > "$scratch/fifo.json"

begin() { # contender
  mkfifo "$scratch/input" 2> /dev/null || rm -f "$scratch/said"
  if [ "$1" = bare ]; then
    taskset --cpu-list 1 ip netns exec "$wire" "$bare" forward w0 w1 < "$scratch/input" > "$scratch/said" &
  else
    local policy=$1
    [ "$1" != fifo ] || policy=$scratch/fifo.json
    taskset --cpu-list 1 ip netns exec "$wire" "$sluice" wire w0 w1 --policy "$policy" --rate 100gbit/100gbit < "$scratch/input" > "$scratch/said" &
  fi
  process=$!
  exec 7> "$scratch/input"
  for _ in $(seq 100); do
    [ ! -s "$scratch/said" ] || return 0
    sleep 0.1
  done
  echo "bench wire: $1 does not begin" >&2
  exit 1
}

received() { ip netns exec "$right" cat /sys/class/net/h1/statistics/rx_packets; }

for ((repeat = 1; repeat <= repeats; repeat++)); do
  for contender in bare fifo gaming; do
    begin "$contender"
    sleep 0.3
    for bytes in 64 1514; do
      before=$(received)
      sent=$(taskset --cpu-list 0 ip netns exec "$left" "$bare" send h0 "$seconds" "$bytes")
      sleep 0.1
      passed=$(($(received) - before))
      awk -v OFS=, -v c="$contender" -v b="$bytes" -v n="$repeat" -v o="$sent" -v p="$passed" -v s="$seconds" \
        'BEGIN { print c, b, n, sprintf("%.1f", o / s / 1e3), sprintf("%.1f", p / s / 1e3) }'
    done
    stop
  done
done
