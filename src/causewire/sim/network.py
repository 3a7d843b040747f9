"""The network: how long a packet takes, and whether it gets there at all.

A packet's way, in this order:

    bandwidth    it waits until the uplink of its sender (or its link) is free,
                 and then holds it for its bytes, metadata included
    loss         it may vanish, after it has used the bandwidth
    latency      drawn for each packet, by itself or by the regions of its ends;
                 a fault may have slowed the link
    reordering   it may be delayed by something extra, and so be overtaken; or
                 channels are FIFO, and it never arrives before an earlier packet
                 of the same link
    duplication  a second copy may travel, with a latency of its own
    arrival      the link may be cut then (the packet is lost) or held

Bandwidth is exact: the time at which an uplink is free is kept as a fraction of
a nanosecond, in units of 1/rate, and only the time of departure is rounded (up),
so that rounding never adds up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from .errors import SimulationError
from .faults import Crash, Fault, Release, Rule, Timeline
from .settings import Settings, by, choice, data_rate, flag, fraction, many, one_of, optional, text
from .times import Constant, Time, Uniform, span

if TYPE_CHECKING:
    from ..core.endpoint import Packet
    from .process import Process
    from .scheduler import Event, Scheduler

__all__ = ["Carrier", "Network", "Regions"]

SECOND = 10**9
MILLISECOND = 10**6


def _row(value: Any, what: str) -> tuple[Time, ...]:
    return many(span)(value, what)


def _place(value: Any, what: str) -> Mapping[str, str]:
    if not isinstance(value, Mapping):
        raise SimulationError(f"{what} must be a table of process = region, not {value!r}")
    return {text(k, what): text(v, f"{what}.{k}") for k, v in value.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Regions(Settings):
    """Latency by the regions of the two ends: row = from, column = to.

    `place` names the region of a process; those it leaves out take the regions
    in turn, in the order of the processes.
    """

    label: ClassVar[str] = "regions"
    kind: ClassVar[str] = "regions"
    names: tuple[str, ...] = field(metadata=by(many(text)))
    matrix: tuple[tuple[Time, ...], ...] = field(metadata=by(many(_row)))
    place: Mapping[str, str] | None = field(default=None, metadata=by(optional(_place)))

    def check(self) -> None:
        n = len(self.names)
        if not n or len(self.matrix) != n or any(len(row) != n for row in self.matrix):
            raise SimulationError(f"regions.matrix must be {n} rows of {n} latencies")

    def places(self, processes: Sequence[str]) -> list[int]:
        """The region of each process, by index."""
        place = self.place or {}
        for process, region in place.items():
            if region not in self.names:
                raise SimulationError(f"regions.place: there is no region {region!r}")
            if process not in processes:
                raise SimulationError(f"regions.place: there is no process {process!r}")
        index = {name: i for i, name in enumerate(self.names)}
        return [
            index[place[process]] if process in place else i % len(self.names)
            for i, process in enumerate(processes)
        ]

    def longest(self) -> int:
        return max(entry.longest() for row in self.matrix for entry in row)


_regions = one_of(Regions)


def _latency(value: Any, what: str) -> Time | Regions:
    if isinstance(value, Regions):
        return value
    if isinstance(value, Mapping) and value.get("kind") == "regions":
        regions: Regions = _regions({k: v for k, v in value.items() if k != "kind"}, what)
        return regions
    return span(value, what)


@dataclass(frozen=True, slots=True, kw_only=True)
class Network(Settings):
    """The network of a run.

    `fifo` may be left open: channels are then FIFO if the protocol needs that,
    and in any order otherwise.
    """

    label: ClassVar[str] = "network"
    latency: Time | Regions = field(
        default=Uniform(1 * MILLISECOND, 9 * MILLISECOND), metadata=by(_latency)
    )
    bandwidth: int | None = field(default=None, metadata=by(optional(data_rate)))
    shared: str = field(default="uplink", metadata=by(choice("uplink", "link")))
    loss: float = field(default=0.0, metadata=by(fraction))
    duplicate: float = field(default=0.0, metadata=by(fraction))
    reorder: float = field(default=0.0, metadata=by(fraction))
    reorder_by: Time = field(default=Uniform(0, 20 * MILLISECOND), metadata=by(span))
    fifo: bool | None = field(default=None, metadata=by(optional(flag)))

    def check(self) -> None:
        if self.loss == 1:
            raise SimulationError("network.loss must be below 1, or nothing would ever arrive")
        if self.fifo and self.reorder:
            raise SimulationError("network.reorder and network.fifo exclude each other")


class Deadlines(dict[int, int]):
    """Times by key, of which those that are past may be forgotten."""

    __slots__ = ("_limit",)

    def __init__(self) -> None:
        super().__init__()
        self._limit = 1024

    def forget(self, now: int) -> None:
        """Drop what is past, once there is much of it."""
        if len(self) > self._limit:
            coming = {key: time for key, time in self.items() if time > now}
            self.clear()
            self.update(coming)
            self._limit = max(1024, 2 * len(coming))


class Carrier:
    """A network at work: takes packets, and has them arrive."""

    __slots__ = (
        "_at",
        "_bandwidth",
        "_drop",
        "_duplicate",
        "_extra",
        "_fifo",
        "_free",
        "_held",
        "_land",
        "_last",
        "_latency",
        "_loss",
        "_matrix",
        "_n",
        "_per_link",
        "_place",
        "_random",
        "_receive",
        "_reorder",
        "_scheduler",
        "carry",
        "duplicated",
        "lost",
        "struck",
        "timeline",
    )

    def __init__(
        self,
        network: Network,
        fifo: bool,
        timeline: Timeline,
        names: Sequence[str],
        scheduler: Scheduler,
        random: Callable[[], float],
        receive: Callable[[Process, Process, Packet, int], None],
        drop: Callable[[Process, Process, Packet], None],
    ) -> None:
        self._scheduler = scheduler
        self._at = scheduler.at
        self._random = random
        self._receive = receive
        self._drop = drop
        self.timeline = timeline
        self.lost = 0
        """Packets lost, by chance or on links that were cut."""
        self.duplicated = 0
        """Packets that the network copied."""
        self.struck: set[tuple[int, int]] = set()
        """Links on which a fault has destroyed or kept something, by index."""
        self._n = len(names)
        regions = network.latency if isinstance(network.latency, Regions) else None
        everywhere = Constant(0) if isinstance(network.latency, Regions) else network.latency
        self._latency = everywhere.sampler(random)
        """Draws a latency, unless regions decide."""
        self._matrix: list[list[Callable[[], int]]] = []
        self._place = regions.places(names) if regions else []
        if regions:
            self._matrix = [[time.sampler(random) for time in row] for row in regions.matrix]
        self._bandwidth = network.bandwidth or 0
        self._per_link = network.shared == "link"
        self._free = Deadlines()
        """When an uplink or link is free again, in nanoseconds times the bandwidth."""
        self._loss = network.loss
        self._duplicate = network.duplicate
        self._reorder = network.reorder
        self._extra = network.reorder_by.sampler(random)
        self._fifo = fifo
        self._last = Deadlines()
        """When the last packet of a link arrives, for FIFO channels."""
        self._held: list[tuple[Process, Process, Packet, int]] = []
        """Packets kept back by a hold, in the order in which they would have arrived."""
        faulty = timeline.pending > 0
        self._land = self._arrive if faulty else receive
        """What happens to a packet at the end of its way."""
        special = network.bandwidth or network.loss or network.duplicate or network.reorder
        plain = not (special or fifo or faulty or regions)
        self.carry = self._carry_plainly if plain else self._carry
        """Take a packet of p for q; returns when it has left p altogether."""

    def _carry_plainly(self, p: Process, q: Process, packet: Packet, size: int, stamp: int) -> int:
        """A packet takes its latency, and that is all."""
        now = self._scheduler.now
        self._at(now + self._latency(), self._receive, p, q, packet, stamp)
        return now

    def _carry(self, p: Process, q: Process, packet: Packet, size: int, stamp: int) -> int:
        leaves = self._scheduler.now
        if self._bandwidth:
            line = p.index * self._n + q.index if self._per_link else p.index
            leaves = self._transmit(line, size)
        if self._loss and self._random() < self._loss:
            self.lost += 1
            self._drop(p, q, packet)
            return leaves
        self._travel(p, q, packet, leaves, stamp)
        if self._duplicate and self._random() < self._duplicate:
            self.duplicated += 1
            self._travel(p, q, packet, leaves, stamp)
        return leaves

    def _transmit(self, line: int, size: int) -> int:
        """Hold a line for so many bytes; returns when it is done (rounded up)."""
        now = self._scheduler.now * self._bandwidth
        free = self._free[line] = max(self._free.get(line, 0), now) + size * SECOND
        self._free.forget(now)
        return -(-free // self._bandwidth)

    def _travel(self, p: Process, q: Process, packet: Packet, leaves: int, stamp: int) -> None:
        if self._matrix:
            latency = self._matrix[self._place[p.index]][self._place[q.index]]()
        else:
            latency = self._latency()
        if self.timeline.slow:
            latency = self.timeline.slowed(p.index, q.index, latency)
        if self._reorder and self._random() < self._reorder:
            latency += self._extra()
        arrives = leaves + latency
        if self._fifo:
            link = p.index * self._n + q.index
            arrives = self._last[link] = max(arrives, self._last.get(link, 0))
            self._last.forget(self._scheduler.now)
        self._at(arrives, self._land, p, q, packet, stamp)

    def _arrive(self, p: Process, q: Process, packet: Packet, stamp: int) -> None:
        """A packet is at the door of q: does the network let it in?"""
        timeline = self.timeline
        if timeline.cut and timeline.is_cut(p.index, q.index):
            self._lose(p, q, packet)
        elif timeline.held and timeline.is_held(p.index, q.index):
            self.struck.add((p.index, q.index))
            self._held.append((p, q, packet, stamp))
        else:
            self._receive(p, q, packet, stamp)

    def busy_until(self, p: Process) -> int:
        """When all that p has sent will have left it."""
        if not self._bandwidth or self._per_link:
            return 0
        return -(-self._free.get(p.index, 0) // self._bandwidth)

    def strike(self, fault: Fault, rules: Sequence[Rule]) -> None:
        """A fault has happened, by which these rules began or ended."""
        if isinstance(fault, Crash):
            self._lose_in_flight(rules[0].concerns)
        elif isinstance(fault, Release):
            waiting = self._held
            self._held = []
            for entry in waiting:
                self._arrive(*entry)

    def _lose_in_flight(self, dead: Callable[[int, int], bool]) -> None:
        """A crash: what is on its way, or kept at the door, is lost."""

        def doomed(event: Event) -> bool:
            return event[2] == self._land and dead(event[3].index, event[4].index)

        gone = [event[3:6] for event in self._scheduler.discard(doomed)]
        gone += [entry[:3] for entry in self._held if dead(entry[0].index, entry[1].index)]
        self._held = [entry for entry in self._held if not dead(entry[0].index, entry[1].index)]
        for p, q, packet in gone:
            self._lose(p, q, packet)

    def _lose(self, p: Process, q: Process, packet: Packet) -> None:
        """A fault destroys a packet."""
        self.lost += 1
        self.struck.add((p.index, q.index))
        self._drop(p, q, packet)
