#!/usr/bin/env python3
"""Prints the table of the bench of captures: medians of the repeats, with their spread, by way, place and load."""

import collections
import csv
import statistics
import sys


def main(path: str) -> None:
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    runs = collections.defaultdict(list)
    for row in rows:
        runs[row["way"], row["to"], row["rate"]].append(row)
    print("| way | to | sent | arrived, 1,000/s | captured, 1,000/s | spread | lost |")
    print("|---|---|---|---:|---:|---:|---:|")
    for (way, to, rate), own in runs.items():
        arrived = statistics.median(int(row["arrived"]) / float(row["sent_s"]) for row in own)
        captured = [int(row["captured"]) / float(row["seconds"]) for row in own]
        lost = statistics.median(100 * int(row["lost"]) / int(row["arrived"]) for row in own)
        median = statistics.median(captured)
        spread = 100 * (max(captured) - min(captured)) / median
        print(f"| {way} | {to} | {rate} | {arrived / 1000:,.0f} | {median / 1000:,.0f} | {spread:.0f} % | {lost:.2f} % |")


if __name__ == "__main__":
    main(sys.argv[1])
