#!/usr/bin/env python3
"""Prints the tables of the addresses bench: median of the repeats above the baseline, and the share of the LPM trie."""

import collections
import csv
import statistics
import sys


def main(path: str) -> None:
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    net, times = collections.defaultdict(list), collections.defaultdict(list)
    for row in rows:
        value = float(row["value"]) - float(row["baseline"])
        if row["unit"] == "us":
            times[row["what"], row["packets"]].append(value)
        else:
            net[row["family"], int(row["lengths"]), row["packets"], row["what"]].append(value)
    middle = {key: statistics.median(values) for key, values in net.items()}
    print("| family | lengths beside whole addresses | address is in | table | hash | LPM trie | table / trie |")
    print("|---|---:|---|---:|---:|---:|---:|")
    for family, lengths, packets in dict.fromkeys(key[:3] for key in middle):
        table, trie = (middle[family, lengths, packets, what] for what in ("table", "LPM trie"))
        hashed = middle.get((family, lengths, packets, "hash"))
        shown = f"{hashed:.0f}" if hashed else ""
        print(f"| {family} | {lengths} | {packets} | {table:.0f} | {shown} | {trie:.0f} | {table / trie:.2f} |")
    print("\n| change | of | median us |\n|---|---|---:|")
    for (what, of), values in times.items():
        print(f"| {what} | {of} | {statistics.median(values):.2f} |")


if __name__ == "__main__":
    main(sys.argv[1])
