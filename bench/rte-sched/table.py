#!/usr/bin/env python3
"""Prints the tables of the bench of pipes: millions of packets a second (median, least to most), and how many times those of each rte_sched."""

import collections
import csv
import statistics
import sys

LIBRARY, NATIVE = "rte_sched_library", "rte_sched_native"
ACCURACY = {
    "mib": "memory, MiB",
    "longest_ns": "longest call, ns",
    "rate_error": "error of a rate",
    "inversions": "packets before a class before theirs",
    "jain": "Jain's index of pipes",
}


def times(own: list, other: list) -> str:
    """The median of the ratios of runs that followed each other."""
    return f"{statistics.median(a / b for a, b in zip(own, other)):.2f}" if other else ""


def main(path: str) -> None:
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    runs = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in rows:
        runs[int(row["pipes"]), row["work"], row["figure"]][row["contender"]].append(float(row["value"]))
    print("| pipes | work | contender | Mpps | least to most | times the library | times native |")
    print("|---:|---|---|---:|---:|---:|---:|")
    for (pipes, work, figure), contenders in runs.items():
        if figure != "mpps":
            continue
        for name, values in contenders.items():
            cells = [pipes, work, name, f"{statistics.median(values):.1f}", f"{min(values):.1f} to {max(values):.1f}"]
            cells += [times(values, contenders[other]) if other in contenders and name not in (LIBRARY, NATIVE) else "" for other in (LIBRARY, NATIVE)]
            print("| " + " | ".join(map(str, cells)) + " |")
    print("\nCoDel that does not act, ns a packet:\n")
    print("| pipes | work | ns |\n|---:|---|---:|")
    for (pipes, work, figure), contenders in runs.items():
        if figure == "mpps" and "sluice, CoDel" in contenders and work != "half dropped":
            both = zip(contenders["sluice, CoDel"], contenders["sluice"])
            print(f"| {pipes} | {work} | {statistics.median(1e3 / codel - 1e3 / plain for codel, plain in both):.1f} |")
    print("\n| pipes | work | figure | rte_sched, native | sluice |\n|---:|---|---|---:|---:|")
    for (pipes, work, figure), contenders in runs.items():
        if figure in ACCURACY and "sluice" in contenders:
            cells = (f"{statistics.median(contenders[name]):.6g}" if name in contenders else "" for name in (NATIVE, "sluice"))
            print(f"| {pipes} | {work} | {ACCURACY[figure]} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main(sys.argv[1])
