#!/usr/bin/env python3
"""Prints the table of the stages bench: ns that a stage adds to a packet, and its rate as a share of what an XDP program drops."""

import collections
import csv
import statistics
import sys


def main(path: str) -> None:
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    stages = collections.defaultdict(list)
    for row in rows:
        stages[row["stage"], int(row["ports"])].append(row)
    print("| stage | source ports | ns added (least to most) | Mpps | of bare drop | records missed |")
    print("|---|---:|---:|---:|---:|---:|")
    for (stage, ports), own in stages.items():
        added = [float(row["ns"]) - float(row["drop_ns"]) for row in own]
        share = statistics.median(float(row["drop_ns"]) / float(row["ns"]) for row in own)
        whole = statistics.median(float(row["ns"]) for row in own)
        missed = max(float(row["missed_percent"]) for row in own)
        print(
            f"| {stage} | {ports} | {statistics.median(added):.1f} ({min(added):.1f} to {max(added):.1f}) "
            f"| {1e3 / whole:.1f} | {share:.0%} | {missed:.2f} % |"
        )
    drop = [float(row["drop_ns"]) for row in rows if row["ports"] == "1"]
    print(f"\nBare drop: {statistics.median(drop):.1f} ns ({min(drop):.1f} to {max(drop):.1f}), {1e3 / statistics.median(drop):.1f} Mpps")


if __name__ == "__main__":
    main(sys.argv[1])
