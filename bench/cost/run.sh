#!/usr/bin/env bash
# COUNT REPEATS CASE... Runs inside the virtual machine. pktgen sends COUNT packets (UDP, 64 bytes) through the qdisc of a dummy
# device, REPEATS times for each case; the clock counts instructions.
#
# A CASE is contender,state,classes,rules,flows:
#   contender  none; a qdisc of the kernel's, with +flower (rules), +fq_codel (below each class) and +shaper (tbf above it, or its own);
#              sluice-profile-NAME, with +shaped+split; or sluice-[tc-]DISCIPLINE[/RANK], with +flow_table, +by_flow (classes queue by flow, with CoDel), +ceilings (of classes), +shaped+split and +shaper
#   state      idle        each packet is classified, enqueued, dequeued, given to the device; to port 3073 + classes
#              backlogged  ports 3074 onwards in turn, one for each class, and a shaper. It holds everything while the queues
#                          fill: that is a packet's enqueue. Then it holds nothing, and a few more packets set off all that
#                          waits: that is the dequeue, what those few cost by themselves taken off. Timers are not in it,
#                          for anybody. That those few do find everybody waiting, and leave nobody, is checked. The kernel's caches of packets are emptied before each repeat, so that everybody's
#                          packets come out of fresh memory, some hundred instructions each.
#   flows      1; as many as classes, if they are backlogged; or more: source ports 10000 onwards in turn, a packet each
#
# Prints "ready", then: contender,state,classes,rules,flows,repeat,instructions_per_packet (the device and pktgen included; `none` with the
# same packets is what to subtract).
set -euo pipefail
[ $# -ge 3 ] || { echo "usage: run.sh COUNT REPEATS CASE..." >&2; exit 2; }
COUNT=$1 REPEATS=$2
shift 2
# shellcheck source=bench/cost/measure.sh disable=SC1091 # beside this in the guest
. ./measure.sh
SLOW=100bit FAST=10gbit WARM=200000 FIRST_PORT=10000

echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6 # sends on its own

# Packets of the case: how many, first and last port, priority.
send() {
  prepare "$@"
  pktgen_send "$1"
}

prepare() {
  if [ "$flows" -gt "$classes" ] && [ "$flows" -gt 1 ]; then
    pktgen_prepare "$1" "$2" "$3" "$4" 10.99.0.2 $FIRST_PORT $((FIRST_PORT + flows - 1))
  else
    pktgen_prepare "$1" "$2" "$3" "$4"
  fi
}

# Before anything counts: what happens once has happened, and every flow is known to whoever keeps flows.
warm() {
  if [ "$flows" -le "$classes" ] || [ "$flows" -eq 1 ]; then
    send $((COUNT / 10)) "$@"
    return
  fi
  send $WARM "$@" # a new flow enters the flow table at 20,000 a second
}

# Fails unless the flow table has the flows. Asked last: it takes seconds, in which flows would be forgotten.
known_flows() {
  local known
  known=$(bpftool -j map dump pinned /sys/fs/bpf/sluice/*/flows | grep -o '"formatted"' | wc -l)
  [ $((known * 100)) -ge $((flows * 99)) ] || { echo "$contender knows $known of $flows flows" >&2; exit 1; }
}

row() { # repeat, instructions per packet: an expression
  echo "$contender,$state,$classes,$rules,$flows,$1,$(awk "BEGIN { printf \"%.1f\", $2 }")"
}

idle() {
  local repeat port=$((3073 + (classes ? classes : 8))) priority=0
  case $contender in drr | ets | hfsc | htb) priority=$((0x20008)) ;; esac # class 2:8
  warm $port $port $priority
  for ((repeat = 1; repeat <= REPEATS; repeat++)); do
    send "$COUNT" $port $port $priority
    row $repeat "$(elapsed) / $COUNT"
  done
}

# As many packets as the queues of backlogged() are filled with.
waiting() {
  if [ "$classes" -gt 8 ] || [ "$flows" -gt "$classes" ]; then echo 10000; else echo 7200; fi
}

# The packets of backlogged(), and nobody queues them.
unqueued() {
  local repeat many last=$((3073 + classes))
  many=$(waiting)
  warm 3074 $last 0
  for ((repeat = 1; repeat <= REPEATS; repeat++)); do
    send "$many" 3074 $last 0
    row $repeat "$(elapsed) / $many"
  done
}

settle() {
  local cache
  for cache in skbuff_head_cache skbuff_small_head; do echo 1 > /sys/kernel/slab/$cache/shrink; done
}

# Packets that wait, as the outermost qdisc has it.
waits() { tc -s -j qdisc show dev bench0 | jq '[.[].qlen // 0] | max'; }

backlogged() { # `slow` and `fast` set the rate
  local repeat many few last=$((3073 + classes)) alone enqueue before after
  many=$(waiting)
  few=$((many / 10))
  fast
  warm 3074 $last 0
  for ((repeat = 1; repeat <= REPEATS; repeat++)); do
    fast
    settle
    send $few 3074 $last 0
    send "$many" 3074 $last 0
    alone=$(elapsed)
    slow
    send "$many" 3074 $last 0
    enqueue=$(elapsed)
    fast
    prepare $few 3074 $last 0
    before=$(waits)
    pktgen_send $few
    after=$(waits)
    if [ $((before * 100)) -lt $((many * 98)) ] || [ "$after" -gt $((many / 100)) ]; then
      echo "$contender: of $many packets $before waited for those that should set them off, and $after still did afterwards" >&2
      exit 1
    fi
    row $repeat "($enqueue + $(elapsed) - $alone / 10) / $many"
  done
}

flower() { # classes rules: as ours have them; one mask, so flower looks up one hash
  local n
  for ((n = 0; n < $2 - $1; n++)); do
    echo "filter add dev bench0 parent 2: protocol ip pref 1 flower ip_proto udp dst_port $((20000 + n)) classid 2:1"
  done
  for ((n = 0; n < $1; n++)); do
    printf 'filter add dev bench0 parent 2: protocol ip pref 1 flower ip_proto udp dst_port %d classid 2:%x\n' $((3074 + n)) $((n + 1))
  done
}

classes() { # kind count
  local n leaf limit=$(($2 > 8 ? 200 : 1300))
  case $contender in *+fq_codel*) leaf=fq_codel ;; *) leaf="pfifo limit $limit" ;; esac
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
    case $1 in drr | htb | hfsc | prio | ets) printf 'qdisc add dev bench0 parent 2:%x %s\n' $n "$leaf" ;; esac
  done
}

# A qdisc of the kernel's: kind classes; below tbf if RATE is set and it does not shape by itself.
kernel() {
  local parent=root options=
  if [ -n "${RATE:-}" ]; then
    case $1 in
      htb | hfsc) ;;
      *)
        echo "qdisc add dev bench0 root handle 1: tbf rate $RATE burst 1000000 limit 1000000"
        parent="parent 1:1"
        ;;
    esac
  fi
  case $1 in
    prio) options="bands $2 priomap 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7" ;;
    ets) options="bands $2 quanta $(printf '1514 %.0s' $(seq "$2"))" ;;
    htb | hfsc) options="default 8" ;;
    cake) options="unlimited memlimit 32mb" ;;
    fq) options="limit 20000 flow_limit 2000" ;;
  esac
  echo "qdisc add dev bench0 $parent handle 2: $1 $options"
  classes "$1" "$2"
}

rate_of_kernel() { # kind classes rate
  local n
  case $1 in
    htb)
      echo "class change dev bench0 parent 2: classid 2:ff htb rate $3 quantum 1514"
      for ((n = 1; n <= $2; n++)); do
        printf 'class change dev bench0 parent 2:ff classid 2:%x htb rate 8kbit ceil %s prio %d quantum 1514\n' $n "$3" $((n > 8 ? 7 : n - 1))
      done
      ;;
    *) echo "qdisc change dev bench0 root handle 1: tbf rate $3 burst $([ "$3" = $SLOW ] && echo 2000 || echo 1000000) limit 1000000" ;;
  esac
}

sluice_up() { # KEY=VALUE...
  case $contender in
    sluice-profile-*)
      local profile=${contender#sluice-profile-}
      sluice up bench0 --policy "${profile%%+*}" ${RATE:+--rate "$RATE"} > /tmp/up.log 2>&1 || { cat /tmp/up.log >&2; exit 1; }
      return
      ;;
  esac
  local discipline=${contender#sluice-}
  discipline=${discipline#tc-}
  discipline=${discipline%%+*}
  local words=("${discipline%%/*}" "$@") engine=qdisc # scheduler[/rank]: as policy.sh has them
  local keys='' # of each class
  case $discipline in */*) words+=("rank=\"${discipline#*/}\"") ;; esac
  case $contender in *flow_table*) ;; *) words+=(flow_table=0) ;; esac
  case $contender in sluice-tc-*) engine=tc ;; esac
  case $contender in
    *by_flow*shaper) keys='"queue": "flows", "target": "1s", "interval": "10s"' ;; # what is held has waited long
    *by_flow*) keys='"queue": "flows"' ;;
    *ceilings*) keys='"ceil": "1gbit"' ;;
  esac
  CLASS_KEYS=$keys ./policy.sh "$classes" "$rules" "${words[@]}" > /tmp/policy.json
  sluice up bench0 --policy /tmp/policy.json --engine $engine ${RATE:+--rate "$RATE"} > /tmp/up.log 2>&1 || { cat /tmp/up.log >&2; exit 1; }
}

