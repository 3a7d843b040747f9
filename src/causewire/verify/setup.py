"""What is checked: a protocol, so many processes of it, and a network.

The network is a value. Packets on their way to a process lie in its inbox, from
which any may be taken next, or, on FIFO channels, the oldest of each sender. What
the network may do wrong is bounded, and so is what the drivers may do unasked:

    loss        so many packets disappear
    duplicates  so many packets are received and stay in the inbox
    ticks       so many calls of `retransmit`, at any moment
    rounds      when nothing is left to happen and not all is done, every process
                calls `retransmit`, at most so often: the timer that comes round
                when all is quiet

How much of each has been used up is part of a state: its *phase*. So is whether
a message has been marked (see `ghost`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import Any

from .. import protocols
from ..core.endpoint import Endpoint
from .mutants import MUTANTS

__all__ = [
    "FREE",
    "LOSS",
    "MARK",
    "PROPERTIES",
    "REPEAT",
    "ROUND",
    "TICK",
    "Network",
    "Phases",
    "Setup",
]

FREE = 0
MARK = 1
LOSS = 2
REPEAT = 4
TICK = 8
ROUND = 16
"""What a move costs: bits, as a repeated packet may have its reaction marked."""

COSTS = 32

PROPERTIES = ("causal order", "FIFO order", "duplicate", "undelivered", "unsent", "left over")
"""Kinds of violation; an exception that an endpoint raises is always one.

`undelivered`, `unsent` and `left over` are judged where nothing more can happen: a
message did not arrive, a client still waits to send, a buffer is not empty.
"""


@dataclass(frozen=True, slots=True)
class Network:
    """What may happen to a packet, and how often."""

    fifo: bool = False
    loss: int = 0
    duplicates: int = 0
    ticks: int = 0
    rounds: int = 0

    @property
    def reliable(self) -> bool:
        """Whether each packet arrives exactly once."""
        return not self.loss and not self.duplicates

    @property
    def silent(self) -> bool:
        """Whether no packet is ever sent again: none is lost, and nobody is asked to."""
        return self.reliable and not self.ticks and not self.rounds

    def __str__(self) -> str:
        parts = ["FIFO channels" if self.fifo else "any order"]
        for name in ("loss", "duplicates", "ticks", "rounds"):
            bound = getattr(self, name)
            parts += [f"{name} up to {bound}"] if bound else []
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Setup:
    """A protocol under a network: all that a search has to know, but the workload."""

    protocol: str
    processes: int
    network: Network = field(default_factory=Network)
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the processes."""
        return tuple(f"p{k}" for k in range(self.processes))

    def endpoint(self, index: int) -> Endpoint:
        """A new endpoint for one process: of the registry, or one with a mistake in it."""
        names = self.names
        mutant = MUTANTS.get(self.protocol)
        if mutant is not None:
            return mutant.endpoint(names[index], names, **dict(self.options))
        return protocols.create(self.protocol, names[index], names, **dict(self.options))


class Phases:
    """The phases of a search, numbered: odd while nothing is marked.

    The first is 1. (Even ones are never reached if there are no marks.)
    """

    first = 1

    def __init__(self, network: Network, marks: bool) -> None:
        limits = (network.loss, network.duplicates, network.ticks, network.rounds)
        used = product(*(range(limit + 1) for limit in limits))
        self.values = [(marked, *each) for each in used for marked in (1, 0)]
        numbers = {value: k for k, value in enumerate(self.values) if marks or not value[0]}
        self.after: list[list[int]] = []
        """`after[phase][cost]`: the phase that a move leads to, -1 if it cannot be paid."""
        for value in self.values:
            row = []
            for cost in range(COSTS):
                spent = tuple(used + (cost >> k & 1) for k, used in enumerate(value))
                row.append(numbers.get(spent, -1))
            self.after.append(row)
        self.width = (len(self.values) - 1).bit_length()

    def __len__(self) -> int:
        return len(self.values)

    def marked(self, phase: int) -> bool:
        return bool(self.values[phase][0])
