#!/usr/bin/env python3
"""Prints the tables of the rules bench: instructions per packet above no qdisc, medians, and the spread of the repeats."""

import collections
import csv
import statistics
import sys

TITLES = {
    "match": "flows that rules match, spread over the list",
    "miss": "flows that none matches",
    "new_flows": "flows that rules match, each packet of another flow",
    "load": "loading the rules, millions of instructions, waits included",
}


def main(path: str) -> None:
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    runs = collections.defaultdict(list)
    for row in rows:
        runs[row["packets"], row["set"], row["contender"], int(row["rules"])].append(float(row["instructions"]))
    # No rules: miss and match are the same packets.
    base = {packets: statistics.median(runs[packets, "-", "none", 0]) for packets in ("match", "new_flows")}
    base |= {"miss": base["match"]}
    prio = statistics.median(runs["match", "-", "prio", 0]) - base["match"]
    print(f"no qdisc, pktgen and device: {base['match']:.0f}; prio, with the class in the packet already: {prio:.0f} more")
    sizes = sorted({key[3] for key in runs if key[3]})
    widest = collections.defaultdict(float)
    for packets, title in TITLES.items():
        for rules in dict.fromkeys(key[1] for key in runs if key[0] == packets and key[1] != "-"):
            print(f"\n{title}; {rules} rules\n")
            print(f"| {'contender':20} |" + "".join(f"{size:>10,} |" for size in sizes))
            print(f"|{'-' * 22}|" + "----------:|" * len(sizes))
            for contender in dict.fromkeys(key[2] for key in runs if key[:2] == (packets, rules)):
                line = f"| {contender:20} |"
                for size in sizes:
                    values = runs.get((packets, rules, contender, size))
                    if not values:
                        line += f"{'':>10} |"
                    elif packets == "load":
                        line += f"{values[0] / 1e6:10,.0f} |"
                    else:
                        median = statistics.median(values)
                        line += f"{median - base[packets]:10,.0f} |"
                        widest[packets] = max(widest[packets], (max(values) - min(values)) / (median - base[packets]))
                print(line)
    print("\nwidest spread of repeats:", ", ".join(f"{packets} {spread:.1%}" for packets, spread in widest.items()))


if __name__ == "__main__":
    main(sys.argv[1])