sluice_rate() {
  sed -i "s/\"rate\": \"[0-9a-z]*\"/\"rate\": \"$1\"/" /tmp/policy.json
  sluice apply bench0 /tmp/policy.json > /tmp/up.log 2>&1 || { cat /tmp/up.log >&2; exit 1; }
}

# Puts the contender on a fresh device, and says how it is made slow and fast.
set_up() {
  local kind=${contender%%+*} shaper=''
  fresh
  case $contender in *+shaper) shaper=yes ;; esac
  case $contender in
    none) ;;
    sluice-*)
      case $contender in
        *+shaper)
          sluice_up "link={\"rate\": \"$FAST\", \"split_gso\": \"off\"}"
          slow() { sluice_rate $SLOW; }
          fast() { sluice_rate $FAST; }
          ;;
        *+shaped+split) RATE=900mbit sluice_up ;;
        *) sluice_up ;;
      esac
      ;;
    *)
      {
        RATE=${shaper:+$FAST} kernel "$kind" "$classes"
        case $contender in *+flower*) flower "$classes" "$rules" ;; esac
      } | tc -batch -
      # shellcheck disable=SC2317,SC2329 # called by backlogged
      slow() { rate_of_kernel "${contender%%+*}" "$classes" $SLOW | tc -batch -; }
      # shellcheck disable=SC2317,SC2329
      fast() { rate_of_kernel "${contender%%+*}" "$classes" $FAST | tc -batch -; }
      ;;
  esac
}

echo ready
for case in "$@"; do
  IFS=, read -r contender state classes rules flows <<< "$case"
  set_up
  case $contender-$state in
    *-idle) idle ;;
    none-backlogged) unqueued ;;
    *-backlogged) backlogged ;;
    *) echo "$case: no such state" >&2; exit 2 ;;
  esac
  case $contender in sluice*flow_table*) known_flows ;; esac
  case $contender in sluice-*) sluice down bench0 > /dev/null ;; esac
done
