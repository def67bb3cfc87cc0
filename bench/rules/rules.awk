# Prints rules, or packets for them: awk -v set=exact|mixed -v count=N -v as=policy|flower|nft-list|nft-map|probes -f rules.awk
#
# Each rule asks for a destination, a protocol and a destination port, and names one of 8 classes. No two rules match one
# packet, so that rivals that cannot order their rules mean the same by them.
#   exact   hosts, four services on each: one mask, so a hash can hold them
#   mixed   two rules for a prefix (/20 to /32): a range of ports above 1023, and a service
# Probes: "match CLASS ADDRESS PORT" for up to 8 rules for UDP spread over the list; "miss 7 ADDRESS PORT" with the same
# addresses, and where there is one, a port of another rule. Fewer rules are the first of more.

function draw(below) { seed = (seed * 16807) % 2147483647; return seed % below }
function dotted(value) {
  return 10 + int(value / 16777216) "." int(value / 65536) % 256 "." int(value / 256) % 256 "." value % 256
}
function ports(n) { return low[n] == high[n] ? low[n] : low[n] "-" high[n] }
function matched(address, port, n) { # by rules for UDP
  for (n = 0; n < count; n++) {
    if (proto[n] == "udp" && address >= base[n] && address < base[n] + size[n] && port >= low[n] && port <= high[n]) return 1
  }
  return 0
}

BEGIN {
  seed = 20261121
  split("53 443 80 25 123 22 110 143 161 179 389 445 514 636 993 995 20 21 23 1433 1521 3306 5060 8080", services, " ")
  split("20 22 24 24 24 26 28 30 32 32", lengths, " ")
  for (n = 0; n < count; n++) {
    if (set == "exact") {
      host = int(n / 4)
      base[n] = (host * 40503 + 12345) % 16777216
      bits[n] = 32
      size[n] = 1
      low[n] = high[n] = services[(host * 5 + n % 4 * 6) % 24 + 1]
      proto[n] = n % 4 < 2 ? "udp" : "tcp"
      continue
    }
    if (n % 2 == 0) {
      length_ = lengths[draw(10) + 1]
      extent = 1
      for (bit = length_; bit < 32; bit++) extent *= 2
      start = (n / 2 * 1021) % 2048 * 4096 + int(draw(4096) / extent) * extent
      low[n] = draw(2) ? 1024 : 1024 + draw(60000)
      high[n] = low[n] == 1024 ? 65535 : low[n] + 1 + draw(1000)
    } else {
      low[n] = high[n] = services[draw(19) + 1]
    }
    base[n] = start
    bits[n] = length_
    size[n] = extent
    proto[n] = n > 0 && draw(2) ? "tcp" : "udp"
  }

  if (as == "probes") {
    probes = count < 8 ? count : 8
    for (p = 0; p < probes; p++) {
      n = int((p + 0.5) * count / probes + p) % count # ranges and services, several classes
      for (tries = 0; tries < count && (proto[n] != "udp" || n in used); tries++) n = (n + 2) % count # a range stays one
      if (tries == count) continue
      used[n] = 1
      address = base[n] + int(size[n] / 2)
      print "match", n % 8, dotted(address), int((low[n] + high[n]) / 2)
      port = 9
      for (other = (n + 1) % count; other != n; other = (other + 1) % count) {
        if (proto[other] == "udp" && !matched(address, low[other])) { port = low[other]; break }
      }
      print "miss", 7, dotted(address), port
    }
  }
  if (as == "policy") {
    printf "{ \"scheduler\": \"strict_priority\", \"flow_table\": %d, \"default_class\": 7, \"classes\": [", table
    for (n = 0; n < 8; n++) printf "%s\n{ \"id\": %d, \"name\": \"c%d\", \"priority\": %d }", n ? "," : "", n, n, n
    print "\n], \"rules\": ["
    for (n = 0; n < count; n++) {
      printf "{ \"priority\": %d, \"dst_ip\": \"%s/%d\", \"protocol\": \"%s\", \"dst_port\": \"%s\", \"class_id\": %d }%s\n",
        n, dotted(base[n]), bits[n], proto[n], ports(n), n % 8, n < count - 1 ? "," : ""
    }
    print "] }"
  }
  if (as == "flower") {
    for (n = 0; n < count; n++) {
      printf "filter add dev bench0 parent 2: protocol ip pref 1 flower dst_ip %s/%d ip_proto %s dst_port %s classid 2:%d\n",
        dotted(base[n]), bits[n], proto[n], ports(n), n % 8 + 1
    }
  }
  chain = "type filter hook egress device bench0 priority 0;"
  if (as == "nft-list") {
    print "table netdev bench { chain out {", chain
    for (n = 0; n < count; n++) {
      printf "ip daddr %s/%d %s dport %s meta priority set 2:%d accept\n", dotted(base[n]), bits[n], proto[n], ports(n), n % 8 + 1
    }
    print "}\n}"
  }
  if (as == "nft-map") {
    print "table netdev bench { map rules { type ipv4_addr . inet_proto . inet_service : classid;"
    if (set == "mixed") print "flags interval;"
    print "elements = {"
    for (n = 0; n < count; n++) {
      printf "%s%s . %s . %s : 2:%d,\n", dotted(base[n]), set == "mixed" ? "/" bits[n] : "", proto[n], ports(n), n % 8 + 1
    }
    print "}\n}"
    print "chain out {", chain, "meta priority set ip daddr . ip protocol . th dport map @rules\n}\n}"
  }
}
