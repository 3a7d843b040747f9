"""About how long a run will take: good enough to give every core the same work.

The estimate decides which runs share a task and which begin first, and the time
that the progress line says is left; results never depend on it. The figures are
microseconds for each copy of a message, rounded, as measured with
`benchmarks/sweep.py --costs`; n is the number of processes.
"""

from __future__ import annotations

from collections.abc import Callable

from ...sim import Config

__all__ = ["seconds"]

_START = 0.002
"""Seconds that a run takes with no messages at all."""

_COPY: dict[str, Callable[[int], float]] = {
    "csps": lambda n: 30,
    "sps": lambda n: 32,
    "mf": lambda n: 15,
    "cykas": lambda n: 18,
    "rst": lambda n: 25 + n + 0.012 * n * n,
    "ks": lambda n: 50 + 3 * n,
    "newtop": lambda n: 20,
    "pak": lambda n: 25 + 0.4 * n,
    "bss": lambda n: 15 + 0.05 * n,
    "fifo": lambda n: 14,
    "adaptive": lambda n: 60 + 0.01 * n,
}


def seconds(config: Config) -> float:
    """The estimate for one run on one core."""
    names = config.names()
    copies = config.number_of_messages() * max(config.workload.reach(names), default=1)
    family = config.about.name.partition("-")[0]
    each = _COPY.get(family, _copy)(len(names))
    return _START + copies * each * 1e-6


def _copy(n: int) -> float:
    return 20
