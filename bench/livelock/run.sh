#!/usr/bin/env bash
# [REPEATS [OFFERED [CONTENDERS]]]. Measures whether a flooded router still serves those whom it lets in, in network namespaces of its own.
# Everything, the sender of the flood too, shares one processor. Needs root and sshd. The program is target/release/sluice, or SLUICE_BIN.
#
# From one neighbour come, by one interface of the router: a flood of frames of 64 bytes to the router itself, OFFERED thousands a second; a
# stream of 5 Mbit/s that it forwards to another host; and logins to its sshd, one after the other.
#
# Contenders, each of which gives the flood 10 of 100 Mbit/s: `none`, which takes what comes; HTB behind an ifb; and Sluice with early drop
# in XDP.
#
# Prints: contender,kpps_asked,repeat,kpps_offered,login_ms,allowed_lost_percent
set -euo pipefail
repeats=${1:-5} loads=${2:-0 50 100 200 400 max} contenders=${3:-none ifb+htb sluice} length_s=4
here=$(dirname "$(realpath "$0")")
sluice=${SLUICE_BIN:-${here%/bench/livelock}/target/release/sluice}
prefix=sllivelock-$$
outside=$prefix-outside router=$prefix-router server=$prefix-server
sshd=$(command -v sshd || echo /usr/sbin/sshd)
[ -x "$sshd" ] || { echo "bench livelock: sshd is missing: apt-get install openssh-server" >&2; exit 1; }
ssh=$(mktemp -d) made=() daemons=()
# All on the last processor.
taskset --cpu-list --pid $(($(nproc) - 1)) $$ > /dev/null

end() {
  [ ${#daemons[@]} = 0 ] || kill "${daemons[@]}"
  for ns in "${made[@]}"; do ip netns del "$ns"; done
  rm -rf "$ssh"
}
trap end EXIT

for ns in "$outside" "$router" "$server"; do
  ip netns add "$ns"
  made+=("$ns")
done
ip link add v0 netns "$router" type veth peer name v1 netns "$outside"
ip link add s0 netns "$router" type veth peer name s1 netns "$server"
# Frames of the flood are for this address.
ip -n "$router" link set v0 address 02:00:00:00:00:02
ip netns exec "$router" ethtool -K v0 gro on > /dev/null
up() { # namespace device address
  ip -n "$1" addr add "$3/24" dev "$2"
  ip -n "$1" link set "$2" up
}
up "$router" v0 10.99.1.2
up "$outside" v1 10.99.1.7
up "$router" s0 10.98.1.1
up "$server" s1 10.98.1.2
ip -n "$outside" route add default via 10.99.1.2
ip -n "$server" route add default via 10.98.1.1
ip netns exec "$router" sysctl -q -w net.ipv4.ip_forward=1

for key in host key; do ssh-keygen -q -t ed25519 -N '' -f "$ssh/$key"; done
cat > "$ssh/config" <<C
Port 22
HostKey $ssh/host
AuthorizedKeysFile $ssh/key.pub
StrictModes no
UsePAM no
PidFile none
PermitRootLogin prohibit-password
C
mkdir -p /run/sshd
ip netns exec "$router" "$sshd" -D -f "$ssh/config" -E "$ssh/log" &
daemons+=($!)
ip netns exec "$server" iperf3 --server > /dev/null &
daemons+=($!)
sleep 0.5

cat > "$ssh/policy.json" <<'P'
{
  "scheduler": "weighted_fair_queuing",
  "classes": [{ "id": 0, "name": "allowed" }, { "id": 1, "name": "flood", "queue": "fifo", "ceil": "10mbit" }],
  "default_class": 0,
  "rules": [{ "priority": 1, "protocol": "udp", "dst_ip": "10.99.1.2", "class_id": 1 }]
}
P

within() { ip netns exec "$router" "$@"; }

begin() { # contender
  case $1 in
    none) ;;
    ifb+htb)
      within ip link add ifb0 type ifb
      within ip link set ifb0 up
      within tc qdisc add dev v0 handle ffff: ingress
      within tc filter add dev v0 parent ffff: protocol all u32 match u32 0 0 action mirred egress redirect dev ifb0
      within tc qdisc add dev ifb0 root handle 1: htb default 10
      within tc class add dev ifb0 parent 1: classid 1:1 htb rate 100mbit
      within tc class add dev ifb0 parent 1:1 classid 1:10 htb rate 90mbit ceil 100mbit
      within tc class add dev ifb0 parent 1:1 classid 1:20 htb rate 10mbit ceil 10mbit
      within tc filter add dev ifb0 parent 1: protocol ip u32 match ip protocol 17 0xff match ip dst 10.99.1.2/32 classid 1:20
      ;;
    sluice)
      if ! "$sluice" --netns "$router" up v0 --policy "$ssh/policy.json" --ingress-rate 100mbit --classifier xdp > "$ssh/up" 2>&1; then
        cat "$ssh/up" >&2
        exit 1
      fi
      ;;
  esac
}

end_of() { # contender
  case $1 in
    ifb+htb)
      within tc qdisc del dev v0 ingress
      within ip link del ifb0
      ;;
    sluice) "$sluice" --netns "$router" down v0 > /dev/null ;;
  esac
}

login_ms() {
  local began=${EPOCHREALTIME/./}
  if ip netns exec "$outside" timeout 30 ssh -F none -i "$ssh/key" -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null \
    -o LogLevel=ERROR -o IdentitiesOnly=yes root@10.99.1.2 true; then
    echo $(((${EPOCHREALTIME/./} - began) / 1000))
  else
    echo failed
  fi
}

for contender in $contenders; do
  begin "$contender"
  for asked in $loads; do
    for ((repeat = 1; repeat <= repeats; repeat++)); do
      flood='' rate=() offered=0
      if [ "$asked" != 0 ]; then
        [ "$asked" = max ] || rate=(--rate "$((asked * 512))kbit")
        ip netns exec "$outside" "$sluice" lab frames v1 --bytes 64 --flows 16 --duration "${length_s}s" "${rate[@]}" > "$ssh/flood" &
        flood=$!
      fi
      ip netns exec "$outside" iperf3 --client 10.98.1.2 --udp --bitrate 5M --length 1200 --time $((length_s - 1)) --json > "$ssh/allowed" &
      allowed=$!
      sleep 0.5
      login=$(login_ms)
      if wait "$allowed"; then lost=$(jq '.end.sum.lost_percent * 100 | round / 100' "$ssh/allowed"); else lost=failed; fi
      if [ -n "$flood" ]; then
        wait "$flood"
        offered=$(jq '.frames / .seconds / 1000 | round' "$ssh/flood")
      fi
      echo "$contender,$asked,$repeat,$offered,$login,$lost"
    done
  done
  end_of "$contender"
done
