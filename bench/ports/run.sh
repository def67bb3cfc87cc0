#!/usr/bin/env bash
# [COUNT [REPEATS]]. Measures the instructions that a router spends on a packet whose port it forwards; runs inside the virtual machine. pktgen
# hands COUNT packets (UDP) to the stack as arrivals of one dummy device; they leave by another, to the target.
#
# Cases: `open`, packets of one connection; `new`, each packet begins a connection; `ipv4` and `ipv6`, packets of one connection of that family,
# with checksums, which translation between families needs.
# Contenders: `generator`, where a filter drops packets on arrival, to be subtracted from the others; `routed`, packets to the target itself;
# nft with DNAT, with one port and with a map of 10,000; nft with a flowtable; Sluice with one forward and with 10,000, without queues as nft has
# none, and with a queue of its own where the packets leave. In the last two cases, forwards masquerade, and `translated` leads to the other family.
#
# Prints: contender,case,bytes,repeat,instructions_per_packet
set -euo pipefail
COUNT=${1:-50000} REPEATS=${2:-3} NEW=12000 MANY=10000
# shellcheck source=bench/cost/measure.sh disable=SC1091 # beside this in the guest
. ./measure.sh

router
# Where answers would go: nothing answers, but connection tracking asks the route.
ip neigh add 10.98.0.2 lladdr 02:00:00:00:00:03 dev bench0 nud permanent

arrive() { # packets bytes destination port first-source-port last-source-port
  pktgen_prepare_arrivals "$1" "$2" "$4" "$4" 0 "$3" "$5" "$6"
  # Whether packets were passed on is seen where they leave: a flowtable takes them from the stack, which pktgen counts as an error.
  echo start > /proc/net/pktgen/pgctrl
}

nft_rules() { # prerouting rule, and optionally "flowtable"
  modprobe nf_conntrack
  echo 262144 > /proc/sys/net/netfilter/nf_conntrack_max
  {
    echo "table ip forwards {"
    echo "  map ports { type inet_service : ipv4_addr . inet_service; elements = {"
    for ((n = 0; n < MANY; n++)); do echo "    $((20001 + n)) : 10.99.0.2 . $((20001 + n)),"; done
    echo "  } }"
    [ "${2:-}" != flowtable ] || echo "  flowtable fast { hook ingress priority filter; devices = { bench0, out0 }; }"
    echo "  chain prerouting { type nat hook prerouting priority dstnat; $1; }"
    [ "${2:-}" != flowtable ] || echo "  chain forward { type filter hook forward priority filter; meta l4proto udp flow add @fast; }"
    echo "}"
  } > /tmp/rules.nft
  nft -f /tmp/rules.nft
}

sluice_up() { # mode, number of forwards
  {
    echo '{ "scheduler": "deficit_round_robin", "mode": "'"$1"'", "flow_table": 0, "connection_table": 131072, "classes": [{ "id": 0 }],'
    echo '"default_class": 0, "forwards": ['
    for ((n = 0; n < $2; n++)); do
      [ $n = 0 ] || echo ,
      echo '{ "name": "'$n'", "protocol": "udp", "port": '$((20001 + n))', "targets": "10.99.0.2" }'
    done
    echo '] }'
  } > /tmp/policy.json
  sluice up bench0 --policy /tmp/policy.json > /tmp/up.log 2>&1 || { cat /tmp/up.log >&2; exit 1; }
}

print() { # contender case bytes repeat packets
  echo "$1,$2,$3,$4,$(awk "BEGIN { printf \"%.1f\", $(elapsed) / $5 }")"
}

measure() { # contender destination
  local port=20001 bytes repeat before
  for bytes in 64 1514; do
    arrive $((COUNT / 10)) $bytes "$2" $port 40000 40000
    for ((repeat = 1; repeat <= REPEATS; repeat++)); do
      before=$(forwarded)
      arrive "$COUNT" $bytes "$2" $port 40000 40000
      print "$1" open $bytes "$repeat" "$COUNT"
      check_forwarded "$1" "$COUNT" "packets of $bytes bytes" "$before"
    done
  done
  case $1 in
    *-1) return ;; # one port alone
  esac
  for ((repeat = 0; repeat <= REPEATS; repeat++)); do
    before=$(forwarded)
    arrive $NEW 64 "$2" $((port + 1 + repeat)) 10000 $((9999 + NEW))
    # The first is to warm up.
    [ "$repeat" = 0 ] || print "$1" new 64 "$repeat" $NEW
    check_forwarded "$1" $NEW connections "$before"
  done
}

