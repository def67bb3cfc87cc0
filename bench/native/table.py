#!/usr/bin/env python3
"""Prints the tables of the native bench: ns, least and median of the repeats; a table for each set of cases."""

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
    tables = collections.defaultdict(list)
    for discipline, times in runs.items():
        tables[tuple(times)].append(discipline)
    for cases, disciplines in tables.items():
        print_table(cases, {discipline: runs[discipline] for discipline in disciplines})


def print_table(cases: tuple, runs: dict) -> None:
    counted = "flows" if "overflow" in runs else "classes"
    print(f"\n| {'least (median) ns':30} | " + " | ".join(f"{c} {counted}, {b} queued" for c, b in cases) + " |")
    print(f"|{'-' * 32}|" + "---:|" * len(cases))
    for discipline, times in runs.items():
        cells = (f"{min(times[case]):.0f} ({statistics.median(times[case]):.0f})" for case in cases)
        print(f"| {discipline:30} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main(sys.argv[1])
