#!/usr/bin/env bash
# [COUNT [REPEATS]]. Measures the instructions that a packet costs in a class tree, classification included, in idle queues; runs inside the virtual
# machine. pktgen sends packets of 64 bytes (UDP) to one leaf class after the other, by a dummy device.
#
# All contenders have four leaf classes, each with a FIFO, three rules by port, and a link of 10 Gbit/s:
#   none     no qdisc; the others are counted above it
#   flat     Sluice, whose classes are all right below the link
#   nested   Sluice's class tree: link > { office (ceiling) > { floor > { calls, web }, backups }, guests }
#   htb      HTB with the same tree, classified by flower
#
# Prints: contender,class,repeat,instructions_per_packet
set -euo pipefail
COUNT=${1:-10000} REPEATS=${2:-3}
# shellcheck source=bench/cost/measure.sh disable=SC1091 # beside this in the guest
. ./measure.sh
echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6 # sends on its own

ports=(7000 7001 7002 9000) names=(calls web backups guests)
rules='"rules": [
  { "priority": 1, "dst_port": 7000, "class_id": 0 }, { "priority": 2, "dst_port": 7001, "class_id": 1 },
  { "priority": 3, "dst_port": 7002, "class_id": 2 } ]'
link='"link": { "rate": "10gbit", "split_gso": "off" }'

flat() {
  cat << EOF
{ "scheduler": "elastic_round_robin", $link, $rules, "classes": [
  { "id": 0, "name": "calls", "rate": "2gbit" }, { "id": 1, "name": "web" }, { "id": 2, "name": "backups" }, { "id": 3, "name": "guests" } ] }
EOF
}

nested() {
  cat << EOF
{ $link, $rules, "classes": [
  { "name": "office", "ceil": "8gbit" }, { "name": "floor", "parent": "office" },
  { "id": 0, "name": "calls", "parent": "floor", "rate": "2gbit" }, { "id": 1, "name": "web", "parent": "floor" },
  { "id": 2, "name": "backups", "parent": "office" }, { "id": 3, "name": "guests" } ] }
EOF
}

htb() {
  local place
  echo "qdisc add dev bench0 root handle 2: htb default 4"
  echo "class add dev bench0 parent 2: classid 2:10 htb rate 10gbit ceil 10gbit quantum 1514"
  echo "class add dev bench0 parent 2:10 classid 2:11 htb rate 2gbit ceil 8gbit quantum 1514"
  echo "class add dev bench0 parent 2:11 classid 2:12 htb rate 2gbit ceil 10gbit quantum 1514"
  echo "class add dev bench0 parent 2:12 classid 2:1 htb rate 2gbit ceil 10gbit quantum 1514"
  echo "class add dev bench0 parent 2:12 classid 2:2 htb rate 1mbit ceil 10gbit quantum 1514"
  echo "class add dev bench0 parent 2:11 classid 2:3 htb rate 1mbit ceil 10gbit quantum 1514"
  echo "class add dev bench0 parent 2:10 classid 2:4 htb rate 1mbit ceil 10gbit quantum 1514"
  for place in 0 1 2 3; do
    echo "qdisc add dev bench0 parent 2:$((place + 1)) pfifo limit 1000"
    [ $place = 3 ] ||
      echo "filter add dev bench0 parent 2: protocol ip prio 1 flower ip_proto udp dst_port ${ports[place]} classid 2:$((place + 1))"
  done
}

# Packets that each class has sent.
sent() { # contender
  case $1 in
    htb) tc -statistics class show dev bench0 | awk '/^class htb 2:[1-4] / { own = 1 } / Sent / { if (own) print $4; own = 0 }' ;;
    *) sluice status bench0 --json | jq '.directions[0].classes[].sent.pkts' ;;
  esac
}

for contender in none flat nested htb; do
  fresh
  case $contender in
    none) ;;
    htb) htb | tc -batch - ;;
    *)
      "$contender" > /tmp/policy.json
      sluice up bench0 --policy /tmp/policy.json --engine qdisc > /dev/null
      ;;
  esac
  for place in 0 1 2 3; do
    pktgen "$COUNT" "${ports[place]}" "${ports[place]}" 0 # makes the flow known
    for ((repeat = 1; repeat <= REPEATS; repeat++)); do
      pktgen "$COUNT" "${ports[place]}" "${ports[place]}" 0
      echo "$contender,${names[place]},$repeat,$(awk "BEGIN { printf \"%.1f\", $(elapsed) / $COUNT }")"
    done
  done
  [ $contender != none ] || continue
  mapfile -t counts < <(sent $contender)
  for place in 0 1 2 3; do
    [ "${counts[place]}" = $(((REPEATS + 1) * COUNT)) ] || { echo "$contender: ${names[place]} sent ${counts[place]} packets" >&2; exit 1; }
  done
  case $contender in flat | nested) sluice down bench0 > /dev/null ;; esac
done
