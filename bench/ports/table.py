#!/usr/bin/env python3
"""Prints the table of the ports bench: instructions per packet and their spread, by case and packet size.

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
        runs[row["contender"], row["case"], int(row["bytes"])].append(float(row["instructions_per_packet"]))
    cases = list(dict.fromkeys((row["case"], int(row["bytes"])) for row in rows))
    contenders = [name for name in dict.fromkeys(row["contender"] for row in rows) if name != "generator"]
    print("| | " + " | ".join(f"{case}, {size} bytes | spread" for case, size in cases) + " |")
    print("|---|" + "---:|" * 2 * len(cases))
    for contender in contenders:
        cells = []
        for case in cases:
            each = [figure - statistics.median(runs["generator", *case]) for figure in runs[contender, *case]]
            cells += [f"{statistics.median(each):,.0f}", f"{max(each) - min(each):.0f}"] if each else ["", ""]
        print(f"| {contender} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main(sys.argv[1])
