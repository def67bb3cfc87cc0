"""Reads the raw results of the benches of the scheduler of pipes, and makes cells of their tables."""

import collections
import statistics

import instructions


def read(path: str) -> dict[tuple[int, str, str], dict[str, list[float]]]:
    """Returns the repeats of each contender, by the number of pipes, the work and the figure."""
    runs = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in instructions.rows(path):
        runs[int(row["pipes"]), row["work"], row["figure"]][row["contender"]].append(float(row["value"]))
    return runs


def median_and_range(repeats: list[float]) -> list[str]:
    """Returns the cells of a table: the median of the repeats, and the least and the most."""
    return [f"{statistics.median(repeats):.1f}", f"{min(repeats):.1f} to {max(repeats):.1f}"]


def times(own: list[float], other: list[float]) -> str:
    """Returns the median of the ratios of runs that followed each other; nothing if the other did not run."""
    return f"{statistics.median(a / b for a, b in zip(own, other)):.2f}" if other else ""
