"""Packets on their way, as numbers: what lies in inboxes, and what is added to them.

All programs of a setup share these numbers, so the tables of one program are used for
the next. A *bundle* is what one step sends to one process; an *inbox* is everything on
its way to a process (see `channels`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from ..core.endpoint import Packet
from .channels import Bag, Chains, Channels, Inbox, Queues
from .ghost import Marked, tags_in
from .numbering import Numbering
from .setup import Setup

__all__ = ["Inbox", "Numbering", "Post", "Sent"]

Sent: TypeAlias = tuple[tuple[int, tuple[int, ...]], ...]
"""Packets that leave, by destination: in the order of release where that matters."""


class Post:
    """Packets, bundles and inboxes of all processes, as numbers."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.driver = setup.calls
        n = setup.processes
        self.packets: list[Numbering[tuple[int, Packet]]] = [Numbering() for _ in range(n)]
        """For each destination: sender and packet."""
        self.bundles: list[Numbering[tuple[int, ...]]] = [Numbering() for _ in range(n)]
        self.inboxes: list[Numbering[Inbox]] = [Numbering() for _ in range(n)]
        self.channels = [self._channels(packets) for packets in self.packets]
        self.ordered = self.channels[0].ordered
        self.empty = self.channels[0].empty
        self._heats: list[dict[int, int]] = [{} for _ in range(n)]

    def _channels(self, packets: Numbering[tuple[int, Packet]]) -> Channels:
        if self.driver.pumps:
            return Chains(packets, self.setup.processes)
        if self.setup.network.fifo:
            return Queues(packets, self.setup.processes)
        return Bag(packets)

    def put(self, j: int, inbox: Inbox, packets: tuple[int, ...]) -> Inbox:
        """Return the inbox of process j with packets added."""
        return self.channels[j].put(inbox, packets)

    def ready(self, j: int, inbox: Inbox) -> Iterator[tuple[int, Inbox]]:
        """Yield what may arrive next from an inbox of process j, and what remains."""
        return self.channels[j].ready(inbox)

    def heat(self, j: int, inbox: int) -> int:
        """Return what the messages in an inbox may lead to, all together."""
        heat = self._heats[j].get(inbox)
        if heat is None:
            heat = 0
            for packet in self.channels[j].contents(self.inboxes[j].values[inbox]):
                for tag in tags_in(self.packets[j].values[packet][1]):
                    heat |= Marked.heat(tag.taint, self.setup.processes, j)
            self._heats[j][inbox] = heat
        return heat

    def merged(self, first: Sent, then: Sent) -> Sent:
        """Return what two steps in a row put on the network."""
        if not first or not then:
            return first or then
        sent = dict(first)
        for j, packets in then:
            both = sent.get(j, ()) + packets
            sent[j] = both if self.ordered else tuple(sorted(both))
        return tuple(sorted(sent.items()))