# Packets of one connection of a family, with checksums. Those of IPv4 grow by 20 bytes in translation, so the longer ones leave room for that.
measure_family() { # contender family destination
  local bytes repeat before
  for bytes in 82 1494; do
    for ((repeat = 0; repeat <= REPEATS; repeat++)); do
      before=$(forwarded)
      pktgen_prepare_arrivals "$COUNT" $bytes 20001 20001 0 10.98.0.1 10000 10000
      pktgen_set "flag UDPCSUM"
      if [ "$2" = ipv6 ]; then
        pktgen_set "src6 fd98::2" "dst6 $3"
      else
        pktgen_set "dst $3"
      fi
      echo start > /proc/net/pktgen/pgctrl
      # The first is to warm up.
      [ "$repeat" = 0 ] || print "$1" "$2" $bytes "$repeat" "$COUNT"
      check_forwarded "$1" "$COUNT" "packets of $2 of $bytes bytes" "$before"
    done
  done
}

sluice_forwards() { # a target of IPv4's forward, one of IPv6's
  {
    echo '{ "scheduler": "deficit_round_robin", "mode": "classify_only", "flow_table": 0, "classes": [{ "id": 0 }], "default_class": 0, "forwards": ['
    echo '{ "name": "ipv4", "protocol": "udp", "address": "10.98.0.1", "port": 20001, "source": "masquerade", "targets": "'"$1"'" },'
    echo '{ "name": "ipv6", "protocol": "udp", "address": "fd98::1", "port": 20001, "source": "masquerade", "targets": "'"$2"'" }'
    echo '] }'
  } > /tmp/policy.json
  sluice up bench0 --policy /tmp/policy.json > /tmp/up.log 2>&1 || { cat /tmp/up.log >&2; exit 1; }
}

families() {
  local family
  echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
  ip addr add fd98::1/64 dev bench0 nodad
  ip addr add fd99::1/64 dev out0 nodad
  ip neigh add fd98::2 lladdr 02:00:00:00:00:03 dev bench0 nud permanent
  ip neigh add fd99::2 lladdr 02:00:00:00:00:02 dev out0 nud permanent
  drop_arrivals
  measure_family generator ipv4 10.98.0.1
  measure_family generator ipv6 fd98::1
  tc qdisc del dev bench0 clsact
  measure_family routed ipv4 10.99.0.2
  measure_family routed ipv6 fd99::2
  sluice_forwards 10.99.0.2 fd99::2
  measure_family sluice-1 ipv4 10.98.0.1
  measure_family sluice-1 ipv6 fd98::1
  sluice down bench0 > /dev/null
  sluice_forwards fd99::2 10.99.0.2
  measure_family sluice-translated-1 ipv4 10.98.0.1
  measure_family sluice-translated-1 ipv6 fd98::1
  sluice down bench0 > /dev/null
  {
    for family in "ip 10.99.0.2" "ip6 [fd99::2]"; do
      echo "table ${family% *} forwards {"
      echo "  chain prerouting { type nat hook prerouting priority dstnat; udp dport 20001 dnat to ${family#* }:20001; }"
      echo "  chain postrouting { type nat hook postrouting priority srcnat; masquerade; }"
      echo "}"
    done
  } > /tmp/rules.nft
  nft -f /tmp/rules.nft
  measure_family nft-1 ipv4 10.98.0.1
  measure_family nft-1 ipv6 fd98::1
  nft flush ruleset
}

drop_arrivals
measure generator 10.98.0.1
tc qdisc del dev bench0 clsact
measure routed 10.99.0.2
sluice_up classify_only 1
measure sluice-1 10.98.0.1
sluice down bench0 > /dev/null
sluice_up classify_only $MANY
measure sluice-$MANY 10.98.0.1
sluice down bench0 > /dev/null
sluice_up classify_only $MANY
echo '{ "scheduler": "deficit_round_robin", "classes": [{ "id": 0 }], "default_class": 0 }' > /tmp/queued.json
sluice up out0 --policy /tmp/queued.json > /tmp/up.log 2>&1 || { cat /tmp/up.log >&2; exit 1; }
measure sluice-queued-$MANY 10.98.0.1
sluice down bench0 out0 > /dev/null
nft_rules "udp dport 20001 dnat to 10.99.0.2:20001"
measure nft-1 10.98.0.1
nft flush ruleset
nft_rules "dnat ip to udp dport map @ports"
measure nft-$MANY 10.98.0.1
nft flush ruleset
nft_rules "dnat ip to udp dport map @ports" flowtable
measure nft-flowtable-$MANY 10.98.0.1
nft flush ruleset
families
