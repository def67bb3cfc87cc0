#!/usr/bin/env python3
"""Prints the table of the cost bench: instructions per packet above no qdisc, median and spread of the repeats."""

import collections
import csv
import statistics
import sys


def main(path: str) -> None:
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    runs = collections.defaultdict(list)
    for row in rows:
        key = row["contender"], row["state"], int(row["classes"]), int(row["rules"])
        runs[key].append(float(row["instructions_per_packet"]))
    base = statistics.median(runs.pop(("none", "idle", 0, 0)))
    print(f"no qdisc, pktgen and device: {base:.0f} instructions per packet")
    for state, classes in sorted({key[1:3] for key in runs}, key=lambda key: (key[0] != "idle", key)):
        print(f"\n{state}, {classes} classes\n")
        print(f"| {'contender':48} | rules | added per packet | spread |")
        print(f"|{'-' * 50}|------:|-----------------:|-------:|")
        chosen = [(key, values) for key, values in runs.items() if key[1:3] == (state, classes)]
        for (contender, _, _, rules), values in sorted(chosen, key=lambda run: statistics.median(run[1])):
            added = statistics.median(values) - base
            print(f"| {contender:48} | {rules or '-':>5} | {added:16.0f} | {max(values) - min(values):6.0f} |")


if __name__ == "__main__":
    main(sys.argv[1])
