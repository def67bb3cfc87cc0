"""Reads the raw results of benches that count instructions per packet, less those of a contender that does nothing."""

import collections
import csv
import statistics
from collections.abc import Callable, Hashable


def rows(path: str) -> list[dict]:
    """Returns the rows of a file of raw results, without its comments."""
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def read(path: str, case_of: Callable[[dict], Hashable], base: str = "generator") -> tuple[list, dict[str, dict]]:
    """Returns the cases in order, and for each contender and case the repeats, less the median of the contender `base` in this case.

    `case_of` names the case of a row.
    """
    runs = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in rows(path):
        runs[row["contender"]][case_of(row)].append(float(row["instructions_per_packet"]))
    above = {case: statistics.median(repeats) for case, repeats in runs.pop(base).items()}
    cases = list(dict.fromkeys(case_of(row) for row in rows(path)))
    return cases, {
        contender: {case: [repeat - above[case] for repeat in repeats] for case, repeats in own.items()}
        for contender, own in runs.items()
    }


def median_and_spread(repeats: list[float]) -> list[str]:
    """Returns the cells of a table: the median of the repeats, and the difference between the most and the least."""
    return [f"{statistics.median(repeats):,.0f}", f"{max(repeats) - min(repeats):.0f}"]
