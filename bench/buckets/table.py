#!/usr/bin/env python3
"""Prints the table of the buckets bench: ns, median of the repeats, least and most."""

import collections
import csv
import statistics
import sys


def main(path: str) -> None:
    cells = collections.defaultdict(dict)
    columns = []
    with open(path, encoding="utf-8") as file:
        values = collections.defaultdict(list)
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            values[row["bucket"], f"{row['passes']}, {row['cpus']} CPUs"].append(float(row["ns"]))
    for (bucket, column), own in values.items():
        cells[bucket][column] = f"{statistics.median(own):.0f} ({min(own):.0f}-{max(own):.0f})"
        columns += [column] if column not in columns else []
    print("| bucket | " + " | ".join(columns) + " |")
    print("|---|" + "---:|" * len(columns))
    for bucket, own in cells.items():
        print(f"| {bucket} | " + " | ".join(own[column] for column in columns) + " |")


if __name__ == "__main__":
    main(sys.argv[1])
