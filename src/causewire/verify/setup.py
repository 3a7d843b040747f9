"""What is checked: a protocol, a number of processes that run it, and a network.

The network is a value. Packets on their way to a process lie in its inbox, from
which any may be taken next, or, on FIFO channels, the oldest of each sender. The
faults of the network are bounded, and so are the calls that drivers make unasked:

    loss        up to this many packets disappear
    duplicates  up to this many packets are received and stay in the inbox
    ticks       up to this many calls of `retransmit`, at any moment
    rounds      when nothing is left to happen and not everything is done, every
                process calls `retransmit`, at most this many times: a timer that
                fires when all is quiet
    forgets     up to this many times a process forgets another one (`obituaries`)

How much of each has been used up is part of a state: its *phase*. So is whether
a message has been marked (see `ghost`).
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from itertools import product

from .. import protocols
from ..core.endpoint import Endpoint
from ..core.errors import LocalProtocolError
from ..protocols import Protocol
from .driver import Driver, driver_named

__all__ = [
    "FORGET",
    "FREE",
    "LOSS",
    "MARK",
    "PROPERTIES",
    "REPEAT",
    "ROUND",
    "TICK",
    "NetworkModel",
    "Phases",
    "Setup",
]

FREE = 0
MARK = 1
LOSS = 2
REPEAT = 4
TICK = 8
ROUND = 16
FORGET = 32
"""What a move costs, as bits: a reaction to a repeated packet may also be marked."""

COSTS = 64

PROPERTIES = ("causal order", "FIFO order", "duplicate", "undelivered", "unsent", "left over")
"""Kinds of violation; an exception that an endpoint raises is always one.

`undelivered`, `unsent` and `left over` are judged where nothing more can happen: a
message did not arrive, a client still waits to send, a buffer is not empty.
"""


@dataclass(frozen=True, slots=True)
class NetworkModel:
    """What may happen to packets and to processes, and how often.

    Attributes:
        fifo: Whether channels are FIFO.
        loss: Up to this many packets are lost.
        duplicates: Up to this many packets are received twice.
        ticks: Up to this many calls of `retransmit`, at any moment.
        rounds: Up to this many calls of `retransmit` by all, when nothing else happens.
        forgets: Up to this many times a process forgets another one, at any moment
            (see `obituaries`).
        fence: Whether drivers follow rule F1; otherwise they go on talking to a
            process that they have forgotten.
        obituaries_first: Whether drivers follow rule F2; otherwise obituaries spread
            by notices alone.
        frozen: Processes that receive nothing; they may send. What others send to each
            other must be delivered all the same.
    """

    fifo: bool = False
    loss: int = 0
    duplicates: int = 0
    ticks: int = 0
    rounds: int = 0
    forgets: int = 0
    fence: bool = True
    obituaries_first: bool = True
    frozen: tuple[int, ...] = ()

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
        for name in ("loss", "duplicates", "ticks", "rounds", "forgets"):
            bound = getattr(self, name)
            parts += [f"{name} up to {bound}"] if bound else []
        parts += [] if self.fence else ["without F1"]
        parts += [] if self.obituaries_first else ["without F2"]
        parts += [f"p{k} frozen" for k in self.frozen]
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Setup:
    """What a search checks, except for the program: a protocol, processes and a network.

    Attributes:
        protocol: A name that `causewire.protocols` knows, or a `Protocol`; options of the
            protocol are part of the value (`Protocol.with_options`).
        processes: How many processes there are; they are named p0, p1, ...
        network: What may happen to packets.
        driver: The calls by which endpoints are driven: `packets` or `runs` (see `driver`).

    Raises:
        LocalProtocolError: An unknown driver, or a network that it cannot have.
    """

    protocol: str | Protocol
    processes: int
    network: NetworkModel = field(default_factory=NetworkModel)
    driver: str = "packets"

    def __post_init__(self) -> None:
        if driver_named(self.driver).pumps and self.network != NetworkModel():
            raise LocalProtocolError(
                "the driver runs has the links of a node, which lose, repeat and reorder no "
                f"messages: it takes no other network, such as {self.network}"
            )

    @property
    def calls(self) -> Driver:
        """The driver as a value."""
        return driver_named(self.driver)

    @property
    def about(self) -> Protocol:
        """The protocol as a value."""
        return protocols.describe(self.protocol)

    @property
    def name(self) -> str:
        """The name of the protocol."""
        return self.about.name

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the processes."""
        return tuple(f"p{k}" for k in range(self.processes))

    def endpoint(self, index: int) -> Endpoint:
        """Return a new endpoint for process `index`."""
        names = self.names
        endpoint = protocols.create(self.protocol, names[index], names)
        self.calls.check(endpoint)
        if self.network.forgets:
            copy(endpoint).forget(names[index - 1])  # it must be able to
        return endpoint


class Phases:
    """The phases of a search, numbered: odd while nothing is marked.

    The first is 1. (Even ones are never reached if there are no marks.)
    """

    first = 1

    def __init__(self, network: NetworkModel, marks: bool) -> None:
        limits = (
            network.loss,
            network.duplicates,
            network.ticks,
            network.rounds,
            network.forgets,
        )
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
        """Return whether a message has been marked in a phase."""
        return bool(self.values[phase][0])
