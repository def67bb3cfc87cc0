#!/usr/bin/env python3
"""Prints the tables of the lookup bench: ns per packet, least and median of the repeats, and the goals."""

import collections
import csv
import statistics
import sys

BUSY = 0.10  # a spread above it is no longer the program's own


def main(path: str) -> None:
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    raw, net, units = collections.defaultdict(list), collections.defaultdict(list), {}
    loops = []
    for row in rows:
        key = row["what"], row["packets"], row["rules"]
        raw[key].append(float(row["value"]))
        net[key].append(float(row["value"]) - float(row["baseline"]))
        units[key] = row["unit"]
        if row["what"] == "parse":
            loops.append(float(row["baseline"]))
    loop = statistics.median(loops)

    def middle(what: str, packets: str, rules: int) -> float:
        return statistics.median(net[what, packets, str(rules)])

    print(f"A program that does nothing takes {loop:.1f} ns. Least and median above the baseline of each, ns:\n")
    busy = 0
    counts = sorted({int(key[2]) for key in net if units[key] == "ns"})
    print(f"| {'what':24} | {'packets':14} |" + "".join(f" {count or 'no':>7} rules |" for count in counts))
    print(f"|{'-' * 26}|{'-' * 16}|" + "".join("-" * 14 + ":|" for _ in counts))
    for what, packets in dict.fromkeys(key[:2] for key in net if units[key] == "ns"):
        cells = []
        for count in counts:
            values = net.get((what, packets, str(count)))
            if not values:
                cells.append("")
                continue
            whole = raw[what, packets, str(count)]
            wide = max(whole) - min(whole) > BUSY * statistics.median(whole)
            busy += wide
            cells.append(f"{min(values):.0f} ({statistics.median(values):.0f}){'~' if wide else ''}")
        print(f"| {what:24} | {packets:14} |" + "".join(f" {cell:>13} |" for cell in cells))
    if busy:
        print(f"\n~ the repeats differ by more than {BUSY:.0%}, {busy} times: the machine was busy")

    print(f"\n| {'building':34} | rules | median ms |\n|{'-' * 36}|------:|----------:|")
    for key in (key for key in raw if units[key] == "ms"):
        print(f"| {key[0]:34} | {key[2]:>5} | {statistics.median(raw[key]):9.1f} |")
    print(f"\n| {'memory':34} | rules |     bytes |\n|{'-' * 36}|------:|----------:|")
    for key in (key for key in raw if units[key] == "bytes"):
        print(f"| {key[0]:34} | {key[2]:>5} | {raw[key][0]:9.0f} |")
    rules_bytes = raw["memory of rows", "-", "4096"][0] / 4.096
    flow_key = next(key for key in raw if key[0] == "memory of the flow table")
    flow_bytes = raw[flow_key][0] / int(flow_key[1].split()[0]) * 10_000
    print(f"\n1,000 rules: {rules_bytes / 1e6:.2f} MB of rows; 10,000 flows: {flow_bytes / 1e6:.2f} MB")

    parse = middle("parse", "one IPv4", 0)
    print(f"\n| {'goal':62} | at most | is     |     |\n|{'-' * 64}|---------|--------|-----|")

    def goal(what: str, most: float, value: float) -> None:
        print(f"| {what:62} | {most:7.4g} | {value:6.3g} | {'met' if value <= most else 'missed'} |")

    flow = middle("whole", "one flow", 1)
    goal("whole path, one flow: 4,096 rules as against 1", 1.2, middle("whole", "one flow", 4096) / flow)
    for packets in "matching", "foreign":
        goal(
            f"lookup, {packets}: 4,096 rules as against 1",
            1.2,
            middle("lookup", packets, 4096) / middle("lookup", packets, 1),
        )
    for walk in "walk by bpf_loop", "walk by bounded loop":
        for packets in "matching", "foreign":
            for count, faster in (256, 3), (4096, 30):
                value = middle("lookup", packets, count) / middle(walk, packets, count)
                goal(f"lookup as against {walk}, {packets}, {count} rules", 1 / faster, value)
    goal("whole path as against parsing, one flow, the loop included", 6, (flow + loop) / (parse + loop))
    many = middle("whole", "65536 flows", 1)
    goal("whole path as against parsing, 65,536 flows, the loop included", 9, (many + loop) / (parse + loop))
    for count in 1, 256, 4096:
        value = middle("whole", "new flows", count) / middle("whole without flow table", "new flows", count)
        goal(f"flood of new flows as against no flow table, {count} rules", 1.05, value)
    goal("compile and stage 4,096 rules, ms", 100, statistics.median(raw["compile and stage", "-", "4096"]))
    print(f"\nWithout the loop, the whole path takes {flow / parse:.0f} and {many / parse:.0f} times as long as parsing.")


if __name__ == "__main__":
    main(sys.argv[1])
