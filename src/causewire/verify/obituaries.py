"""Forgetting a process in the model: obituaries, and the two rules of drivers.

A process may *forget* another one at any moment (`NetworkModel.forgets` says how often
this happens in a run). From then on it knows the obituary of that process: a fact that
only spreads.

    F1  Whoever knows the obituary of a process accepts nothing from it and sends
        nothing to it.
    F2  Everything that a process sends tells first which obituaries it knows
        (`Headed`), and the receiver forgets these processes before it looks at the
        rest.

Whoever learns of an obituary also tells everybody else at once, the dead process
included (`Notice`), so that all processes know of it in the end. A process that learns
of its own obituary stops. Obituaries are believed whoever tells them, even a process
that is itself forgotten.

What must hold then: no delivery violates causal order, except that a process may lack
for ever what a process that it has forgotten sent to it (it must not deliver it later);
and when nothing more can happen, everything that processes without an obituary sent to
each other has been delivered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Self

from ..core.endpoint import Packet
from .setup import NetworkModel

__all__ = ["Headed", "Member", "Notice", "opened"]


class Headed(Packet):
    """A packet with the obituaries that its sender knows in front, as bits."""

    __slots__ = ()
    kind = "headed"
    fields = ("obituaries", "packet")

    def __new__(cls, obituaries: int, packet: Packet) -> Self:
        return tuple.__new__(cls, (cls.kind, obituaries, packet))


class Notice(Packet):
    """The obituaries that its sender knows, as bits, and nothing else."""

    __slots__ = ()
    kind = "obituary"
    fields = ("obituaries",)

    def __new__(cls, obituaries: int) -> Self:
        return tuple.__new__(cls, (cls.kind, obituaries))


def opened(packet: Packet) -> tuple[int, Packet | None]:
    """Return the obituaries in front of a packet, and the packet behind them."""
    if isinstance(packet, Headed):
        return packet[1], packet[2]
    if isinstance(packet, Notice):
        return packet[1], None
    return 0, packet


class Member:
    """What one process knows of obituaries, and what its driver does about it."""

    __slots__ = ("index", "known", "network", "notices", "processes")

    def __init__(self, index: int, processes: int, network: NetworkModel, known: int = 0) -> None:
        self.index = index
        self.processes = processes
        self.network = network
        self.known = known
        """The obituaries known here, as bits."""
        self.notices: list[int] = []
        """Processes that are to get a notice."""

    @property
    def stopped(self) -> bool:
        """Whether the process knows its own obituary."""
        return bool(self.known >> self.index & 1)

    def learn(self, obituaries: int, source: int, forget: Callable[[int], object]) -> None:
        """Take note of obituaries that `source` told; call `forget` for each new one."""
        new = obituaries & ~self.known
        self.known |= new
        if new and not self.stopped:
            for k in range(self.processes):
                if new >> k & 1:
                    forget(k)
            self.notices = [k for k in range(self.processes) if k not in (self.index, source)]

    def accepts(self, sender: int) -> bool:
        """Return whether a packet from `sender` is handed to the endpoint (F1)."""
        return not self.stopped and not (self.known >> sender & self.network.fence)

    def living(self, to: tuple[int, ...]) -> tuple[int, ...]:
        """Return the destinations that have not been forgotten."""
        return tuple([j for j in to if not self.known >> j & 1]) if self.known else to

    def outgoing(self, packets: Iterable[tuple[int, Packet]]) -> Iterable[tuple[int, Packet]]:
        """Return what leaves: obituaries in front (F2), nothing to the forgotten (F1)."""
        return self._announced(packets) if self.known else packets

    def _announced(self, packets: Iterable[tuple[int, Packet]]) -> Iterator[tuple[int, Packet]]:
        if self.stopped:
            return
        for j, packet in packets:
            if not self.known >> j & self.network.fence:
                headed = self.network.obituaries_first
                yield j, Headed(self.known, packet) if headed else packet
        for j in self.notices:
            yield j, Notice(self.known)
        self.notices = []
