"""Inboxes: what is on its way to a process, and what may arrive next.

    Bag         any packet may arrive next
    Queues      the oldest packet of each sender may arrive next (FIFO channels)
    Chains      the messages of each sender arrive in order, in runs of any length;
                acks and permits arrive in any order (see `driver`)

An inbox is a tuple of numbers of packets, and equal inboxes are equal values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, TypeAlias

from ..core.endpoint import Packet
from .driver import ChainedMessage, joined
from .numbering import Numbering

__all__ = ["Bag", "Chains", "Channels", "Inbox", "Queues"]

Inbox: TypeAlias = tuple[Any, ...]

Packets: TypeAlias = Numbering[tuple[int, Packet]]
"""The packets that may be on their way to a process, each with its sender, by number."""


class Channels(ABC):
    """The inboxes of one process."""

    ordered: bool
    """Whether the order in which packets are put in makes a difference."""

    def __init__(self, packets: Packets, empty: Inbox) -> None:
        self.packets = packets
        self.empty = empty

    @abstractmethod
    def put(self, inbox: Inbox, packets: tuple[int, ...]) -> Inbox:
        """Return the inbox with packets added."""

    @abstractmethod
    def ready(self, inbox: Inbox) -> Iterator[tuple[int, Inbox]]:
        """Yield each packet that may arrive next, with the inbox that it leaves behind."""

    @abstractmethod
    def contents(self, inbox: Inbox) -> Iterable[int]:
        """Return all packets in the inbox."""


class Bag(Channels):
    """Packets in no order."""

    ordered = False

    def __init__(self, packets: Packets) -> None:
        super().__init__(packets, ())

    def put(self, inbox: Inbox, packets: tuple[int, ...]) -> Inbox:
        return tuple(sorted(inbox + packets))

    def ready(self, inbox: Inbox) -> Iterator[tuple[int, Inbox]]:
        for k, packet in enumerate(inbox):
            if not k or inbox[k - 1] != packet:
                yield packet, inbox[:k] + inbox[k + 1 :]

    def contents(self, inbox: Inbox) -> Iterable[int]:
        return inbox


class Queues(Channels):
    """A queue of packets for each sender."""

    ordered = True

    def __init__(self, packets: Packets, processes: int) -> None:
        super().__init__(packets, ((),) * processes)

    def put(self, inbox: Inbox, packets: tuple[int, ...]) -> Inbox:
        queues = list(inbox)
        for packet in packets:
            sender = self.packets.values[packet][0]
            queues[sender] = (*queues[sender], packet)
        return tuple(queues)

    def ready(self, inbox: Inbox) -> Iterator[tuple[int, Inbox]]:
        for sender, queue in enumerate(inbox):
            if queue:
                yield queue[0], (*inbox[:sender], queue[1:], *inbox[sender + 1 :])

    def contents(self, inbox: Inbox) -> Iterable[int]:
        return chain.from_iterable(inbox)


class Chains(Channels):
    """A chain of messages for each sender, and control packets in no order behind them."""

    ordered = True

    def __init__(self, packets: Packets, processes: int) -> None:
        super().__init__(packets, ((),) * (processes + 1))

    def put(self, inbox: Inbox, packets: tuple[int, ...]) -> Inbox:
        parts = list(inbox)
        for packet in packets:
            sender, value = self.packets.values[packet]
            if isinstance(value, ChainedMessage):
                parts[sender] = (*parts[sender], packet)
            else:
                parts[-1] = tuple(sorted((*parts[-1], packet)))
        return tuple(parts)

    def ready(self, inbox: Inbox) -> Iterator[tuple[int, Inbox]]:
        *chains, control = inbox
        for sender, queue in enumerate(chains):
            run: list[Packet] = []
            for k, packet in enumerate(queue, 1):
                message = self.packets.values[packet][1]
                if run and run[-1][4] != message[4]:
                    break
                run.append(message)
                rest = (*chains[:sender], queue[k:], *chains[sender + 1 :], control)
                yield self.packets((sender, joined(run))), rest
        for k, packet in enumerate(control):
            if not k or control[k - 1] != packet:
                yield packet, (*chains, control[:k] + control[k + 1 :])

    def contents(self, inbox: Inbox) -> Iterable[int]:
        return chain.from_iterable(inbox)
