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
from .faults import Fault, Release, Timeline
from .settings import Settings, by, choice, data_rate, flag, fraction, many, one_of, optional, text
from .times import Time, Uniform, time

if TYPE_CHECKING:
    from ..core.endpoint import Packet
    from .process import Process
    from .scheduler import Event, Scheduler

__all__ = ["Carrier", "Network", "Regions"]

SECOND = 10**9
MILLISECOND = 10**6


def _row(value: Any, what: str) -> tuple[Time, ...]:
    return many(time)(value, what)


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
    return time(value, what)


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
    reorder_by: Time = field(default=Uniform(0, 20 * MILLISECOND), metadata=by(time))
    fifo: bool | None = field(default=None, metadata=by(optional(flag)))

    def check(self) -> None:
        if self.loss == 1:
            raise SimulationError("network.loss must be below 1, or nothing would ever arrive")
        if self.fifo and self.reorder:
            raise SimulationError("network.reorder and network.fifo exclude each other")


class Carrier:
    """A network at work: takes packets, and has them arrive."""

    __slots__ = (
        "_arrive",
        "_bandwidth",
        "_draw",
        "_drop",
        "_duplicate",
        "_extra",
        "_fifo",
        "_fixed",
        "_free",
        "_held",
        "_last",
        "_loss",
        "_matrix",
        "_n",
        "_per_link",
        "_place",
        "_prune_at",
        "_random",
        "_reorder",
        "_scheduler",
        "duplicated",
        "lost",
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
        arrive: Callable[[Process, Process, Packet, int], None],
        drop: Callable[[Process, Process, Packet], None],
    ) -> None:
        self._scheduler = scheduler
        self._random = random
        self._arrive = arrive
        self._drop = drop
        self.timeline = timeline
        self.lost = 0
        """Packets lost, by chance or on links that were cut."""
        self.duplicated = 0
        """Packets that the network copied."""
        self._n = len(names)
        self._fixed: int | None = None
        self._draw: Callable[[], int] | None = None
        self._matrix: list[list[Callable[[], int]]] = []
        self._place: list[int] = []
        if isinstance(network.latency, Regions):
            self._place = network.latency.places(names)
            self._matrix = [[t.sampler(random) for t in row] for row in network.latency.matrix]
        else:
            self._fixed = network.latency.fixed()
            self._draw = network.latency.sampler(random)
        self._bandwidth = network.bandwidth or 0
        self._per_link = network.shared == "link"
        self._free: dict[int, int] = {}
        """When an uplink or link is free again, in nanoseconds times the bandwidth."""
        self._loss = network.loss
        self._duplicate = network.duplicate
        self._reorder = network.reorder
        self._extra = network.reorder_by.sampler(random)
        self._fifo = fifo
        self._last: dict[int, int] = {}
        """When the last packet of a link arrives, for FIFO channels."""
        self._prune_at = 1024
        self._held: list[tuple[Process, Process, Packet, int]] = []
        """Packets kept back by a hold, in the order in which they would have arrived."""

    def carry(self, p: Process, q: Process, packet: Packet, size: int, stamp: int) -> int:
        """Take a packet of p for q; returns when it has left p altogether."""
        leaves = self._scheduler.now
        if self._bandwidth:
            leaves = self._transmit(
                p.index * self._n + q.index if self._per_link else p.index, size
            )
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
        bandwidth = self._bandwidth
        now = self._scheduler.now
        free = max(self._free.get(line, 0), now * bandwidth) + size * SECOND
        self._free[line] = free
        if self._per_link and len(self._free) > self._prune_at:
            busy = {k: t for k, t in self._free.items() if t > now * bandwidth}
            self._free = busy
            self._prune_at = max(1024, 2 * len(busy))
        return -(-free // bandwidth)

    def _travel(self, p: Process, q: Process, packet: Packet, leaves: int, stamp: int) -> None:
        latency = self._fixed
        if latency is None:
            if self._draw is not None:
                latency = self._draw()
            else:
                latency = self._matrix[self._place[p.index]][self._place[q.index]]()
        if self.timeline.slow:
            latency = self.timeline.slowed(p.index, q.index, latency)
        if self._reorder and self._random() < self._reorder:
            latency += self._extra()
        arrives = leaves + latency
        if self._fifo:
            arrives = self._in_order(p.index * self._n + q.index, arrives)
        self._scheduler.at(arrives, self._arrival, p, q, packet, stamp)

    def _in_order(self, link: int, arrives: int) -> int:
        """Not before what was sent earlier on the same link."""
        last = self._last
        arrives = last[link] = max(arrives, last.get(link, 0))
        if len(last) > self._prune_at:
            now = self._scheduler.now
            self._last = {k: t for k, t in last.items() if t > now}
            self._prune_at = max(1024, 2 * len(self._last))
        return arrives

    def _arrival(self, p: Process, q: Process, packet: Packet, stamp: int) -> None:
        timeline = self.timeline
        if timeline.cut and timeline.is_cut(p.index, q.index):
            self.lost += 1
            self._drop(p, q, packet)
        elif timeline.held and timeline.is_held(p.index, q.index):
            self._held.append((p, q, packet, stamp))
        else:
            self._arrive(p, q, packet, stamp)

    def busy_until(self, p: Process) -> int:
        """When all that p has sent will have left it."""
        if not self._bandwidth or self._per_link:
            return 0
        return -(-self._free.get(p.index, 0) // self._bandwidth)

    def strike(self, fault: Fault) -> None:
        """A fault happens."""
        dead = self.timeline.apply(fault)
        if dead is not None:
            self._lose_in_flight(dead)
        if isinstance(fault, Release):
            self._release()

    def _lose_in_flight(self, dead: Callable[[int, int], bool]) -> None:
        def doomed(event: Event) -> bool:
            return event[2] == self._arrival and dead(event[3].index, event[4].index)

        gone = [event[3:6] for event in self._scheduler.discard(doomed)]
        kept = []
        for entry in self._held:
            if dead(entry[0].index, entry[1].index):
                gone.append(entry[:3])
            else:
                kept.append(entry)
        self._held = kept
        for p, q, packet in gone:
            self.lost += 1
            self._drop(p, q, packet)

    def _release(self) -> None:
        """What no hold concerns any more arrives, in the order in which it was kept."""
        waiting = self._held
        self._held = []
        for p, q, packet, stamp in waiting:
            self._arrival(p, q, packet, stamp)

    @property
    def held(self) -> int:
        """How many packets are kept back by a hold."""
        return len(self._held)
