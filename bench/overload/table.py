#!/usr/bin/env python3
"""Prints the table of the overload bench: instructions for an offered packet, and their spread, by limit.

Medians of the repeats, less those of the case `generator`.
"""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import instructions


def main(path: str) -> None:
    limits, runs = instructions.read(path, lambda row: int(row["limit_mbit"]))
    print("| | " + " | ".join(f"{limit} Mbit/s | spread" for limit in limits) + " |")
    print("|---|" + "---:|" * 2 * len(limits))
    for contender, own in runs.items():
        cells = [cell for limit in limits for cell in instructions.median_and_spread(own[limit])]
        print(f"| {contender} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main(sys.argv[1])
