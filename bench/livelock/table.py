#!/usr/bin/env python3
"""Prints the table of the livelock bench: medians of the repeats by contender and offered load; the greatest login time in brackets."""

import collections
import csv
import statistics
import sys


def main(path: str) -> None:
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    cases = collections.defaultdict(list)
    for row in rows:
        cases[row["contender"], row["kpps_asked"]].append(row)

    def cell(case: list[dict], column: str) -> str:
        values = [float(row[column]) for row in case if row[column] != "failed"]
        failed = len(case) - len(values)
        text = f"{statistics.median(values):,.0f}" if values else "-"
        if column == "login_ms" and values:
            text += f" ({max(values):,.0f})"
        return text + (f", {failed} failed" if failed else "")

    print("| | asked, 1,000/s | offered, 1,000/s | login, ms | allowed stream lost, % |")
    print("|---|---:|---:|---:|---:|")
    for (contender, asked), case in cases.items():
        cells = [cell(case, column) for column in ("kpps_offered", "login_ms", "allowed_lost_percent")]
        print(f"| {contender} | {asked} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main(sys.argv[1])
