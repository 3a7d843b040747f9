"""Packets on their way, as numbers: what lies in inboxes, and what is added to them.

All programs of a setup share these numbers, so that tables of one are tables of
another. A *bundle* is what one step sends to one process; an *inbox* is all that is on
its way to a process, in no order, or, on FIFO channels, a queue for each sender.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import chain
from typing import Any, Generic, TypeAlias, TypeVar

from ..core.endpoint import Packet
from .ghost import Marked, tags_in
from .setup import Setup

__all__ = ["Inbox", "Numbering", "Post", "Sent"]

T = TypeVar("T", bound=Hashable)

Sent: TypeAlias = tuple[tuple[int, tuple[int, ...]], ...]
"""Packets that leave, by destination: in the order of release on FIFO channels."""


class Numbering(Generic[T]):
    """Values as numbers, in the order in which they turn up."""

    __slots__ = ("ids", "values")

    def __init__(self) -> None:
        self.ids: dict[T, int] = {}
        self.values: list[T] = []

    def __call__(self, value: T) -> int:
        k = self.ids.get(value)
        if k is None:
            k = self.ids[value] = len(self.values)
            self.values.append(value)
        return k

    def __len__(self) -> int:
        return len(self.values)


Inbox: TypeAlias = tuple[Any, ...]
"""Packets by number, sorted; or, on FIFO channels, a queue of them for each sender."""


class Post:
    """Packets, bundles and inboxes of all processes, as numbers.

    Shared by all programs, so that stations of one can be stations of another.
    """

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        n = setup.processes
        self.packets: list[Numbering[tuple[int, Packet]]] = [Numbering() for _ in range(n)]
        """For each destination: sender and packet."""
        self.bundles: list[Numbering[tuple[int, ...]]] = [Numbering() for _ in range(n)]
        self.inboxes: list[Numbering[Inbox]] = [Numbering() for _ in range(n)]
        self.empty: Inbox = ((),) * n if setup.network.fifo else ()
        self._heats: list[dict[int, int]] = [{} for _ in range(n)]

    def put(self, j: int, inbox: Inbox, packets: tuple[int, ...]) -> Inbox:
        """The inbox of process j with packets added."""
        if not self.setup.network.fifo:
            return tuple(sorted(inbox + packets))
        queues = list(inbox)
        for packet in packets:
            sender = self.packets[j].values[packet][0]
            queues[sender] = (*queues[sender], packet)
        return tuple(queues)

    def ready(self, inbox: Inbox) -> Iterator[tuple[int, Inbox]]:
        """What may be taken next from an inbox, and what it leaves behind."""
        if self.setup.network.fifo:
            for sender, queue in enumerate(inbox):
                if queue:
                    yield queue[0], (*inbox[:sender], queue[1:], *inbox[sender + 1 :])
        else:
            for k, packet in enumerate(inbox):
                if not k or inbox[k - 1] != packet:
                    yield packet, inbox[:k] + inbox[k + 1 :]

    def heat(self, j: int, inbox: int) -> int:
        """What the messages in an inbox may lead to, all together."""
        heat = self._heats[j].get(inbox)
        if heat is None:
            heat = 0
            queues = self.inboxes[j].values[inbox]
            for packet in chain.from_iterable(queues) if self.setup.network.fifo else queues:
                for tag in tags_in(self.packets[j].values[packet][1]):
                    heat |= Marked.heat(tag.taint, self.setup.processes, j)
            self._heats[j][inbox] = heat
        return heat

    def merged(self, first: Sent, then: Sent) -> Sent:
        """What two steps in a row put on the network."""
        if not first or not then:
            return first or then
        sent = dict(first)
        for j, packets in then:
            both = sent.get(j, ()) + packets
            sent[j] = both if self.setup.network.fifo else tuple(sorted(both))
        return tuple(sorted(sent.items()))
