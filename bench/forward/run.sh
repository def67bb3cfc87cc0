#!/usr/bin/env bash
# [COUNT [REPEATS]]. Measures the instructions that a router spends on a forwarded packet; runs inside the virtual machine. pktgen hands
# COUNT packets (UDP, one flow) to the stack as arrivals of one dummy device; they leave by another, through the contender.
#
# Contenders: `generator`, where a filter drops packets on arrival, to be subtracted from the others; `none`, no qdisc; HTB with fq_codel;
# CAKE; and Sluice with the profile `default` on both engines. HTB, CAKE and Sluice shape to 10 Gbit/s, which the run does not reach.
#
# Prints: contender,bytes,repeat,instructions_per_packet
set -euo pipefail
COUNT=${1:-50000} REPEATS=${2:-3} RATE=10gbit
# shellcheck source=bench/cost/measure.sh disable=SC1091 # beside this in the guest
. ./measure.sh

router

arrive() { # packets bytes
  pktgen_prepare_arrivals "$1" "$2" 3074 3074 0
  pktgen_send "$1"
}

sluice_up() { # engine
  sluice up out0 --policy default --rate $RATE --engine "$1" > /tmp/up.log 2>&1 || { cat /tmp/up.log >&2; exit 1; }
}

for contender in generator none htb+fq_codel cake sluice sluice-tc; do
  case $contender in
    generator) drop_arrivals ;;
    htb+fq_codel)
      tc qdisc add dev out0 root handle 1: htb default 1
      tc class add dev out0 parent 1: classid 1:1 htb rate $RATE quantum 1514
      tc qdisc add dev out0 parent 1:1 fq_codel
      ;;
    cake) tc qdisc add dev out0 root cake bandwidth $RATE ;;
    sluice) sluice_up qdisc ;;
    sluice-tc) sluice_up tc ;;
  esac
  for bytes in 64 1514; do
    arrive $((COUNT / 10)) $bytes
    for ((repeat = 1; repeat <= REPEATS; repeat++)); do
      before=$(forwarded)
      arrive "$COUNT" $bytes
      check_forwarded "$contender" "$COUNT" "packets of $bytes bytes" "$before"
      echo "$contender,$bytes,$repeat,$(awk "BEGIN { printf \"%.1f\", $(elapsed) / $COUNT }")"
    done
  done
  case $contender in
    generator) tc qdisc del dev bench0 clsact ;;
    none) ;;
    sluice*) sluice down out0 > /dev/null ;;
    *) tc qdisc del dev out0 root ;;
  esac
done
