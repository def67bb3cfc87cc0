#!/usr/bin/env bash
# Inside the virtual machine: what the verifier makes of the core with each discipline and with all, and the memory of an interface
# with 64 classes. CSV.
set -euo pipefail
verifier
modprobe dummy
ip link add bench0 type dummy
ip link set bench0 up
echo '{ "scheduler": "strict_priority", "classes": [' > /tmp/policy.json
for ((n = 0; n < 64; n++)); do
  printf '%s{ "id": %d, "priority": %d, "limit": 150 }' "$([ $n = 0 ] || echo ,)" $n $n >> /tmp/policy.json
done
echo '] }' >> /tmp/policy.json
sluice up bench0 --policy /tmp/policy.json --engine qdisc > /tmp/up.log 2>&1 || { cat /tmp/up.log >&2; exit 1; }
for pin in /sys/fs/bpf/sluice/bench0/*; do
  if bpftool map show pinned "$pin" > /tmp/map 2> /dev/null; then # not a program or a link
    echo "map ${pin##*/},bytes,$(sed -n 's/.*memlock \([0-9]*\)B.*/\1/p' /tmp/map)"
  fi
done
sluice down bench0 > /dev/null
