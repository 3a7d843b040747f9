"""What the transport sees of a protocol: chained messages, acks and permits.

`csps`, `sps` and `fifo` number and chain their messages, acknowledge by watermark and
tolerate any network. The transport carries exactly that, and drives these protocols
directly (`Native`). So does `adaptive`, whose messages have lists besides (`listing`).
Every other protocol runs on a link that provides the same (`link`).

The transport hands the messages of each peer over in the order of their chain, and only
when the application has room; a native protocol delivers each at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from typing import Any

from ..core import adaptive, fifo, hybrid
from ..core.endpoint import Blocked, Delivery, RemoteProtocolError
from ..core.fifo import Ack
from ..core.hybrid import Permit
from ..core.payloads import replace_payload
from ..core.run import MessageRun
from ..core.saved import unacknowledged
from ..protocols import Protocol, create
from .missing import Missing, missing
from .withdrawn import NOTHING

__all__ = ["Carrier", "Native", "is_native"]

_new = tuple.__new__


class Carrier(ABC):
    """The protocol of one process, in the shape that the transport carries."""

    permits: bool
    """Whether messages have a flag for permits."""
    linked: bool = False
    """Whether the messages that it sends and acknowledges are packets of another protocol."""
    releases_at_once: bool = False
    """Whether one call of `take_runs` returns all messages that may leave."""
    lists: bool = False
    """Whether a message with a flag has a list in front of its payload."""
    withdraws: bool = False
    """Whether a message that has not left can be withdrawn."""
    ticks: bool = False
    """Whether `tick` has to be called from time to time."""
    send: Callable[[str | Collection[str], Any], int]
    """Causal send; returns the number of the message."""

    @abstractmethod
    def sender_to(self, name: str) -> Callable[[Any], int]:
        """Return a function that sends to one other process."""

    @abstractmethod
    def receive(self, source: str, run: MessageRun) -> None:
        """Accept messages that come next in the chain of `source`."""

    @abstractmethod
    def acked(self, source: str, mid: int) -> int:
        """Record that all messages to `source` up to `mid` have arrived.

        Returns how many bytes of these messages were not payload but lists.
        """

    @abstractmethod
    def permitted(self, source: str, mid: int) -> None:
        """Record that the messages of `source` up to `mid` are permitted."""

    @abstractmethod
    def take_runs(self) -> list[tuple[str, MessageRun]]:
        """Return messages to send, each run with its destination."""

    @abstractmethod
    def take_acks(self) -> dict[str, int]:
        """Return acks to send: the destination, and the last message acknowledged."""

    @abstractmethod
    def take_permits(self) -> dict[str, int]:
        """Return permits to send: the destination, and the last message permitted."""

    def holds(self) -> bool:
        """Return whether a message waits here for permits."""
        return False

    @abstractmethod
    def take_deliveries(self) -> list[Delivery]:
        """Return messages for the application."""

    @abstractmethod
    def forget(self, name: str) -> None:
        """Go on without a process that is gone (`Endpoint.forget`)."""

    def meet(self, name: str, lives: int) -> str:
        """Return what to call a process of which `lives` incarnations were met before."""
        return f"{name}\0{lives + 1}" if lives else name

    def establish(self, alias: str, name: str, incarnation: int) -> str:
        """Return what to call a process that was met, and was called `alias` so far."""
        return alias

    def resumed(self, name: str) -> None:  # noqa: B027 - most have watermarks only
        """Repeat what a peer has not confirmed: it has come back with its memory."""

    def knows_older(self, name: str, incarnation: int) -> bool:
        """Return whether messages name an earlier incarnation that may be alive."""
        return False

    def take_older(self) -> Collection[str]:
        """Return the processes of which messages have named one that is earlier than the one met.

        Nobody may be left who knew it, so it has to be announced here that it is gone.
        """
        return ()

    def bury(self, name: str, floor: int) -> None:  # noqa: B027 - most name no third process
        """Forget all incarnations of a process below `floor`."""

    def unbury(self, name: str) -> bool:
        """Drop what `bury` keeps of a process; return whether nothing refers to it."""
        return True

    @property
    def changing(self) -> bool:
        """Whether nothing is sent until all members agree on a change of their group."""
        return False

    @property
    def group_waits(self) -> str:
        """Why messages wait until the group has changed, in words; empty if they do not."""
        return ""

    def queued(self, name: str) -> int:
        """Return how many messages to a process wait until the group has changed."""
        return 0

    @property
    def absent(self) -> dict[str, int]:
        """The incarnations that the protocol waits for and that others can reach, by name."""
        return {}

    @property
    def waits(self) -> bool:
        """Whether there may be any, so that it is worth looking from time to time."""
        return self.changing

    @abstractmethod
    def discard(self, name: str) -> bool:
        """Drop what is left of a forgotten process; return whether nothing refers to it."""

    @abstractmethod
    def blocked(self) -> list[Blocked]:
        """Return what is held back, and why."""

    @property
    def missing(self) -> list[Missing]:
        """What messages that have arrived here wait for."""
        return missing(self.blocked(), self.lists) if self.waits else []

    def tell_waits(self) -> None:  # noqa: B027 - most do not tell
        """Have `take_waits` return what messages wait for, if the protocol tells it."""

    def take_waits(self) -> list[Blocked]:
        """Return each message that has begun to wait since the last call, with the reasons."""
        return []

    @abstractmethod
    def confirmed(self, peer: str, acked: int) -> int:
        """Return the last message that the application of `peer` has.

        `acked` is the last message that the transport knows to have arrived there.
        """

    def withdraw(self, name: str, mid: int) -> Any:
        """Take the payload off a message that has not left, and return it (`withdrawn`).

        Args:
            name: The destination.
            mid: The message; what `take_runs` has returned is not changed.
        """
        raise NotImplementedError

    def take_control(self) -> list[tuple[str, bytes]]:
        """Return control packets to send, each with its destination."""
        return []

    def control(self, source: str, record: bytes) -> None:
        """Accept a control packet.

        Raises:
            RemoteProtocolError: No correct peer could have sent it.
        """
        raise RemoteProtocolError(f"{source!r} sent a control packet")

    def list_bytes(self, payload: bytes, per: bool) -> int:
        """Return how many bytes at the beginning of a payload are a list."""
        return 0

    def message_number(self, mid: int, payload: bytes) -> int | None:
        """Return the number of the application's message in a message of the network.

        Returns None if it carries none, or does not say which.

        Args:
            mid: The number of the message of the network.
            payload: Its contents.
        """
        return mid

    @property
    @abstractmethod
    def idle(self) -> bool:
        """Whether nothing is held back or waits for an answer."""

    def tick(self) -> None:  # noqa: B027 - most have nothing to do
        """Let the protocol do what it does after some time."""


class Native(Carrier):
    """A protocol that the transport carries itself, without a link (see `is_native`)."""

    releases_at_once = True
    withdraws = True

    def __init__(self, protocol: Protocol, me: str) -> None:
        endpoint = create(protocol, me)
        assert isinstance(endpoint, fifo.FifoEndpoint)
        self.endpoint: fifo.FifoEndpoint[Any] = endpoint
        self.permits = isinstance(self.endpoint, hybrid.HybridEndpoint)
        self.send = self.endpoint.send
        if self.__class__ is Native:
            self._call_directly()

    def _call_directly(self) -> None:
        """Have what is called in every turn called without a method in between."""
        self.take_runs = self.endpoint.take_runs  # type: ignore[method-assign]
        self.take_acks = self.endpoint.take_acks  # type: ignore[method-assign]
        self.take_permits = self.endpoint.take_permits  # type: ignore[method-assign]
        self.take_deliveries = self.endpoint.take_deliveries  # type: ignore[method-assign]
        if isinstance(self.endpoint, hybrid.HybridEndpoint):
            self.holds = self.endpoint.holds  # type: ignore[method-assign]

    def sender_to(self, name: str) -> Callable[[Any], int]:
        return self.endpoint.sender_to(name)

    def receive(self, source: str, run: MessageRun) -> None:
        self.endpoint.receive_run(source, run)

    def acked(self, source: str, mid: int) -> int:
        self.endpoint.receive(source, _new(Ack, ("ack", mid)))
        return 0

    def permitted(self, source: str, mid: int) -> None:
        self.endpoint.receive(source, _new(Permit, ("permit", mid)))

    def take_runs(self) -> list[tuple[str, MessageRun]]:
        return self.endpoint.take_runs()

    def take_acks(self) -> dict[str, int]:
        return self.endpoint.take_acks()

    def take_permits(self) -> dict[str, int]:
        return self.endpoint.take_permits()

    def holds(self) -> bool:
        return self.permits and self.endpoint.holds()  # type: ignore[attr-defined]

    def take_deliveries(self) -> list[Delivery]:
        return self.endpoint.take_deliveries()

    def forget(self, name: str) -> None:
        self.endpoint.forget(name)

    def discard(self, name: str) -> bool:
        self.endpoint.readmit(name)
        return True

    def blocked(self) -> list[Blocked]:
        return self.endpoint.blocked()

    def confirmed(self, peer: str, acked: int) -> int:
        return acked

    def withdraw(self, name: str, mid: int) -> Any:
        return replace_payload(self.endpoint, name, mid, NOTHING)

    def in_flight(self, name: str) -> list[MessageRun]:
        """Return the messages to a peer that left and are not acked, as they left."""
        return unacknowledged(self.endpoint, name)

    @property
    def idle(self) -> bool:
        return self.endpoint.idle


def is_native(protocol: Protocol) -> bool:
    """Return whether the transport drives a protocol directly."""
    return issubclass(protocol.endpoint, fifo.Fifo | hybrid.HybridEndpoint | adaptive.Adaptive)
