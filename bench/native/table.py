#!/usr/bin/env python3
"""Prints the table of the native bench: ns for one enqueue and one dequeue, least and median of the repeats."""

import collections
import csv
import statistics
import sys


def main(path: str) -> None:
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    runs = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in rows:
        runs[row["discipline"]][int(row["classes"]), int(row["backlog_pkts"])].append(float(row["ns_per_packet"]))
    cases = list(next(iter(runs.values())))
    print(f"| {'least (median) ns':30} | " + " | ".join(f"{c} classes, {b} queued" for c, b in cases) + " |")
    print(f"|{'-' * 32}|" + "---:|" * len(cases))
    for discipline, times in runs.items():
        cells = (f"{min(times[case]):.0f} ({statistics.median(times[case]):.0f})" for case in cases)
        print(f"| {discipline:30} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main(sys.argv[1])
