#!/usr/bin/env python3
"""Prints the table of the trees bench, by contender and number of subscribers.

Instructions for a packet are medians of the repeats above that of `none` in the same case; their spread is the difference between the most and
the least. Memory and set-up are those of the case `idle`.
"""

import collections
import csv
import statistics
import sys

CASES = ("idle", "backlogged")


def main(path: str) -> None:
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    runs = collections.defaultdict(list)
    resources = {}
    for row in rows:
        of = row["contender"], int(row["subscribers"])
        runs[*of, row["case"]].append(float(row["instructions_per_packet"]))
        if row["case"] == "idle":
            resources[of] = int(row["memory_kib"]) * 1024 / 1e6, int(row["setup_ms"]) / 1000
    print("| | subscribers | idle | spread | backlogged | spread | MB | set-up, s |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for contender, subscribers in dict.fromkeys(key[:2] for key in runs if key[0] != "none"):
        cells = [contender, f"{subscribers:,}"]
        for case in CASES:
            own, base = (runs.get((name, subscribers, case)) for name in (contender, "none"))
            if own and base:
                cells += [f"{statistics.median(own) - statistics.median(base):,.0f}", f"{max(own) - min(own):,.0f}"]
            else:
                cells += ["", ""]
        if (contender, subscribers) in resources:
            memory_mb, setup_s = resources[contender, subscribers]
            cells += [f"{memory_mb:,.1f}", f"{setup_s:.2f}"]
        else:
            cells += ["", ""]
        print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main(sys.argv[1])
