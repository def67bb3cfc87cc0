#!/usr/bin/env python3
"""Sends requests through forwards and changes one of them meanwhile; run.sh says what is printed.

Usage: measure.py SLUICE CLIENT ROUTER SERVER CHANGES FORWARDS     (CLIENT, ROUTER, SERVER: network namespaces)
"""

import ctypes
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time

LISTEN, TARGET = "10.78.0.1", "10.79.0.2"
# The first changes; its target is one of these ports in turn.
PORTS = (80, 81, 82)
TARGET_PORTS = (8000, 8001)
BYTES = bytes(range(250)) * 4
# Between two requests of a client: the changes need their part of the processors.
PAUSE_S = 0.001
LIMIT_S = 15.0


def enter(namespace: str) -> None:
    """Moves the calling thread into a network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/run/netns/{namespace}", "rb") as file:
        if libc.setns(file.fileno(), 0):
            raise OSError(ctypes.get_errno(), f"entering {namespace}")


def receive(stream: socket.socket) -> bytes:
    """Everything up to the end of a stream."""
    got = b""
    while part := stream.recv(65536):
        got += part
    return got


def serve(namespace: str, port: int, ready: threading.Semaphore) -> None:
    """Sends back what each connection sends, one connection after the other."""
    enter(namespace)
    with socket.create_server(("", port), backlog=128) as listener:
        ready.release()
        while True:
            stream, _ = listener.accept()
            with stream:
                try:
                    stream.sendall(receive(stream))
                except OSError as error:
                    print(f"port {port}: {error}", file=sys.stderr)


class Client(threading.Thread):
    """Sends requests to a port, one after the other, and counts them."""

    def __init__(self, namespace: str, port: int) -> None:
        super().__init__(daemon=True)
        self.namespace, self.port = namespace, port
        self.ends = False
        self.done = self.failed = 0

    def request(self) -> None:
        """One connection: what is sent comes back."""
        with socket.create_connection((LISTEN, self.port), LIMIT_S) as stream:
            stream.sendall(BYTES)
            stream.shutdown(socket.SHUT_WR)
            if receive(stream) != BYTES:
                raise OSError("the answer is not what was sent")

    def run(self) -> None:
        enter(self.namespace)
        while not self.ends:
            try:
                self.request()
                self.done += 1
            except OSError as error:
                self.failed += 1
                print(f"port {self.port}: {error}", file=sys.stderr)
            time.sleep(PAUSE_S)


def policy(forwards: int, target_port: int) -> str:
    """A policy whose first forward leads to this port of the target."""

    def forward(n: int) -> dict[str, object]:
        port = PORTS[n] if n < len(PORTS) else 10000 + n
        return {"name": f"f{n}", "protocol": "tcp", "port": port, "targets": f"{TARGET}:{target_port if n == 0 else TARGET_PORTS[0]}"}

    return json.dumps({
        "scheduler": "deficit_round_robin",
        "classes": [{"id": 0}],
        "default_class": 0,
        "forwards": [forward(n) for n in range(forwards)],
    })


def main(sluice: str, client: str, router: str, server: str, changes: int, forwards: int) -> None:
    ready = threading.Semaphore(0)
    for port in TARGET_PORTS:
        threading.Thread(target=serve, args=(server, port, ready), daemon=True).start()
    for _ in TARGET_PORTS:
        ready.acquire()
    clients = [Client(client, port) for port in PORTS]
    with tempfile.TemporaryDirectory() as directory:
        policies = [os.path.join(directory, f"{port}.json") for port in TARGET_PORTS]
        for path, port in zip(policies, TARGET_PORTS):
            with open(path, "w", encoding="utf-8") as file:
                file.write(policy(forwards, port))

        before = (0, 0)
        print("change,ms,requests,failed")
        for n in range(changes + 1):
            command = ["apply", "lan0", policies[n % 2]] if n else ["up", "lan0", "--policy", policies[0]]
            begin = time.monotonic()
            changed = subprocess.run([sluice, "--netns", router, *command], capture_output=True, text=True, check=False)
            ms = (time.monotonic() - begin) * 1e3
            if changed.returncode:
                sys.exit(f"sluice {' '.join(command)}: {changed.stderr}")
            if not n:
                for one in clients:
                    one.start()
                    time.sleep(PAUSE_S)
            if n == changes:
                for one in clients:
                    one.ends = True
                    one.join()
            now = (sum(one.done for one in clients), sum(one.failed for one in clients))
            print(f"{n},{ms:.1f},{now[0] - before[0]},{now[1] - before[1]}", flush=True)
            before = now


if __name__ == "__main__":
    main(*sys.argv[1:5], *map(int, sys.argv[5:7]))
