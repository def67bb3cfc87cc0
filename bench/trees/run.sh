#!/usr/bin/env bash
# [COUNT [REPEATS [SIZES [CONTENDERS]]]]. Measures the instructions that a packet of one of many subscribers costs, the memory that their queues
# take and the time to set them up; runs inside the virtual machine. pktgen sends packets of 64 bytes (UDP) to the subscribers in turn, by a dummy
# device.
#
# All contenders have a link, sites of 32 subscribers and subscribers, with the same ceilings and guarantees:
#   none          no qdisc; the others are counted above it
#   tbf           tbf and a FIFO: what HTB's backlogged figures contain of the tbf that holds HTB, and of fresh memory
#   htb+fq_codel  HTB, and fq_codel for each subscriber, found by one filter `flow` that maps addresses to classes
#   htb+cake      the same with CAKE (diffserv4), as LibreQoS builds it; left out where the machine has no 1.2 MB for each subscriber
#   sluice        the tree of classes, found by its table of addresses
# Cases:
#   idle          COUNT packets of one flow for each subscriber; each finds the queues empty
#   backlogged    a packet of each of four flows for each subscriber. The link is held while they are queued: that is a packet's enqueue. Then it
#                 is released, and a few more packets set off all that wait: that is the dequeue, less what those few cost in empty queues.
#                 Sluice's link is held by its own bucket. HTB has no such switch, since its classes with guarantees never ask the link:
#                 a tbf above it is slowed down. All packets come out of fresh memory, as in bench/cost. The device must have sent none while
#                 the link is held and all of them afterwards, or the run fails.
#
# Prints: contender,subscribers,case,repeat,instructions_per_packet,memory_kib,setup_ms
set -euo pipefail
COUNT=${1:-20000} REPEATS=${2:-3} SIZES=${3:-64 1000 10000} CONTENDERS=${4:-none tbf htb+fq_codel htb+cake sluice}
FLOWS=4 FIRST_PORT=10000
# shellcheck source=bench/cost/measure.sh disable=SC1091 # beside this in the guest
. ./measure.sh
echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6 # sends on its own

memory_kib() { awk '/^MemAvailable/ { print $2 }' /proc/meminfo; }
now_ms() { awk "{ printf \"%d\", \$1 * 1000 }" /proc/uptime; }
departed() { echo "$(< /sys/class/net/bench0/statistics/tx_packets)"; }

htb() { # subscribers, qdisc of each, where
  local n sites=$((($1 + 31) / 32))
  {
    echo "qdisc add dev bench0 $3 handle 2: htb default 1"
    echo "class add dev bench0 parent 2: classid 2:1 htb rate 10gbit ceil 10gbit quantum 1514"
    for ((n = 0; n < sites; n++)); do
      printf 'class add dev bench0 parent 2:1 classid 2:%x htb rate 125mbit ceil 5gbit quantum 1514\n' $((2 + n))
    done
    for ((n = 0; n < $1; n++)); do
      printf 'class add dev bench0 parent 2:%x classid 2:%x htb rate 3906kbit ceil 1gbit quantum 1514\n' $((2 + n % sites)) $((4096 + n))
      printf 'qdisc add dev bench0 parent 2:%x %s\n' $((4096 + n)) "$2"
    done
    # 10.99.64.0 + n has the class 4096 + n.
    echo "filter add dev bench0 parent 2: protocol ip prio 1 handle 1 flow map key dst and 0x3fff baseclass 2:1000"
  } > /tmp/htb.tc
  tc -batch /tmp/htb.tc
}

tbf() { # add or change, rate, burst
  tc qdisc "$1" dev bench0 root handle 1: tbf rate "$2" burst "$3" limit 100000000
}

ask_tree() { # hold or release
  local answer
  echo "$1" >&"$to_tree"
  read -r answer <&"${tree[0]}"
  [ "$answer" = ok ] || { echo "tree: $1: $answer" >&2; exit 1; }
}

