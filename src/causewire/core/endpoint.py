"""The interface that every protocol implements.

An endpoint is one process's half of a causal delivery protocol, written as a sans-IO
state machine: it has no socket, no clock, no randomness and no log. Its driver (a node,
a simulator, a model checker or a test) reports what happened, through `send`, `receive`
and `retransmit`, and then asks what follows, through `take_packets` and
`take_deliveries`. The driver is responsible for time and the network; the endpoint is
responsible for the order of delivery, and for nothing else.

Four events concern an application message (Almeida, section 4.1):

    causal send     `send` is called; from here on, the message has happened
    release         its packet is returned by `take_packets` (a "network-send")
    receive         the packet is passed to the peer's `receive`
    deliver         the peer's application gets it

A message may wait at its sender between the first two events, and at its receiver
between the last two; `blocked` reports which messages wait, and for what. Only causal
sends and deliveries define happened-before between messages.

**Deliveries.** An endpoint updates its state before the application sees a
message, so a message sent from inside a delivery depends on exactly what was
delivered up to that point (ERRATA 7.1). A driver that reacts at that point sets
`on_delivery`; otherwise deliveries are queued for `take_deliveries`, and a
message sent after taking several of them depends on all of them.

**A callback that fails.** If `on_delivery` raises an exception, the exception
reaches the caller, and the message counts as delivered. The endpoint completes
the call all the same: messages behind the failed one are queued, and the next
call of any kind hands them to `on_delivery`, in order (`interrupted.py`). A
driver that sets `on_delivery` to None instead gets them from `take_deliveries`.

**Errors.** `LocalProtocolError`: this program misuses the endpoint.
`RemoteProtocolError`: a peer sent what no correct peer could send. Both leave
the endpoint unchanged. Any other exception that does not come from
`on_delivery` is a bug in the protocol.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable
from typing import Any, ClassVar, Self

from .errors import LocalProtocolError, ProtocolError, RemoteProtocolError
from .interrupted import interrupt, usual_class
from .values import (
    WORD_BITS,
    Blocked,
    Delivery,
    Footprint,
    Note,
    Numbered,
    NumberedMessage,
    Outgoing,
    Packet,
    Wait,
    check_number,
)

__all__ = [
    "WORD_BITS",
    "Blocked",
    "Delivery",
    "Endpoint",
    "Footprint",
    "LocalProtocolError",
    "Note",
    "Numbered",
    "NumberedMessage",
    "Outgoing",
    "Packet",
    "ProtocolError",
    "RemoteProtocolError",
    "Wait",
    "check_number",
    "destinations",
]


def destinations(to: str | Collection[str]) -> tuple[str, ...]:
    """Return the processes named by `to`, each once, sorted by name.

    They are sorted because the order of a set differs from one run of Python to the
    next. They are plain strings even if `to` has members of a `StrEnum`, for example.

    Raises:
        LocalProtocolError: `to` is empty, or something in it is not a name.
    """
    if isinstance(to, str):
        names = {to}
    elif isinstance(to, Collection):
        try:
            names = set(to)
        except TypeError:
            raise LocalProtocolError(f"destinations must be names, not {to!r}") from None
    else:
        raise LocalProtocolError(f"destination must be a name or a collection, not {to!r}")
    if not names:
        raise LocalProtocolError("a message needs at least one destination")
    if not all(isinstance(name, str) and name for name in names):
        raise LocalProtocolError(f"destinations must be names (non-empty strings), not {to!r}")
    return tuple(sorted(map(str.__str__, names)))


class Endpoint(ABC):
    """One process's half of a causal delivery protocol.

    Subclasses implement `send`, `receive`, `blocked`, `footprint`, `_state` and
    `_copy_into`; `retransmit` as well if the protocol tolerates loss, and `_settle`
    if one call can deliver several messages.

    Attributes:
        me: The name of this process.
        on_delivery: Called with each `Delivery` at the moment it happens. It may send.
            While it is None, deliveries are queued for `take_deliveries`.
    """

    __slots__ = ("_deliveries", "_forgotten", "_mid", "_packets", "me", "on_delivery")

    _interrupted: ClassVar[bool] = False
    """Whether messages are queued behind a delivery on which `on_delivery` failed."""

    def __init__(self, me: str, group: Iterable[str] | None = None) -> None:
        if not isinstance(me, str) or not me:
            raise LocalProtocolError(f"a process name must be a non-empty string, not {me!r}")
        self.me = me
        self.on_delivery: Callable[[Delivery], object] | None = None
        self._mid = 0
        self._packets: list[Outgoing] = []
        self._deliveries: list[Delivery] = []
        self._forgotten: set[str] = set()

    # -- what the driver calls ------------------------------------------------

    @abstractmethod
    def send(self, to: str | Collection[str], payload: Any) -> int:
        """Send a message (the causal send) and return its number.

        This never blocks: a message that may not be released yet is kept. A copy to this
        process itself is delivered before the call returns.

        Args:
            to: The name of a process, or a collection of names for a multicast.
            payload: The message; the endpoint does not look at it.

        Returns:
            The number of the message among all messages that this process has sent,
            to whomever, starting from 1.

        Raises:
            LocalProtocolError: The protocol cannot send to these destinations; nothing
                was changed.
        """

    @abstractmethod
    def receive(self, source: str, packet: Packet) -> None:
        """Handle a packet that arrived from another process.

        Args:
            source: The process that sent the packet.
            packet: The packet.

        Raises:
            RemoteProtocolError: No correct peer could have sent this packet; nothing was
                changed.
        """

    def retransmit(self) -> None:  # noqa: B027 - not every protocol has something to repeat
        """Send again what is unacknowledged, and ask again for what is missing.

        The driver decides when to call this. It has no effect in a protocol that needs a
        reliable network and has nothing to send when idle.
        """

    def forget(self, peer: str) -> tuple[int, ...]:
        """Go on without a process that is gone, or is taken to be gone.

        From now on the endpoint behaves as if everything that it sent to `peer` had been
        delivered there, and as if everything that it still expects from `peer`, acks and
        permits for example, had come. Messages for `peer` that have not left are dropped,
        and so are messages from it that cannot be delivered yet. What waited for any of
        this is released or delivered. Afterwards the endpoint ignores packets from `peer`
        and refuses to send to it.

        This keeps causal order among the others, even if `peer` is alive and others have
        not heard, if drivers follow one rule: a process tells the names of those that it
        has forgotten, ahead of any packet, and the receiver forgets them before it handles
        the packet. The reason, in short: a message that this endpoint lets go
        early may depend on messages of `peer`, or on messages to it, that have not been
        delivered. Its receivers have forgotten `peer` by then. So they cannot deliver
        such a message of `peer` later, in the wrong order, and do not pass on to `peer`
        anything that overtakes a message for it. `peer` itself cannot either: what it
        might tell others too early waits for permits, or acks, that do not come any more.

        Args:
            peer: The name of the process. Forgetting it again has no effect.

        Returns:
            The numbers of messages to `peer` that it has not acknowledged, in a protocol
            with acknowledgements of messages; otherwise nothing.

        Raises:
            LocalProtocolError: `peer` is this process, or not a member of a fixed group,
                or the protocol cannot go on without a member (`Protocol.forgets`).
        """
        if not isinstance(peer, str) or peer in ("", self.me):
            raise LocalProtocolError(f"{self.me!r} cannot forget {peer!r}")
        if peer in self._forgotten:
            return ()
        failed = self._forget(peer)
        self._forgotten.add(peer)
        self._packets = [outgoing for outgoing in self._packets if outgoing[0] != peer]
        self._settle()
        return failed

    def readmit(self, peer: str) -> None:
        """Let the name of a forgotten process be used again, by a new incarnation.

        The new incarnation is a stranger: numbers start from the beginning. The driver must
        make sure that no packet of the former incarnation arrives any more. Only protocols
        whose packets name no third process can do this.

        Args:
            peer: The name. If it was not forgotten, this has no effect.

        Raises:
            LocalProtocolError: The protocol cannot do this.
        """
        raise LocalProtocolError(f"{type(self).__name__} cannot readmit {peer!r}")

    def take_packets(self) -> list[Outgoing]:
        """Return packets and their destinations, in order; each packet is returned once."""
        packets = self._packets
        self._packets = []
        return packets

    def take_deliveries(self) -> list[Delivery]:
        """Return the messages for the application, in order; each is returned once.

        While `on_delivery` is set, there are only those behind a delivery on which it
        failed, until the next call hands them over.
        """
        deliveries = self._deliveries
        self._deliveries = []
        return deliveries

    # -- what people ask ------------------------------------------------------

    @abstractmethod
    def blocked(self) -> list[Blocked]:
        """Return every message that waits, at this process, and what it waits for.

        These are messages of this process that have not been released, and messages to
        this process that have arrived and not been delivered.
        """

    @property
    def forgotten(self) -> frozenset[str]:
        """The names of the processes that this one has forgotten."""
        return frozenset(self._forgotten)

    @property
    def held_back(self) -> int:
        """The number of messages that `blocked` lists; a multicast counts once per copy."""
        return len(self.blocked())

    @abstractmethod
    def footprint(self) -> Footprint:
        """Return the space that the state takes, and the metadata of each kind of packet."""

    def metadata_bits(
        self, packet: Packet, integer: int = WORD_BITS, identifier: int = WORD_BITS
    ) -> int:
        """Return the size of a packet's metadata in bits.

        Args:
            packet: A packet that an endpoint with the same options sends.
            integer: Bits of an integer that has no bound.
            identifier: Bits of a process identifier.
        """
        return packet.integers * integer + packet.identifiers * identifier + packet.flags

    @property
    def idle(self) -> bool:
        """Whether nothing is left to do: everything is released, acknowledged, delivered."""
        return not self._packets and not self._deliveries and not self.held_back

    # -- as a value -----------------------------------------------------------

    @abstractmethod
    def _state(self) -> Hashable:
        """Return the protocol state in canonical form: equal states have equal futures."""

    @abstractmethod
    def _copy_into(self, twin: Self) -> None:
        """Give `twin` its own copies of this class's attributes."""

    def __copy__(self) -> Self:
        """Return an independent endpoint in the same state, without a callback."""
        twin = object.__new__(usual_class(type(self)))
        twin.me = self.me
        twin.on_delivery = None
        twin._mid = self._mid
        twin._packets = self._packets[:]
        twin._deliveries = self._deliveries[:]
        twin._forgotten = self._forgotten.copy()
        self._copy_into(twin)
        return twin

    def relative_state(self, note: Note) -> Hashable:
        """Return the protocol state with `note(sender, number)` for each message number.

        Message numbers grow without bound, so the states of an endless run never
        repeat. A protocol only compares numbers of the same sender, though, so two
        states are equivalent if they differ by a constant for each sender. A driver
        that looks for repeated states (`causewire.verify` does, for starvation) passes
        a `note` that records each number and returns a placeholder, and shifts the
        recorded numbers itself.

        An implementation calls `note` in an order that depends only on the rest of the
        state, passes 0 on for "none", leaves out payloads, and contains everything
        that influences what the endpoint does next. It is called when all packets and
        deliveries have been taken. A subclass that adds state overrides it.

        Args:
            note: Called with the name of a sender and the number of one of its messages.

        Raises:
            LocalProtocolError: The protocol does not implement this.
        """
        raise LocalProtocolError(
            f"{type(self).__name__} does not implement relative_state, "
            "so endless runs of it cannot be searched"
        )

    def _pending(self) -> tuple[Outgoing, ...]:
        """Return what `take_packets` would return, as far as packets exist already."""
        return tuple(self._packets)

    def value(self) -> Hashable:
        """Return the whole endpoint as one value: equal values behave alike from now on."""
        forgotten = frozenset(self._forgotten)
        deliveries = tuple(self._deliveries)
        return (self.me, self._mid, self._state(), self._pending(), deliveries, forgotten)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Endpoint) or usual_class(type(other)) is not usual_class(
            type(self)
        ):
            return NotImplemented
        return self.value() == other.value()

    def __hash__(self) -> int:
        return hash(self.value())

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"<{name} {self.me!r}: {self._mid} sent, {self.held_back} held back>"

    # -- what subclasses use --------------------------------------------------

    def _forget(self, peer: str) -> tuple[int, ...]:
        """Drop everything about another process; returns what `forget` does.

        A protocol that can go on without a member implements it. `_settle` follows.
        """
        raise LocalProtocolError(f"{type(self).__name__} cannot go on without {peer!r}")

    def _refuse_forgotten(self, names: Iterable[str]) -> None:
        """Refuse to send to processes that were forgotten."""
        gone = self._forgotten.intersection(names)
        if gone:
            raise LocalProtocolError(f"{self.me!r} has forgotten {sorted(gone)}")

    def _deliver(self, source: str, mid: int, payload: Any) -> None:
        """Hand a message to the application; all state is up to date already."""
        delivery = tuple.__new__(Delivery, (source, mid, payload))
        if self.on_delivery is None:
            self._deliveries.append(delivery)
        else:
            self._call_back(delivery)

    def _settle(self) -> None:  # noqa: B027 - most protocols have nothing to do
        """Deliver everything that can be delivered now, and do what follows from it.

        Called when `on_delivery` has failed and so cut short a call of this endpoint.
        A protocol in which one call can deliver several messages implements it.
        """

    def _call_back(self, delivery: Delivery) -> None:
        """Call `on_delivery`. If that fails, complete the call, then raise."""
        if self._interrupted:
            self._deliveries.append(delivery)
            return
        try:
            self.on_delivery(delivery)  # type: ignore[misc]  # not None here
        except BaseException:
            callback, self.on_delivery = self.on_delivery, None
            try:
                self._settle()
            finally:
                self.on_delivery = callback
                interrupt(self)
            raise
