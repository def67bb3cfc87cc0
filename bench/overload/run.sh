#!/usr/bin/env bash
# [MILLISECONDS [REPEATS [LIMITS [CONTENDERS]]]]. Measures the instructions that an offered packet costs where far more arrives than a limit lets through; runs
# inside the virtual machine. Live XDP frames of 1,514 bytes (UDP, 16 flows) come through a veth for MILLISECONDS, as fast as they are made.
#
# Contenders: `generator`, where an XDP program drops them, to be subtracted from the others; HTB with a FIFO, and CAKE, behind an ifb; a tc
# police action; nft limit in netdev's ingress hook; and Sluice: `xdp` drops early in XDP, `tc` at tc, both in one class with a FIFO; `flows` in
# XDP with the profile `default`; and `htb` is engine tc with XDP.
#
# Prints: contender,limit_mbit,repeat,instructions_per_packet
set -euo pipefail
LENGTH=${1:-300} REPEATS=${2:-3} LIMITS=${3:-1 10 35 100 1000} PACKETS=100
CONTENDERS=${4:-generator ifb+htb ifb+cake police nft-limit sluice-tc sluice-xdp sluice-flows sluice-htb}
ip link add v0 type veth peer name v1
ip link set v0 address 02:00:00:00:00:02
ethtool -K v0 gro on
ip addr add 10.99.1.2/24 dev v0
ip link set v0 up
ip link set v1 up
modprobe ifb numifbs=0
cat > /tmp/fifo.json <<'P'
{ "scheduler": "eevdf", "classes": [{ "id": 0, "queue": "fifo", "limit": 100 }], "default_class": 0 }
P
sed s/eevdf/deficit_round_robin/ /tmp/fifo.json > /tmp/fifo-tc.json

sluice_up() { # limit policy option...
  sluice up v0 --policy "$2" --ingress-rate "$1mbit" "${@:3}" > /tmp/up.log 2>&1 || { cat /tmp/up.log >&2; exit 1; }
}

behind_ifb() {
  ip link add ifb0 type ifb
  ip link set ifb0 up
  tc qdisc add dev v0 clsact
  tc filter add dev v0 ingress matchall action mirred egress redirect dev ifb0
}

begin() { # contender limit
  case $1 in
    generator)
      sluice lab observe v0 --way drop > /dev/null 2> /tmp/observe.log &
      observer=$!
      until grep -q Ctrl-C /tmp/observe.log; do sleep 0.01; done
      ;;
    ifb+htb)
      behind_ifb
      tc qdisc add dev ifb0 root handle 1: htb default 1
      tc class add dev ifb0 parent 1: classid 1:1 htb rate "$2mbit" quantum 1514
      tc qdisc add dev ifb0 parent 1:1 pfifo limit $PACKETS
      ;;
    ifb+cake)
      behind_ifb
      tc qdisc add dev ifb0 root cake bandwidth "$2mbit" ingress
      ;;
    police)
      tc qdisc add dev v0 clsact
      tc filter add dev v0 ingress matchall action police rate "$2mbit" burst 32k conform-exceed drop/ok
      ;;
    nft-limit)
      nft add table netdev t
      nft add chain netdev t c '{ type filter hook ingress device v0 priority 0; }'
      nft add rule netdev t c limit rate over $(($2 * 125)) kbytes/second burst 32 kbytes drop
      ;;
    sluice-xdp) sluice_up "$2" /tmp/fifo.json --classifier xdp ;;
    sluice-tc) sluice_up "$2" /tmp/fifo.json --classifier tc ;;
    sluice-flows) sluice_up "$2" default --classifier xdp ;;
    sluice-htb) sluice_up "$2" /tmp/fifo-tc.json --classifier xdp --engine tc ;;
  esac
}

end() { # contender
  case $1 in
    generator)
      kill -INT "$observer"
      wait "$observer"
      ;;
    ifb+*)
      tc qdisc del dev v0 clsact
      ip link del ifb0
      ;;
    police) tc qdisc del dev v0 clsact ;;
    nft-limit) nft delete table netdev t ;;
    sluice-*) sluice down v0 > /dev/null ;;
  esac
}

for contender in $CONTENDERS; do
  for limit in $LIMITS; do
    begin "$contender" "$limit"
    sluice lab frames v1 --bytes 1514 --flows 16 --duration 100ms > /dev/null
    for ((repeat = 1; repeat <= REPEATS; repeat++)); do
      cost=$(sluice lab frames v1 --bytes 1514 --flows 16 --duration "${LENGTH}ms" | jq '.seconds * 1e9 / .frames * 10 | round / 10')
      echo "$contender,$limit,$repeat,$cost"
    done
    end "$contender"
  done
done
