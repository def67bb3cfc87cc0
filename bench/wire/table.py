#!/usr/bin/env python3
"""Prints the table of the bench of a wire: packets a second that each contender passes, and the part of what the bare forwarder passes in the same repeat."""

import collections
import csv
import statistics
import sys


def main(path: str) -> None:
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    passed = {(row["contender"], row["frame_bytes"], row["repeat"]): float(row["passed_kpps"]) for row in rows}
    cases = collections.defaultdict(list)
    for row in rows:
        cases[row["contender"], row["frame_bytes"]].append(row)

    def spread(values: list[float], form: str) -> str:
        return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"

    print("| | bytes | offered, 1,000/s | passed, 1,000/s | of the bare forwarder's |")
    print("|---|---:|---:|---:|---:|")
    for (contender, size), case in cases.items():
        offered = [float(row["offered_kpps"]) for row in case]
        own = [float(row["passed_kpps"]) for row in case]
        parts = [passed[contender, size, row["repeat"]] / passed["bare", size, row["repeat"]] for row in case]
        print(f"| {contender} | {size} | {spread(offered, '.0f')} | {spread(own, '.0f')} | {spread(parts, '.2f')} |")


if __name__ == "__main__":
    main(sys.argv[1])
