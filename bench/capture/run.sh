#!/usr/bin/env bash
# [SECONDS [REPEATS [DIRECTORY]]]. Measures `sluice capture` by copy and with --steal, in network namespaces of its own. Files go to a tmpfs and
# to DIRECTORY (here). Needs root, two processors and python3. The program is target/release/sluice, or SLUICE_BIN.
#
# Prints the lines of measure.py.
set -euo pipefail
length_s=${1:-2} repeats=${2:-3} directory=${3:-.}
here=$(dirname "$(realpath "$0")")
sluice=${SLUICE_BIN:-${here%/bench/capture}/target/release/sluice}
sender=slcapture-$$-sender receiver=slcapture-$$-receiver
made=()

end() {
  for ns in "${made[@]}"; do ip netns del "$ns"; done
}
trap end EXIT

for ns in "$sender" "$receiver"; do
  ip netns add "$ns"
  made+=("$ns")
done
ip link add a0 netns "$sender" address 02:00:00:00:77:01 type veth peer name b0 netns "$receiver" address 02:00:00:00:77:02
ip -n "$sender" link set a0 up
ip -n "$receiver" link set b0 up
# A veth takes frames of XDP only where its other end has an XDP program, or merges packets.
ip netns exec "$receiver" ethtool -K b0 gro on
"$here/measure.py" "$sluice" "$sender" "$receiver" "$directory" "$length_s" "$repeats"
