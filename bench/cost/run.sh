#!/usr/bin/env bash
# [COUNT [REPEATS [PATTERN]]]. Runs inside the virtual machine. pktgen sends COUNT packets (UDP, 64 bytes) through the qdisc of a
# dummy device, REPEATS times; the clock counts instructions. PATTERN: only contenders that match it, and `none`.
#
#   idle        one flow to port 3081, and nothing limits: each packet is classified, enqueued, dequeued, given to the device.
#   backlogged  ports 3074 onwards in turn, one for each class, and a shaper. It holds everything while the queues fill: that
#               is a packet's enqueue. Then it holds nothing, and a few more packets set off all that waits: that is the
#               dequeue, what those few cost by themselves taken off. Timers are not in it, for anybody.
#
# Prints: contender,state,classes,rules,repeat,instructions_per_packet (the device and pktgen included; `none` is what to
# subtract).
set -euo pipefail
COUNT=${1:-50000} REPEATS=${2:-5} ONLY=${3:-}
# shellcheck source=bench/cost/measure.sh disable=SC1091 # beside this in the guest
. ./measure.sh
SLOW=8kbit FAST=10gbit

wanted() { [ -z "$ONLY" ] || [ "$1" = none ] || [[ $1 =~ $ONLY ]]; }

idle() { # contender classes rules
  local repeat priority=0
  case $1 in drr | ets | hfsc | htb) priority=$((0x20008)) ;; esac # class 2:8
  for ((repeat = 1; repeat <= REPEATS; repeat++)); do
    pktgen "$COUNT" 3081 3081 $priority
    echo "$1,idle,$2,$3,$repeat,$(awk "BEGIN { printf \"%.1f\", $(elapsed) / $COUNT }")"
  done
}

backlogged() { # contender classes rules; `slow` and `fast` set the rate
  local repeat many=$(($2 > 8 ? 10000 : 7200)) last=$((3073 + $2)) few alone enqueue
  few=$((many / 10))
  for ((repeat = 1; repeat <= REPEATS; repeat++)); do
    fast
    pktgen $few 3074 $last 0
    pktgen $many 3074 $last 0
    alone=$(elapsed)
    slow
    pktgen $many 3074 $last 0
    enqueue=$(elapsed)
    fast
    pktgen $few 3074 $last 0
    echo "$1,backlogged,$2,$3,$repeat,$(awk "BEGIN { printf \"%.1f\", ($enqueue + $(elapsed) - $alone / 10) / $many }")"
  done
}

flower() { # rules: as many as ours have; one mask, so flower looks up one hash
  local n
  for ((n = 0; n < $2 - $1; n++)); do
    echo "filter add dev bench0 parent 2: protocol ip pref 1 flower ip_proto udp dst_port $((20000 + n)) classid 2:1"
  done
  for ((n = 0; n < $1; n++)); do
    printf 'filter add dev bench0 parent 2: protocol ip pref 1 flower ip_proto udp dst_port %d classid 2:%x\n' $((3074 + n)) $((n + 1))
  done
}

classes() { # kind count
  local n limit=$(($2 > 8 ? 200 : 1000))
  case $1 in
    htb) echo "class add dev bench0 parent 2: classid 2:ff htb rate ${RATE:-10gbit} quantum 1514" ;;
    hfsc) echo "class add dev bench0 parent 2: classid 2:ff hfsc ls m2 ${RATE:-10gbit} ul m2 ${RATE:-10gbit}" ;;
  esac
  for ((n = 1; n <= $2; n++)); do
    case $1 in
      drr) printf 'class add dev bench0 parent 2: classid 2:%x drr quantum 1514\n' $n ;;
      htb) printf 'class add dev bench0 parent 2:ff classid 2:%x htb rate %s ceil %s prio %d quantum 1514\n' $n "${RATE:+8kbit}${RATE:-1gbit}" "${RATE:-10gbit}" $((n > 8 ? 7 : n - 1)) | sed 's/8kbit[0-9a-z]*/8kbit/' ;;
      hfsc) printf 'class add dev bench0 parent 2:ff classid 2:%x hfsc ls m2 1mbit\n' $n ;;
    esac
    case $1 in drr | htb | hfsc | prio | ets) printf 'qdisc add dev bench0 parent 2:%x pfifo limit %d\n' $n $limit ;; esac
  done
}

# A qdisc of the kernel's: kind classes; below tbf if RATE is set and it does not shape by itself.
kernel() {
  local parent=root options=
  if [ -n "${RATE:-}" ]; then
    case $1 in
      htb | hfsc | cake) ;;
      *)
        echo "qdisc add dev bench0 root handle 1: tbf rate $RATE burst 1000000 limit 1000000"
        parent="parent 1:1"
        ;;
    esac
  fi
  case $1 in
    prio) options="bands $2 priomap 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7" ;;
    ets) options="bands $2 quanta $(printf '1514 %.0s' $(seq "$2"))" ;;
    htb) options="default 8" ;;
    hfsc) options="default 8" ;;
    cake) options="memlimit 32mb ${RATE:+bandwidth $RATE}" ;;
    fq) options="limit 10000 flow_limit 1000" ;;
  esac
  echo "qdisc add dev bench0 $parent handle 2: $1 $options"
  classes "$1" "$2"
}

