#!/usr/bin/env python3
"""Prints the table of the forward bench: by packet size, packets per 10^9 instructions, instructions per packet, and spread.

Medians of the repeats, less those of the case `generator`.
"""

import collections
import csv
import statistics
import sys


def main(path: str) -> None:
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    runs = collections.defaultdict(list)
    for row in rows:
        runs[row["contender"], int(row["bytes"])].append(float(row["instructions_per_packet"]))
    sizes = sorted({size for _, size in runs})
    contenders = [name for name in dict.fromkeys(row["contender"] for row in rows) if name != "generator"]
    print("| | " + " | ".join(f"{size} bytes: packets per 10^9 instructions | instructions | spread" for size in sizes) + " |")
    print("|---|" + "---:|" * 3 * len(sizes))
    for contender in contenders:
        cells = []
        for size in sizes:
            each = [figure - statistics.median(runs["generator", size]) for figure in runs[contender, size]]
            median = statistics.median(each)
            cells += [f"{1e9 / median:,.0f}", f"{median:,.0f}", f"{max(each) - min(each):.0f}"]
        print(f"| {contender} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main(sys.argv[1])
