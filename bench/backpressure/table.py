#!/usr/bin/env python3
"""Prints the table of the bench of backpressure: millions of packets a second (median, least to most), and the cost as a multiple of that without."""

import collections
import csv
import statistics
import sys


def main(path: str) -> None:
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    runs = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in rows:
        runs[int(row["pipes"]), row["work"], row["figure"]][row["contender"]].append(float(row["value"]))
    print("| pipes | work | contender | Mpps | least to most | times the cost without | held classes | packets of a dequeue |")
    print("|---:|---|---|---:|---:|---:|---:|---:|")
    for (pipes, work, figure), contenders in runs.items():
        if figure != "mpps":
            continue
        for name, values in contenders.items():
            cost = statistics.median(a / b for a, b in zip(contenders["without"], values))
            cells = [pipes, work, name, f"{statistics.median(values):.1f}", f"{min(values):.1f} to {max(values):.1f}"]
            cells.append("" if name == "without" else f"{cost:.2f}")
            for other in ("held_classes", "packets_of_a_dequeue"):
                cells.append(f"{statistics.median(runs[pipes, work, other][name]):.1f}")
            print("| " + " | ".join(map(str, cells)) + " |")


if __name__ == "__main__":
    main(sys.argv[1])
