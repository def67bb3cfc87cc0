#!/usr/bin/env python3
"""Prints the table of the ports bench: instructions per packet and their spread, by case and packet size.

Medians of the repeats, less those of the case `generator`.
"""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import instructions


def main(path: str) -> None:
    cases, runs = instructions.read(path, lambda row: (row["case"], int(row["bytes"])))
    print("| | " + " | ".join(f"{case}, {size} bytes | spread" for case, size in cases) + " |")
    print("|---|" + "---:|" * 2 * len(cases))
    for contender, own in runs.items():
        cells = []
        for case in cases:
            cells += instructions.median_and_spread(own[case]) if case in own else ["", ""]
        print(f"| {contender} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main(sys.argv[1])
