#!/usr/bin/env bash
# Prints a policy of eight classes whose last rule of N matches the game packet of this bench. N is 1 or more.
set -euo pipefail
rules=$1 limit=${2:-1000}
echo '{ "scheduler": "'"${3:-strict_priority}"'", "classes": ['
for class in 0 1 2 3 4 5 6 7; do
  [ "$class" = 0 ] || echo ,
  printf '  { "id": %d, "name": "c%d", "priority": %d, "limit": %d }' "$class" "$class" "$class" "$limit"
done
echo '], "default_class": 7, "rules": ['
for ((n = 1; n < rules; n++)); do
  printf '  { "priority": %d, "protocol": "udp", "dst_port_min": %d, "class_id": %d },\n' "$n" $((20000 + n)) $((n % 8))
done
printf '  { "priority": %d, "name": "game", "protocol": "udp", "dst_port_min": 3074, "class_id": 1 } ] }\n' "$rules"
