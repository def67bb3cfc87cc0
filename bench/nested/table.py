#!/usr/bin/env python3
"""Prints the table of the nested bench: instructions per packet above no qdisc, medians, and the spread of the repeats."""

import collections
import csv
import statistics
import sys


def main(path: str) -> None:
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    runs = collections.defaultdict(list)
    for row in rows:
        runs[row["contender"], row["class"]].append(float(row["instructions_per_packet"]))
    classes = list(dict.fromkeys(row["class"] for row in rows))
    base = {name: statistics.median(runs["none", name]) for name in classes}
    print(f"no qdisc, pktgen and device: {statistics.median(base.values()):.0f}\n")
    print(f"| {'contender':9} |" + "".join(f" {name:>8} |" for name in classes) + " of htb |")
    print(f"|{'-' * 11}|" + "---------:|" * len(classes) + "-------:|")
    cost = {key: statistics.median(values) - base[key[1]] for key, values in runs.items()}
    widest = 0.0
    for contender in dict.fromkeys(key[0] for key in runs if key[0] != "none"):
        line = "".join(f" {cost[contender, name]:8,.0f} |" for name in classes)
        parts = [cost[contender, name] / cost["htb", name] for name in classes]
        print(f"| {contender:9} |{line} {statistics.mean(parts):6.2f} |")
        for name in classes:
            values = runs[contender, name]
            widest = max(widest, (max(values) - min(values)) / cost[contender, name])
    print(f"\nwidest spread of repeats: {widest:.1%}")


if __name__ == "__main__":
    main(sys.argv[1])
