#!/usr/bin/env python3
"""INTERFACE PACKETS CLOCKS. Sends UDP packets of 64 bytes out of an interface of this network namespace, as live XDP frames.

CLOCKS is how often the clock is read in front of each, which takes some 30 ns; 0: frames go as fast as they are made.
Prints the seconds that it took. Needs root and Linux 5.18 (BPF_F_TEST_XDP_LIVE_FRAMES).
"""

import ctypes
import os
import platform
import socket
import struct
import sys
import time

BPF = {"x86_64": 321, "aarch64": 280}[platform.machine()]
PROG_LOAD, PROG_TEST_RUN = 5, 10
PROG_TYPE_XDP = 6
LIVE_FRAMES = 1 << 1
LIBC = ctypes.CDLL(None, use_errno=True)


def bpf(command: int, attributes: bytes) -> int:
    buffer = ctypes.create_string_buffer(attributes)
    result = LIBC.syscall(BPF, command, buffer, len(attributes))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"bpf command {command}: {os.strerror(number)}")
    return result


def redirecting(ifindex: int, clocks: int) -> int:
    """A program that reads the clock (helper 5), and sends each frame out of an interface: bpf_redirect(ifindex, 0), helper 23."""
    code = b"".join(
        struct.pack("<BBhi", *instruction)
        for instruction in [(0x85, 0, 0, 5)] * clocks + [(0xB7, 1, 0, ifindex), (0xB7, 2, 0, 0), (0x85, 0, 0, 23), (0x95, 0, 0, 0)]
    )
    instructions, license_text = ctypes.create_string_buffer(code), ctypes.create_string_buffer(b"GPL")
    attributes = struct.pack(
        "<IIQQIIQII16sII", PROG_TYPE_XDP, len(code) // 8, ctypes.addressof(instructions), ctypes.addressof(license_text), 0, 0, 0, 0, 0, b"flood", 0, 0
    )
    return bpf(PROG_LOAD, attributes)


def frame() -> bytes:
    udp = struct.pack(">HHHH", 4000, 7, 30, 0) + bytes(22)
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0, bytes([10, 77, 0, 1]), bytes([10, 77, 0, 2]))
    words = sum(struct.unpack(">10H", ip))
    words = (words & 0xFFFF) + (words >> 16)
    ip = ip[:10] + struct.pack(">H", ~((words & 0xFFFF) + (words >> 16)) & 0xFFFF) + ip[12:]
    return bytes.fromhex("0200000077020200000077010800") + ip + udp


def main(interface: str, packets: int, clocks: int) -> None:
    program = redirecting(socket.if_nametoindex(interface), clocks)
    data = ctypes.create_string_buffer(frame(), 64)

    def send(count: int) -> None:
        bpf(PROG_TEST_RUN, struct.pack("<IIIIQQIIIIQQIII4x", program, 0, 64, 0, ctypes.addressof(data), 0, count, 0, 0, 0, 0, 0, LIVE_FRAMES, 0, 64))

    begun = time.monotonic()
    send(packets)
    print(f"{time.monotonic() - begun:.6f}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
