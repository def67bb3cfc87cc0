#!/usr/bin/env python3
"""Prints the table of the forward bench: by packet size, packets per 10^9 instructions, instructions per packet, and spread.

Medians of the repeats, less those of the case `generator`.
"""

import pathlib
import statistics
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import instructions


def main(path: str) -> None:
    sizes, runs = instructions.read(path, lambda row: int(row["bytes"]))
    sizes.sort()
    print("| | " + " | ".join(f"{size} bytes: packets per 10^9 instructions | instructions | spread" for size in sizes) + " |")
    print("|---|" + "---:|" * 3 * len(sizes))
    for contender, own in runs.items():
        cells = []
        for size in sizes:
            cells += [f"{1e9 / statistics.median(own[size]):,.0f}", *instructions.median_and_spread(own[size])]
        print(f"| {contender} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main(sys.argv[1])
