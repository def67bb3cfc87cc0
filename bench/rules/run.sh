#!/usr/bin/env bash
# [COUNT [REPEATS [RULES...]]]. Runs inside the virtual machine. Packets through the queues of a dummy device (UDP, 64 bytes; cost/measure.sh),
# COUNT for each of up to 8 rules spread over the list; the clock counts instructions. Who classifies wrongly ends the bench.
#
#   match      flows that rules match        new_flows  the same, each packet of another flow
#   miss       flows that none matches       load       loading the rules, not per packet: with waits, by the guest's clock
#
# Prints: contender,set,rules,packets,repeat,instructions (the device and pktgen included; `none` is what to subtract).
set -euo pipefail
# shellcheck source=bench/cost/measure.sh disable=SC1091 # beside this in the guest
. ./measure.sh
COUNT=${1:-2000} REPEATS=${2:-3}
sizes=("${@:3}")
[ ${#sizes[@]} -gt 0 ] || sizes=(1 16 256 4096)

rules() { awk -v set="$set" -v count="$size" -v as="$1" -v table="${2:-0}" -f rules.awk; }

packets() { # contender, match|miss|new_flows, packets for each flow [priority]
  local repeat sum flows kind class address port
  for ((repeat = 1; repeat <= REPEATS; repeat++)); do
    sum=0 flows=0
    while read -r kind class address port; do
      case $2-$kind in match-match | miss-miss | new_flows-match) ;; *) continue ;; esac
      if [ "$2" = new_flows ]; then
        pktgen "$3" "$port" "$port" "${4:-0}" "$address" $((repeat * 8000)) $((repeat * 8000 + $3 - 1))
      else
        pktgen "$3" "$port" "$port" "${4:-0}" "$address"
      fi
      sum=$((sum + $(elapsed))) flows=$((flows + 1))
      expected[class]=$((expected[class] + $3))
    done < /tmp/probes
    echo "$1,$set,$size,$2,$repeat,$(awk "BEGIN { printf \"%.1f\", $sum / $flows / $3 }")"
  done
}

load() { # contender, command: reads the rules
  local from to
  from=${EPOCHREALTIME/[.,]/}
  "${@:2}" > /tmp/load.log 2>&1 || { head -n 20 /tmp/load.log >&2; exit 1; }
  to=${EPOCHREALTIME/[.,]/}
  echo "$1,$set,$size,load,1,$(((to - from) * 1000))"
}

check() { # contender, what each class got: one line for each
  local class got classes=0
  while read -r class got; do
    classes=$((classes + 1))
    [ "${expected[class]}" = "$got" ] || { echo "$1, $set, $size rules: class $class got $got of ${expected[class]}" >&2; exit 1; }
  done
  [ $classes = 8 ] || { echo "$1: counters of $classes classes" >&2; exit 1; }
}

prio() {
  local n
  echo "qdisc add dev bench0 root handle 2: prio bands 8 priomap 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7"
  for n in 1 2 3 4 5 6 7 8; do echo "qdisc add dev bench0 parent 2:$n pfifo limit 1000"; done
}

begin() {
  fresh
  expected=(0 0 0 0 0 0 0 0)
}

modprobe -a cls_flower sch_prio nf_tables # not to be counted as loading rules
echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6 # sends on its own
set=- size=0
for ((n = 0; n < 8; n++)); do echo match 7 10.99.0.2 3081; done > /tmp/probes
begin
packets none match "$COUNT"
packets none new_flows "$COUNT"
prio | tc -batch -
packets prio match "$COUNT" $((0x20008)) # a class is in the packet already

for set in exact mixed; do
  for size in "${sizes[@]}"; do
    rules probes > /tmp/probes
    for kind in flower nft-list nft-map; do
      begin
      prio | tc -batch -
      rules $kind > /tmp/rules
      if [ $kind = flower ]; then load prio+$kind tc -batch /tmp/rules; else load prio+$kind nft -f /tmp/rules; fi
      few=$COUNT
      if [ "$size" -ge 256 ] && [ $kind$set != flowerexact ] && [ $kind != nft-map ]; then few=$((COUNT / 20)); fi
      packets prio+$kind match "$few"
      packets prio+$kind miss "$few"
      tc -s -j qdisc show dev bench0 | jq -r '.[] | select(.parent // "" | startswith("2:")) | "\((.parent[2:] | tonumber) - 1) \(.packets)"' > /tmp/classes
      check prio+$kind < /tmp/classes
      if [ $kind != flower ]; then nft delete table netdev bench; fi
    done
    for table in 0 1; do
      contender=sluice
      [ $table = 0 ] || contender=sluice+flow_table
      begin
      rules policy $table > /tmp/policy.json
      # Another single rule first: what is timed is a change.
      (if [ "$set" = exact ]; then set=mixed; else set=exact; fi; size=1; rules policy $table) > /tmp/first.json
      load "$contender+up" sluice up bench0 --policy /tmp/first.json --engine qdisc
      load "$contender" sluice apply bench0 /tmp/policy.json
      packets "$contender" match "$COUNT"
      packets "$contender" miss "$COUNT"
      [ $table = 0 ] || packets "$contender" new_flows "$COUNT"
      sluice status bench0 --json | jq -r '.directions[] | select(.direction == "egress") | .classes[] | "\(.id) \(.sent.pkts)"' > /tmp/classes
      check "$contender" < /tmp/classes
      sluice down bench0 > /dev/null
    done
  done
done
