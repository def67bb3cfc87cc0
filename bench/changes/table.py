#!/usr/bin/env python3
"""Prints what the bench of changes found: changes, their times, and requests that were done and failed meanwhile.

Fails if a request has.
"""

import csv
import statistics
import sys


def main(path: str) -> int:
    with open(path, encoding="utf-8") as file:
        up, *changes = csv.DictReader(line for line in file if not line.startswith("#"))
    times = sorted(float(row["ms"]) for row in changes)
    done, failed = (sum(int(row[column]) for row in changes) for column in ("requests", "failed"))
    print("| changes | median | p99 | longest | `up` | requests done | failed |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    p99 = times[min(len(times) - 1, len(times) * 99 // 100)]
    print(f"| {len(times):,} | {statistics.median(times):.0f} ms | {p99:.0f} ms | {times[-1]:.0f} ms | {float(up['ms']):.0f} ms | {done:,} | {failed} |")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
