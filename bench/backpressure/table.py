#!/usr/bin/env python3
"""Prints the table of the bench of backpressure: millions of packets a second (median, least to most), and the cost as a multiple of that without."""

import pathlib
import statistics
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import pipe_results as results


def main(path: str) -> None:
    runs = results.read(path)
    print("| pipes | work | contender | Mpps | least to most | times the cost without | held classes | packets of a dequeue |")
    print("|---:|---|---|---:|---:|---:|---:|---:|")
    for (pipes, work, figure), contenders in runs.items():
        if figure != "mpps":
            continue
        for name, values in contenders.items():
            cells = [pipes, work, name, *results.median_and_range(values)]
            cells.append("" if name == "without" else results.times(contenders["without"], values))
            for other in ("held_classes", "packets_of_a_dequeue"):
                cells.append(f"{statistics.median(runs[pipes, work, other][name]):.1f}")
            print("| " + " | ".join(map(str, cells)) + " |")


if __name__ == "__main__":
    main(sys.argv[1])
