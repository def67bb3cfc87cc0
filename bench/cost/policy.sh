#!/usr/bin/env bash
# CLASSES RULES [SCHEDULER [KEY=VALUE]...]. Prints a policy of CLASSES classes and RULES rules (as many or more); the last CLASSES rules send UDP port
# 3074 + n to class n. KEY=VALUE adds a key at the top, VALUE in JSON.
# $CLASS_KEYS, in JSON, are added to each class.
set -euo pipefail
classes=$1 rules=$2 scheduler=${3:-strict_priority}
shift 2
[ $# -eq 0 ] || shift
limit=$((classes > 8 ? 200 : 1300))
echo '{ "scheduler": "'"$scheduler"'",'
for setting in "$@"; do printf '"%s": %s,\n' "${setting%%=*}" "${setting#*=}"; done
echo '"classes": ['
for ((n = 0; n < classes; n++)); do
  [ "$n" = 0 ] || echo ,
  printf '{ "id": %d, "name": "c%d", "priority": %d, "limit": %d' "$n" "$n" "$n" "$limit"
  case " $* " in *earliest_deadline* | *slack*) printf ', "latency_budget": "%dms"' $((n + 1)) ;; esac
  printf '%s }' "${CLASS_KEYS:+, $CLASS_KEYS}"
done
echo '], "rules": ['
for ((n = 0; n < rules - classes; n++)); do
  printf '{ "priority": %d, "protocol": "udp", "dst_port_min": %d, "class_id": %d },\n' "$n" $((20000 + n)) $((n % classes))
done
for ((n = 0; n < classes; n++)); do
  [ "$n" = 0 ] || echo ,
  printf '{ "priority": %d, "protocol": "udp", "dst_port_min": %d, "class_id": %d }' $((rules + n)) $((3074 + n)) "$n"
done
echo '] }'
