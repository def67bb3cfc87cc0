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

modprobe pktgen
modprobe dummy
fresh
pktgen 100000 3081 3081 0 # what the guest still does after boot is over then
