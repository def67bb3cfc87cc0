#!/usr/bin/env python3
"""Prints the table of the trees bench, by contender and number of subscribers.

Instructions for a packet are medians of the repeats above that of `none` in the same case; their spread is the difference between the most and
the least. `less tbf` is HTB's backlogged figure without that of an idle tbf, which holds HTB in this case. Memory and set-up are those of the
case `idle`.
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
            resources[of] = f"{int(row['memory_kib']) * 1024 / 1e6:,.1f}", f"{int(row['setup_ms']) / 1000:.2f}"

    if missing := {(name, of) for name, of in resources if ("none", of) not in resources}:
        sys.exit(f"{path}: there is no `none`, above which costs are, for {len(missing)} of {len(resources)} cases")

    def above_none(contender: str, subscribers: int, case: str) -> float:
        own, base = (statistics.median(runs[name, subscribers, case]) for name in (contender, "none"))
        return own - base

    print("| | subscribers | idle | spread | backlogged | spread | less tbf | MB | set-up, s |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for contender, subscribers in resources:
        if contender == "none":
            continue
        cells = [contender, f"{subscribers:,}"]
        for case in CASES:
            own = runs[contender, subscribers, case]
            cells += [f"{above_none(contender, subscribers, case):,.0f}", f"{max(own) - min(own):,.0f}"]
        held_by_tbf = contender.startswith("htb") and ("tbf", subscribers) in resources
        less = above_none(contender, subscribers, "backlogged") - above_none("tbf", subscribers, "idle") if held_by_tbf else None
        cells += ["" if less is None else f"{less:,.0f}", *resources[contender, subscribers]]
        print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main(sys.argv[1])