rate_of_kernel() { # kind classes rate
  local n
  case $1 in
    cake) echo "qdisc change dev bench0 root cake bandwidth $3" ;;
    htb)
      echo "class change dev bench0 parent 2: classid 2:ff htb rate $3 quantum 1514"
      for ((n = 1; n <= $2; n++)); do
        printf 'class change dev bench0 parent 2:ff classid 2:%x htb rate 8kbit ceil %s prio %d quantum 1514\n' $n "$3" $((n > 8 ? 7 : n - 1))
      done
      ;;
    *) echo "qdisc change dev bench0 root handle 1: tbf rate $3 burst $([ "$3" = $SLOW ] && echo 2000 || echo 1000000) limit 1000000" ;;
  esac
}

sluice_up() { # classes rules scheduler [KEY=VALUE]...
  ./policy.sh "$@" > /tmp/policy.json
  sluice up bench0 --policy /tmp/policy.json --engine "${ENGINE:-qdisc}" ${RATE:+--rate "$RATE"} > /tmp/up.log 2>&1 || { cat /tmp/up.log >&2; exit 1; }
}

sluice_rate() {
  sed -i "s/\"rate\": \"[0-9a-z]*\"/\"rate\": \"$1\"/" /tmp/policy.json
  sluice apply bench0 /tmp/policy.json > /tmp/up.log 2>&1 || { cat /tmp/up.log >&2; exit 1; }
}

idle none 0 0

# Idle: alone, and with the classes chosen among 8 rules.
for kind in pfifo_fast fq_codel fq cake prio drr ets htb hfsc; do
  if wanted $kind; then
    fresh
    kernel $kind 8 | tc -batch -
    idle $kind 8 0
  fi
done
for kind in prio drr ets htb hfsc; do
  if wanted $kind+flower; then
    fresh
    { kernel $kind 8; flower 8 8; } | tc -batch -
    idle $kind+flower 8 8
  fi
done

ours=(strict_priority round_robin deficit_round_robin weighted_fair_queuing eevdf)
for rank in priority earliest_deadline shortest_packet least_attained_service start_time_fair slack; do ours+=("pifo/$rank"); done
words() { # scheduler[/rank]: as policy.sh has them
  echo "${1%%/*}"
  if [ "$1" != "${1#*/}" ]; then printf 'rank="%s"\n' "${1#*/}"; fi
}

for discipline in "${ours[@]}"; do
  if wanted "sluice-$discipline"; then
    fresh
    # shellcheck disable=SC2046 # words are arguments
    sluice_up 8 8 $(words "$discipline") flow_table=0
    idle "sluice-$discipline" 8 8
    sluice down bench0 > /dev/null
  fi
done
for rules in 8 200; do
  if wanted sluice-strict_priority+flow_table; then
    fresh
    sluice_up 8 $rules strict_priority
    idle sluice-strict_priority+flow_table 8 $rules
    sluice down bench0 > /dev/null
  fi
  if wanted sluice-tc-strict_priority+flow_table; then
    fresh
    ENGINE=tc sluice_up 8 $rules strict_priority
    idle sluice-tc-strict_priority+flow_table 8 $rules
    sluice down bench0 > /dev/null
  fi
done
if wanted sluice-strict_priority+flow_table+shaped+split; then
  fresh
  RATE=900mbit sluice_up 8 8 strict_priority
  idle sluice-strict_priority+flow_table+shaped+split 8 8
  sluice down bench0 > /dev/null
fi

# Backlogged, below a shaper.
for classes in ${CLASSES:-8 64}; do
  # Not htb and hfsc: what their old limit has put off stays put off.
  for kind in fq_codel fq cake prio+flower drr+flower ets+flower; do
    if ! wanted "$kind+shaper"; then continue; fi
    case $classes-$kind in 64-prio* | 64-ets*) continue ;; esac # at most 16 bands
    fresh
    {
      RATE=$FAST kernel "${kind%+flower}" "$classes"
      if [ $kind != "${kind%+flower}" ]; then flower "$classes" "$classes"; fi
    } | tc -batch -
    slow() { rate_of_kernel "${kind%+flower}" "$classes" $SLOW | tc -batch -; }
    fast() { rate_of_kernel "${kind%+flower}" "$classes" $FAST | tc -batch -; }
    rules=$classes
    [ $kind != "${kind%+flower}" ] || rules=0
    backlogged "$kind+shaper" "$classes" "$rules"
  done
  for discipline in "${ours[@]}"; do
    if wanted "sluice-$discipline+shaper"; then
      fresh
      # shellcheck disable=SC2046 # words are arguments
      sluice_up "$classes" "$classes" $(words "$discipline") flow_table=0 "link={\"rate\": \"$FAST\", \"split_gso\": \"off\"}"
      slow() { sluice_rate $SLOW; }
      fast() { sluice_rate $FAST; }
      backlogged "sluice-$discipline+shaper" "$classes" "$classes"
      sluice down bench0 > /dev/null
    fi
  done
done
