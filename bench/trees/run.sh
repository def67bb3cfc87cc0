#!/usr/bin/env bash
# [COUNT [REPEATS [SIZES [CONTENDERS]]]]. Measures the instructions that a packet of one of many subscribers costs, the memory that their queues
# take and the time to set them up; runs inside the virtual machine. pktgen sends COUNT packets (UDP, one flow for each subscriber, in turn) by a
# dummy device; each finds the queues empty.
#
# All have a link, sites of 32 subscribers and subscribers, with the same ceilings and guarantees. Contenders: `none`, no qdisc, to be subtracted
# from the others; HTB with fq_codel and with CAKE for each subscriber, found by one filter `flow` that maps addresses to classes; and Sluice's
# tree of classes, found by its table of addresses.
#
# Prints: contender,subscribers,repeat,instructions_per_packet,memory_kib,setup_ms
set -euo pipefail
COUNT=${1:-20000} REPEATS=${2:-3} SIZES=${3:-64 1000 10000} CONTENDERS=${4:-none htb+fq_codel sluice}
# shellcheck source=bench/cost/measure.sh disable=SC1091 # beside this in the guest
. ./measure.sh

memory_kib() { awk '/^MemAvailable/ { print $2 }' /proc/meminfo; }
now_ms() { awk "{ printf \"%d\", \$1 * 1000 }" /proc/uptime; }

htb() { # subscribers, qdisc of each
  local n sites=$((($1 + 31) / 32))
  {
    echo "qdisc add dev bench0 root handle 1: htb default 1"
    echo "class add dev bench0 parent 1: classid 1:1 htb rate 10gbit ceil 10gbit quantum 1514"
    for ((n = 0; n < sites; n++)); do
      printf 'class add dev bench0 parent 1:1 classid 1:%x htb rate 125mbit ceil 5gbit quantum 1514\n' $((2 + n))
    done
    for ((n = 0; n < $1; n++)); do
      printf 'class add dev bench0 parent 1:%x classid 1:%x htb rate 3906kbit ceil 1gbit quantum 1514\n' $((2 + n % sites)) $((4096 + n))
      printf 'qdisc add dev bench0 parent 1:%x %s\n' $((4096 + n)) "$2"
    done
    # 10.99.64.0 + n has the class 4096 + n.
    echo "filter add dev bench0 parent 1: protocol ip prio 1 handle 1 flow map key dst and 0x3fff baseclass 1:1000"
  } > /tmp/htb.tc
  tc -batch /tmp/htb.tc
}

begin() { # contender subscribers
  case $1 in
    none) ;;
    htb+fq_codel) htb "$2" fq_codel ;;
    htb+cake) htb "$2" "cake diffserv4" ;;
    sluice)
      coproc tree { tree "$2"; }
      read -r ready <&"${tree[0]}"
      [[ $ready == ready* ]] || { echo "$ready" >&2; exit 1; }
      tc qdisc add dev bench0 root sluicetree
      ;;
  esac
}

end() { # contender subscribers
  local sent
  [ "$1" = none ] || tc qdisc del dev bench0 root
  [ "$1" = sluice ] || return 0
  exec {tree[1]}>&-
  read -r sent <&"${tree[0]}"
  [ "$sent" = "$2 subscribers have sent" ] || { echo "$sent" >&2; exit 1; }
  wait "$tree_PID"
}

send() { # packets subscribers
  pktgen_prepare "$1" 3074 3074 0
  local last=$(($2 - 1))
  pktgen_set "dst_min 10.99.64.0" "dst_max 10.99.$((64 + last / 256)).$((last % 256))"
  pktgen_send "$1"
}

for size in $SIZES; do
  for contender in $CONTENDERS; do
    sync
    free=$(memory_kib) before=$(now_ms)
    begin "$contender" "$size"
    setup=$(($(now_ms) - before))
    send "$((size > 2000 ? size : 2000))" "$size"
    taken=$((free - $(memory_kib)))
    for ((repeat = 1; repeat <= REPEATS; repeat++)); do
      send "$COUNT" "$size"
      echo "$contender,$size,$repeat,$(awk "BEGIN { printf \"%.1f\", $(elapsed) / $COUNT }"),$taken,$setup"
    done
    end "$contender" "$size"
  done
done
