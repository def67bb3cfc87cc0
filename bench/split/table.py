#!/usr/bin/env python3
"""Prints the table of the split bench: goodput and processor time without and with the splitter, medians of the repeats."""

import collections
import csv
import statistics
import sys


def main(path: str) -> None:
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    runs = collections.defaultdict(list)
    for row in rows:
        runs[int(row["rate_mbit"]), row["split"]].append(row)
    print("| shaped to, Mbit/s | split | goodput, Mbit/s | processor, % of 10^9 instructions/s |")
    print("|------------------:|-------|----------------:|------------------------------------:|")
    for (rate, split), repeats in runs.items():
        goodput = statistics.median(float(row["goodput_mbit"]) for row in repeats)
        busy = [float(row["busy_percent"]) for row in repeats]
        print(f"| {rate:17} | {split:5} | {goodput:15.1f} | {statistics.median(busy):23.1f} ({min(busy):.1f}-{max(busy):.1f}) |")


if __name__ == "__main__":
    main(sys.argv[1])
