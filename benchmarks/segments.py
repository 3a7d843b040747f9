"""Whether the kernel should cut datagrams (UDP GSO and GRO): processor time of bare sockets.

    python benchmarks/segments.py [--megabytes N] [--repetitions R]

One process sends bursts of up to 60,000 bytes to another on the loopback interface, and waits
after each burst for a word of the receiver. Linux only. The table has milliseconds of processor
time per megabyte, of both processes together: medians of the repetitions.

    plain       a system call for each datagram
    gso         one call for all datagrams of a burst, which the kernel cuts (UDP_SEGMENT)
    gso, gro    the same, and the receiver takes many in one call (UDP_GRO)
"""

from __future__ import annotations

import argparse
import multiprocessing as mp
import resource
import socket
from statistics import median
from typing import Any

UDP_SEGMENT, UDP_GRO = 103, 104
"""Socket options of Linux, which Python has no names for."""

BURST = 60_000
SIZES = (1232, 4096, 16_384, 32_000)
"""Lengths of datagrams; nodes use the first to other machines, and the last on this one."""

KINDS = ("plain", "gso", "gso, gro")


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _receive(pipe: Any, answers: Any, gro: bool, burst: int, bursts: int) -> None:
    """Take bursts, and say after each that it has come; send the processor time."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        if gro:
            sock.setsockopt(socket.IPPROTO_UDP, UDP_GRO, 1)
        pipe.send(sock.getsockname())
        before = _cpu()
        for _ in range(bursts):
            left = burst
            while left > 0:
                left -= len(sock.recv(65536))
            sock.sendto(b".", answers)
        pipe.send(_cpu() - before)


def measure(kind: str, size: int, megabytes: int) -> float:
    """Return milliseconds of processor time per megabyte."""
    each = BURST // size
    bursts = -(-megabytes * 1_000_000 // (each * size))
    ours, theirs = mp.Pipe()
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as answers,
    ):
        answers.bind(("127.0.0.1", 0))
        answers.settimeout(30)
        arguments = (theirs, answers.getsockname(), kind == "gso, gro", each * size, bursts)
        receiver = mp.Process(target=_receive, args=arguments, daemon=True)
        receiver.start()
        sock.connect(ours.recv())
        if kind != "plain":
            sock.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, size)
        datagrams = [bytes(size)] * each if kind == "plain" else [bytes(size * each)]
        before = _cpu()
        for _ in range(bursts):
            for datagram in datagrams:
                sock.send(datagram)
            answers.recv(16)
        received: float = ours.recv()
        spent = _cpu() - before + received
        receiver.join()
    return 1e9 * spent / (bursts * each * size)


def main() -> None:
    """Measure all kinds in turn, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--megabytes", type=int, default=60)
    parser.add_argument("--repetitions", type=int, default=5)
    args = parser.parse_args()
    found: dict[tuple[int, str], list[float]] = {}
    for _ in range(args.repetitions):
        for size in SIZES:
            for kind in KINDS:
                found.setdefault((size, kind), []).append(measure(kind, size, args.megabytes))
    print(f"{'bytes':>8}" + "".join(f"{kind:>10}" for kind in KINDS))
    for size in SIZES:
        print(f"{size:8}" + "".join(f"{median(found[size, kind]):10.2f}" for kind in KINDS))


if __name__ == "__main__":
    main()
