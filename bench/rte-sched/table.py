#!/usr/bin/env python3
"""Prints the tables of the bench of pipes: millions of packets a second (median, least to most), and how many times those of each rte_sched."""

import pathlib
import statistics
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import pipe_results as results

LIBRARY, NATIVE = "rte_sched_library", "rte_sched_native"
ACCURACY = {
    "mib": "memory, MiB",
    "longest_ns": "longest call, ns",
    "rate_error": "error of a rate",
    "inversions": "packets before a class before theirs",
    "jain": "Jain's index of pipes",
}


def main(path: str) -> None:
    runs = results.read(path)
    print("| pipes | work | contender | Mpps | least to most | times the library | times native |")
    print("|---:|---|---|---:|---:|---:|---:|")
    for (pipes, work, figure), contenders in runs.items():
        if figure != "mpps":
            continue
        for name, values in contenders.items():
            cells = [pipes, work, name, *results.median_and_range(values)]
            cells += [results.times(values, contenders[other]) if other in contenders and name not in (LIBRARY, NATIVE) else "" for other in (LIBRARY, NATIVE)]
            print("| " + " | ".join(map(str, cells)) + " |")
    print("\nCoDel that does not act, ns a packet:\n")
    print("| pipes | work | ns |\n|---:|---|---:|")
    for (pipes, work, figure), contenders in runs.items():
        if figure == "mpps" and "sluice, CoDel" in contenders and work != "half dropped":
            both = zip(contenders["sluice, CoDel"], contenders["sluice"])
            print(f"| {pipes} | {work} | {statistics.median(1e3 / codel - 1e3 / plain for codel, plain in both):.1f} |")
    print("\n| pipes | work | figure | rte_sched, native | sluice |\n|---:|---|---|---:|---:|")
    for (pipes, work, figure), contenders in runs.items():
        if figure in ACCURACY and "sluice" in contenders:
            cells = (f"{statistics.median(contenders[name]):.6g}" if name in contenders else "" for name in (NATIVE, "sluice"))
            print(f"| {pipes} | {work} | {ACCURACY[figure]} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main(sys.argv[1])
