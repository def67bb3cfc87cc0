#!/usr/bin/env python3
"""SLUICE SENDER RECEIVER DIRECTORY SECONDS REPEATS. Measures `sluice capture` by copy and with --steal.

The network namespace SENDER has the device a0, whose peer b0 in RECEIVER is captured, into a tmpfs (/dev/shm) and into DIRECTORY. Packets of 64
bytes come from processor 1, and the command runs on processor 0, both before other programs there (nice -n -19). Time is from the first packet
until the command has ended, its file written.

Prints: way,to,rate,repeat,offered,arrived,captured,lost,sent_s,seconds,bytes     rate: in bits a second, or max
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

WAYS = {"copy": ["--ring", "64M"], "steal": ["--ring", "64M", "--steal", "--yes"]}
RATES = ["max", "512mbit"]


def one(sluice: str, sender: str, receiver: str, way: str, path: pathlib.Path, length_s: int, rate: str) -> str:
    command = ["nice", "-n", "-19", "taskset", "-c", "0", sluice, "--netns", receiver, "capture", "b0", "-o", str(path), "--force", "--only", "udp dport 5201"]
    capture = subprocess.Popen([*command, *WAYS[way]], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert capture.stderr
    for line in capture.stderr:
        if "Ctrl-C ends" in line:
            break
    frames = ["ip", "netns", "exec", sender, "nice", "-n", "-19", "taskset", "-c", "1", sluice, "lab", "frames", "a0", "--duration", f"{length_s}s"]
    if rate != "max":
        frames += ["--rate", rate]
    sent = json.loads(subprocess.run(frames, check=True, stdout=subprocess.PIPE, text=True).stdout)
    # The time that starting the sender took is not counted.
    begun = time.monotonic() - sent["seconds"]
    capture.send_signal(signal.SIGINT)
    said = capture.stderr.read()
    if capture.wait():
        raise RuntimeError(said)
    seconds = time.monotonic() - begun
    numbers = re.search(r"^(\d+) packets in .*; (\d+) passed the filter", said, re.MULTILINE)
    lost = re.search(r"(\d+) of these are lost|(\d+) found no room", said)
    if not numbers or not lost:
        raise RuntimeError(said)
    captured, arrived, lost = int(numbers[1]), int(numbers[2]), int(lost[1] or lost[2])
    if captured + lost != arrived:
        raise RuntimeError(f"{captured} captured and {lost} lost are not {arrived}: {said}")
    size = path.stat().st_size
    path.unlink()
    return f"{sent['frames']},{arrived},{captured},{lost},{sent['seconds']:.3f},{seconds:.3f},{size}"


def main(sluice: str, sender: str, receiver: str, directory: str, length_s: int, repeats: int) -> None:
    places = {"memory": pathlib.Path("/dev/shm"), "file": pathlib.Path(directory)}
    print("way,to,rate,repeat,offered,arrived,captured,lost,sent_s,seconds,bytes", flush=True)
    for repeat in range(1, repeats + 1):
        for to, place in places.items():
            for way in WAYS:
                for rate in RATES:
                    path = place / f"sluice-bench-{os.getpid()}.pcapng"
                    result = one(sluice, sender, receiver, way, path, length_s, rate)
                    print(f"{way},{to},{rate},{repeat},{result}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:5], int(sys.argv[5]), int(sys.argv[6]))
