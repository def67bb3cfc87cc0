#!/usr/bin/env bash
# [CHANGES [FORWARDS]]. Changes one of a router's forwards CHANGES times (1,000) by `sluice apply`, while three clients send requests through three
# forwards, one of which is the one that changes. The policy has FORWARDS forwards (5). In network namespaces of its own. Needs root and python3.
# The program is target/release/sluice, or SLUICE_BIN.
#
# Prints: change,ms,requests,failed     change 0: `sluice up` before there are requests; requests that ended during each change, and failed ones
set -euo pipefail
changes=${1:-1000} forwards=${2:-5}
here=$(dirname "$(realpath "$0")")
sluice=${SLUICE_BIN:-${here%/bench/changes}/target/release/sluice}
client=slchanges-$$-client router=slchanges-$$-router server=slchanges-$$-server
made=()

end() {
  set +e # whatever fails is said, and the rest is cleaned up all the same
  if ip -n "$router" link show lan0 > /dev/null 2>&1 && "$sluice" --netns "$router" status lan0 > /dev/null 2>&1; then
    "$sluice" --netns "$router" down lan0 > /dev/null
  fi
  for ns in "${made[@]}"; do ip netns del "$ns"; done
}
trap end EXIT

for ns in "$client" "$router" "$server"; do
  ip netns add "$ns"
  made+=("$ns")
  ip -n "$ns" link set lo up
done
connect() { # namespace device address, of each end
  ip link add "$2" netns "$1" type veth peer name "$5" netns "$4"
  ip -n "$1" address add "$3/24" dev "$2"
  ip -n "$4" address add "$6/24" dev "$5"
  ip -n "$1" link set "$2" up
  ip -n "$4" link set "$5" up
}
connect "$client" c0 10.78.0.2 "$router" lan0 10.78.0.1
connect "$server" s0 10.79.0.2 "$router" wan0 10.79.0.1
ip -n "$client" route add default via 10.78.0.1
ip -n "$server" route add default via 10.79.0.1
ip netns exec "$router" sysctl -q -w net.ipv4.ip_forward=1
# Otherwise the kernel searches ever longer for a port once half of them wait for the end of TIME_WAIT, and takes the processors from the changes.
ip netns exec "$client" sysctl -q -w net.ipv4.tcp_tw_reuse=1
"$here/measure.py" "$sluice" "$client" "$router" "$server" "$changes" "$forwards"
