#!/usr/bin/env python3
"""Prints the table of the watched bench: instructions per packet with nobody looking, with events told, and with everything open, medians of the repeats."""

import collections
import csv
import statistics
import sys


def main(path: str) -> None:
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    runs = collections.defaultdict(list)
    for row in rows:
        runs[int(row["flows"]), row["state"]].append(float(row["instructions_per_packet"]))
    print("| flows | nobody looks | events are told | more, % | everything is open | more, % |")
    print("|------:|-------------:|----------------:|--------:|-------------------:|--------:|")
    for flows in sorted({flows for flows, _ in runs}):
        alone, told, everything = (statistics.median(runs[flows, state]) for state in ("alone", "listen", "look"))
        more = [100 * (figure / alone - 1) for figure in (told, everything)]
        print(f"| {flows:5} | {alone:12.0f} | {told:15.0f} | {more[0]:7.2f} | {everything:18.0f} | {more[1]:7.2f} |")


if __name__ == "__main__":
    main(sys.argv[1])
