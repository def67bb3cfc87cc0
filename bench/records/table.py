#!/usr/bin/env python3
"""Prints the table of the bench of records: ns and millions a second by format, least and median of the repeats, and bytes of a row."""

import collections
import csv
import statistics
import sys


def main(path: str) -> None:
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    times = collections.defaultdict(list)
    size = {}
    for row in rows:
        case = row["format"], row["addresses"]
        times[case].append(float(row["ns_per_record"]))
        size[case] = float(row["bytes_per_record"])
    print("| format | addresses | least ns | median ns | median, millions/s | bytes/row |")
    print("|---|---|---:|---:|---:|---:|")
    for (name, addresses), ns in times.items():
        median = statistics.median(ns)
        row_bytes = f"{size[name, addresses]:.0f}" if size[name, addresses] else "-"
        print(f"| {name} | {addresses} | {min(ns):.0f} | {median:.0f} | {1000 / median:.2f} | {row_bytes} |")


if __name__ == "__main__":
    main(sys.argv[1])