begin() { # contender subscribers case
  local where=root
  case $1-$3 in
    tbf-* | htb*-backlogged)
      tbf add 10gbit 1000000
      where='parent 1:1'
      ;;
  esac
  case $1 in
    none) ;;
    tbf) tc qdisc add dev bench0 parent 1:1 handle 2: pfifo limit 100000 ;;
    htb+fq_codel) htb "$2" fq_codel "$where" ;;
    htb+cake) htb "$2" "cake diffserv4" "$where" ;;
    sluice)
      coproc tree { tree "$2"; }
      tree_pid=$! to_tree=${tree[1]}
      read -r ready <&"${tree[0]}"
      [[ $ready == ready* ]] || { echo "$ready" >&2; exit 1; }
      tc qdisc add dev bench0 root sluicetree
      ;;
    *) echo "there is no contender $1" >&2; exit 2 ;;
  esac
}

end() { # contender subscribers
  local sent
  [ "$1" = none ] || tc qdisc del dev bench0 root
  [ "$1" = sluice ] || return 0
  exec {to_tree}>&-
  read -r sent <&"${tree[0]}"
  [ "$sent" = "$2 subscribers have sent" ] || { echo "$sent" >&2; exit 1; }
  wait "$tree_pid"
}

hold() { # contender subscribers
  case $1 in
    none) ;;
    sluice) ask_tree hold ;;
    *)
      tbf change 100bit 100
      send 1 "$2" # uses the tokens that a new rate comes with
      ;;
  esac
}

release() { # contender
  case $1 in
    none) ;;
    sluice) ask_tree release ;;
    *) tbf change 10gbit 1000000 ;;
  esac
}

send() { # packets subscribers [source port]
  local last=$(($2 - 1)) port=${3:-$FIRST_PORT}
  pktgen_prepare "$1" 3074 3074 0 10.99.64.0 "$port" "$port"
  pktgen_set "dst_min 10.99.64.0" "dst_max 10.99.$((64 + last / 256)).$((last % 256))"
  pktgen_send "$1"
}

# Each subscriber gets a packet of each flow. The time that this took, ns, is added to `taken`.
fill() { # subscribers
  local flow
  for ((flow = 0; flow < FLOWS; flow++)); do
    send "$1" "$1" $((FIRST_PORT + flow))
    taken=$((taken + $(elapsed)))
  done
}

idle() { # contender subscribers
  local repeat
  for ((repeat = 1; repeat <= REPEATS; repeat++)); do
    send "$COUNT" "$2"
    row "$repeat" "$(elapsed) / $COUNT"
  done
}

fresh_memory() {
  local cache
  for cache in skbuff_head_cache skbuff_small_head; do echo 1 > /sys/kernel/slab/$cache/shrink; done
}

backlogged() { # contender subscribers
  local repeat round many=$(($2 * FLOWS)) few rounds alone taken sum before held left
  few=$((many / 32 > 16 ? many / 32 : 16)) # each sets off 64 packets at least
  rounds=$((1000 / many + 1))
  taken=0
  fill "$2" # every flow has been there
  for ((repeat = 1; repeat <= REPEATS; repeat++)); do
    sum=0
    for ((round = 0; round < rounds; round++)); do
      fresh_memory
      send $few "$2"
      alone=$(elapsed)
      hold "$1" "$2"
      before=$(departed)
      taken=0
      fill "$2"
      held=$((before + many - $(departed)))
      release "$1"
      send $few "$2"
      left=$(($(departed) - before))
      if [ "$1" != none ] && [ $held != $many ] || [ $left != $((many + few)) ]; then
        echo "$1: $held of $many packets waited, and $left of $((many + few)) left afterwards" >&2
        exit 1
      fi
      sum=$((sum + taken + $(elapsed) - alone))
    done
    row "$repeat" "$sum / ($many * $rounds)"
  done
}

row() { # repeat, instructions per packet: an expression
  echo "$contender,$size,$case,$1,$(awk "BEGIN { printf \"%.1f\", $2 }"),$memory,$setup"
}

for size in $SIZES; do
  for contender in $CONTENDERS; do
    if [ "$contender" = htb+cake ] && [ $((size * 1200)) -gt "$(memory_kib)" ]; then
      echo "htb+cake is left out for $size subscribers: that needs $((size * 12 / 10000)) GB" >&2
      continue
    fi
    for case in idle backlogged; do
      sleep 1 # the memory of the one before is free by then
      free=$(memory_kib) before=$(now_ms)
      begin "$contender" "$size" "$case"
      setup=$(($(now_ms) - before))
      send "$((size > 2000 ? size : 2000))" "$size"
      memory=$((free - $(memory_kib)))
      "$case" "$contender" "$size"
      end "$contender" "$size"
    done
  done
done
