# Sourced by benches in the virtual machine: pktgen sends packets by a dummy device, or hands them to the stack as its arrivals.
# shellcheck shell=bash
bench=/proc/net/pktgen

# packets, first port, last port, priority (decimal), destination, first source port, last source port
pktgen() {
  pktgen_prepare "$@"
  pktgen_send "$1"
}

pktgen_set() { # SETTING...
  local setting
  for setting in "$@"; do echo "$setting" > $bench/bench0; done
}

pktgen_prepare() {
  echo rem_device_all > $bench/kpktgend_0
  echo "add_device bench0" > $bench/kpktgend_0
  local first=${6:-40000} last=${7:-40000}
  pktgen_set "count $1" "pkt_size 64" "clone_skb 0" "delay 0" "dst ${5:-10.99.0.2}" "src_min 10.99.0.1" "src_max 10.99.0.1" \
    "dst_mac 02:00:00:00:00:02" "udp_src_min $first" "udp_src_max $((last > first ? last + 1 : last))" "udp_dst_min $2" \
    "udp_dst_max $(($3 > $2 ? $3 + 1 : $3))" "skb_priority $4" "xmit_mode queue_xmit" "flag !SHARED"
}

pktgen_send() { # packets
  local taken
  echo start > $bench/pgctrl
  taken=$(awk '/pkts-sofar/ { print $2 - $4 }' $bench/bench0)
  [ $((taken * 100)) -ge $(($1 * 99)) ] || { echo "pktgen delivered $taken of $1 packets" >&2; cat $bench/bench0 >&2; exit 1; }
}

# Of the last run, ns: instructions.
elapsed() { sed -n 's/^Result: OK: \([0-9]*\)(.*/\1000/p' $bench/bench0; }

fresh() {
  if ip link show bench0 > /dev/null 2>&1; then ip link del bench0; fi
  ip link add bench0 type dummy
  ip link set bench0 up
}

# Makes the guest a router: packets to 10.99.0.2 that arrive at bench0 leave by out0, another dummy device.
router() {
  ip link add out0 type dummy
  ip addr add 10.99.0.1/24 dev out0
  ip link set out0 up
  ip neigh add 10.99.0.2 lladdr 02:00:00:00:00:02 dev out0 nud permanent
  ip addr add 10.98.0.1/24 dev bench0
  echo 1 > /proc/sys/net/ipv4/ip_forward
  echo 0 > /proc/sys/net/ipv4/conf/bench0/rp_filter
  echo 0 > /proc/sys/net/ipv4/conf/all/rp_filter
}

# Prepares packets from 10.98.0.2 that the stack gets as arrivals of bench0.
pktgen_prepare_arrivals() { # packets, bytes, then as pktgen() from the first port on
  pktgen_prepare "$1" "${@:3}"
  pktgen_set "pkt_size $2" "src_min 10.98.0.2" "src_max 10.98.0.2" "dst_mac $(cat /sys/class/net/bench0/address)" "xmit_mode netif_receive"
}

# The contender `generator`: a filter drops packets on arrival, until its qdisc clsact is deleted.
drop_arrivals() {
  tc qdisc add dev bench0 clsact
  tc filter add dev bench0 ingress matchall action trap # frees the packet as `drop` does, but pktgen counts no error
}

# Packets that the router has forwarded.
forwarded() { cat /sys/class/net/out0/statistics/tx_packets; }

# Fails unless 99 % of the packets were forwarded; the contender `generator` forwards none.
check_forwarded() { # contender, packets, their description, forwarded() before them
  local count=$(($(forwarded) - $4))
  [ "$1" = generator ] || [ $((count * 100)) -ge $(($2 * 99)) ] || { echo "$1: of $2 $3 $count were forwarded" >&2; exit 1; }
}

modprobe pktgen
modprobe dummy
fresh
pktgen 100000 3081 3081 0 # what the guest still does after boot is over then
