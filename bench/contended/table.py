#!/usr/bin/env python3
"""Prints the table of the bench of queues that contend: instructions per packet, medians, least and most of the repeats."""

import collections
import pathlib
import statistics
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import instructions


def main(path: str) -> None:
    rows = instructions.rows(path)
    runs = collections.defaultdict(list)
    for row in rows:
        runs[row["rate_mbit"], row["contender"]].append(float(row["instructions_per_packet"]))
    print("| Mbit/s | one queue | all queues | one tree | a tree for each queue |")
    print("|---:|---:|---:|---:|---:|")
    for rate in dict.fromkeys(row["rate_mbit"] for row in rows):
        cells = (runs[rate, contender] for contender in ("one", "all", "tree", "trees"))
        told = (f"{statistics.median(own):,.0f} ({min(own):,.0f} to {max(own):,.0f})" for own in cells)
        print(f"| {int(rate):,} | " + " | ".join(told) + " |")


if __name__ == "__main__":
    main(sys.argv[1])
