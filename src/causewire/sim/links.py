"""The links between processes at work: packets go in, and their arrivals are scheduled.

`network.py` describes the steps that a packet goes through. `Links.carry` does
them up to the arrival, which it schedules as an event; when that happens,
`Links.admits` says whether a fault stops the packet at the last moment. Packets
that are lost are put on the list `dropped`.

Bandwidth is exact: the time at which an uplink becomes free is kept as a fraction
of a nanosecond, in units of 1/rate, and only the time of departure is rounded
(up), so that rounding errors never add up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from .faults import Crash, Fault, Release, Rule, Thaw, Timeline
from .network import Regions, SimulatedNetwork
from .scheduler import ARRIVAL, Event, Scheduler
from .times import Constant

if TYPE_CHECKING:
    from ..core.endpoint import Packet
    from .process import Process

__all__ = ["Arrival", "Links"]

SECOND = 10**9

Arrival = tuple["Process", "Process", "Packet", int]
"""A packet at its receiver: sender, receiver, the packet, and its stamp."""


class Deadlines(dict[int, int]):
    """Times by key, of which those that have passed may be forgotten."""

    __slots__ = ("_limit",)

    def __init__(self) -> None:
        super().__init__()
        self._limit = 1024

    def forget(self, now: int) -> None:
        """Remove the times that have passed, if there are many entries."""
        if len(self) > self._limit:
            coming = {key: time for key, time in self.items() if time > now}
            self.clear()
            self.update(coming)
            self._limit = max(1024, 2 * len(coming))


class Links:
    """All links of a run.

    Args:
        network: The settings.
        fifo: Whether each link keeps its packets in order.
        timeline: The faults of the run.
        names: The processes, in the order of their indexes.
        scheduler: Where arrivals are scheduled.
        random: The random generator of the run.
    """

    __slots__ = (
        "_bandwidth",
        "_duplicate",
        "_extra",
        "_fifo",
        "_free",
        "_held",
        "_last",
        "_latency",
        "_loss",
        "_matrix",
        "_n",
        "_per_link",
        "_place",
        "_random",
        "_reorder",
        "_scheduler",
        "carry",
        "dropped",
        "duplicated",
        "lost",
        "struck",
        "timeline",
    )

    def __init__(
        self,
        network: SimulatedNetwork,
        fifo: bool,
        timeline: Timeline,
        names: Sequence[str],
        scheduler: Scheduler,
        random: Callable[[], float],
    ) -> None:
        self._scheduler = scheduler
        self._random = random
        self.timeline = timeline
        self.lost = 0
        """Packets lost, by chance or on links that were cut."""
        self.duplicated = 0
        """Packets that the network duplicated."""
        self.dropped: list[tuple[Process, Process, Packet]] = []
        """Packets lost since the driver last emptied this list."""
        self.struck: set[tuple[int, int]] = set()
        """Links on which a fault has destroyed or held back a packet, by index."""
        self._n = len(names)
        regions = network.latency if isinstance(network.latency, Regions) else None
        everywhere = Constant(0) if isinstance(network.latency, Regions) else network.latency
        self._latency = everywhere.sampler(random)
        """Draws a latency, if there are no regions."""
        self._matrix: list[list[Callable[[], int]]] = []
        self._place = regions.places(names) if regions else []
        if regions:
            self._matrix = [[time.sampler(random) for time in row] for row in regions.matrix]
        self._bandwidth = network.bandwidth or 0
        self._per_link = network.shared == "link"
        self._free = Deadlines()
        """When an uplink or link becomes free, in nanoseconds times the bandwidth."""
        self._loss = network.loss
        self._duplicate = network.duplicate
        self._reorder = network.reorder
        self._extra = network.reorder_by.sampler(random)
        self._fifo = fifo
        self._last = Deadlines()
        """When the last packet of a link arrives, for FIFO channels."""
        self._held: list[Arrival] = []
        """Packets held back by a fault, in the order in which they would have arrived."""
        special = network.bandwidth or network.loss or network.duplicate or network.reorder
        plain = not (special or fifo or timeline.pending or regions)
        self.carry = self._carry_plainly if plain else self._carry
        """Carry a packet from p to q, and return the time at which it has left p."""

    def _carry_plainly(self, p: Process, q: Process, packet: Packet, size: int, stamp: int) -> int:
        """The usual case: a packet takes its latency, and nothing can happen to it."""
        scheduler = self._scheduler
        now = scheduler.now
        scheduler.at(now + self._latency(), ARRIVAL, p, q, packet, stamp)
        return now

    def _carry(self, p: Process, q: Process, packet: Packet, size: int, stamp: int) -> int:
        leaves = self._scheduler.now
        if self._bandwidth:
            line = p.index * self._n + q.index if self._per_link else p.index
            leaves = self._transmit(line, size)
        if self._loss and self._random() < self._loss:
            self.lost += 1
            self.dropped.append((p, q, packet))
            return leaves
        self._travel(p, q, packet, leaves, stamp)
        if self._duplicate and self._random() < self._duplicate:
            self.duplicated += 1
            self._travel(p, q, packet, leaves, stamp)
        return leaves

    def _transmit(self, line: int, size: int) -> int:
        """Occupy a line for `size` bytes, and return when they have left (rounded up)."""
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
        self._scheduler.at(arrives, ARRIVAL, p, q, packet, stamp)

    def admits(self, p: Process, q: Process, packet: Packet, stamp: int) -> bool:
        """Return whether a packet that arrives now gets through to q.

        If the link is cut, the packet is lost; if it is held, `strike` gives the
        packet out when the hold ends.
        """
        timeline = self.timeline
        if timeline.cut and timeline.is_cut(p.index, q.index):
            self._lose(p, q, packet)
            return False
        if timeline.held and timeline.is_held(p.index, q.index):
            self.struck.add((p.index, q.index))
            self._held.append((p, q, packet, stamp))
            return False
        return True

    def busy_until(self, p: Process) -> int:
        """Return when everything that p has sent will have left it."""
        if not self._bandwidth or self._per_link:
            return 0
        return -(-self._free.get(p.index, 0) // self._bandwidth)

    def strike(self, fault: Fault, rules: Sequence[Rule]) -> list[Arrival]:
        """Apply a fault to the packets on their way.

        Args:
            fault: The fault that happens now.
            rules: The rules that began or ended with it (`Timeline.apply`).

        Returns:
            The packets that were held back and arrive now, in order. Ask `admits`
            about each: another fault may still stop it.
        """
        if isinstance(fault, Crash):
            self._lose_in_flight(rules[0].concerns)
        elif isinstance(fault, Release | Thaw):
            held = self._held
            self._held = []
            return held
        return []

    def _lose_in_flight(self, dead: Callable[[int, int], bool]) -> None:
        """Lose the packets on these links, those on their way and those held back."""

        def doomed(event: Event) -> bool:
            return event[2] is ARRIVAL and dead(event[3].index, event[4].index)

        gone = [event[3:6] for event in self._scheduler.discard(doomed)]
        gone += [entry[:3] for entry in self._held if dead(entry[0].index, entry[1].index)]
        self._held = [entry for entry in self._held if not dead(entry[0].index, entry[1].index)]
        for p, q, packet in gone:
            self._lose(p, q, packet)

    def _lose(self, p: Process, q: Process, packet: Packet) -> None:
        """A fault destroys a packet."""
        self.lost += 1
        self.struck.add((p.index, q.index))
        self.dropped.append((p, q, packet))
