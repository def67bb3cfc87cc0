#!/usr/bin/env python3
"""Prints the table of the trees bench, by contender and number of subscribers.

Instructions for a packet are medians of the repeats above that of `none` in the same case; their spread is the difference between the most and
the least. `less tbf` is HTB's backlogged figure without that of an idle tbf, which holds HTB in this case. Memory and set-up are those of the
case `idle`.
"""

import pathlib
import statistics
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import instructions


def main(path: str) -> None:
    _, runs = instructions.read(path, lambda row: (int(row["subscribers"]), row["case"]), base="none")
    print("| | subscribers | idle | spread | backlogged | spread | less tbf | MB | set-up, s |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    shown = set()
    for row in instructions.rows(path):
        contender, subscribers = row["contender"], int(row["subscribers"])
        if contender == "none" or (contender, subscribers) in shown or row["case"] != "idle":
            continue
        shown.add((contender, subscribers))
        own = runs[contender]
        cells = [contender, f"{subscribers:,}"]
        for case in ("idle", "backlogged"):
            cells += instructions.median_and_spread(own[subscribers, case])
        tbf = runs.get("tbf", {}).get((subscribers, "idle"))
        less = statistics.median(own[subscribers, "backlogged"]) - statistics.median(tbf) if contender.startswith("htb") and tbf else None
        cells += ["" if less is None else f"{less:,.0f}"]
        cells += [f"{int(row['memory_kib']) * 1024 / 1e6:,.1f}", f"{int(row['setup_ms']) / 1000:.2f}"]
        print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main(sys.argv[1])
