"""The interface that every protocol implements, and the values that cross it.

An endpoint is one process's half of a causal delivery protocol, as a sans-IO
state machine: it has no socket, no clock, no randomness and no log. Its driver
(a node, a simulator, a model checker, a test) tells it what happened, through
`send`, `receive` and `retransmit`, and then asks it what follows, through
`take_packets` and `take_deliveries`. The driver owns time and the network; the
endpoint owns the order of delivery, and nothing else.

Four kinds of event concern an application message (Almeida, section 4.1):

    causal send     `send` is called; from here on the message has happened
    release         its packet shows up in `take_packets` (a "network-send")
    receive         the packet is handed to the peer's `receive`
    deliver         the peer's application gets it

Between the first two it may wait at its sender, between the last two at its
receiver; `blocked` tells which messages wait, and for what. Only causal sends
and deliveries make up happened-before between messages.

**Deliveries and the order of things.** State is brought up to date before the
application sees a message, so a message sent from inside a delivery depends on
just what was delivered up to there (ERRATA 7.1). A driver that wants to react
at that very point sets `on_delivery`; otherwise deliveries queue up until
`take_deliveries`, and a message sent after taking several depends on them all.

**Who is to blame.** `LocalProtocolError`: this program misuses the endpoint.
`RemoteProtocolError`: a peer sent what no correct peer could send. Both leave
the endpoint as it was. Any other exception is a bug here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeAlias

from .errors import LocalProtocolError, ProtocolError, RemoteProtocolError

__all__ = [
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


def check_number(what: str, n: object, least: int) -> None:
    """Refuse a packet's field that is not an integer of at least `least`."""
    if type(n) is not int or n < least:
        raise RemoteProtocolError(f"{what} must be an integer from {least} upward, not {n!r}")


class Packet(tuple[Any, ...]):
    """What travels between endpoints: an immutable, hashable, picklable value.

    A packet is a tuple whose first item is its kind, so that packets of two
    kinds never compare equal, and whose other items are its fields. Each kind
    is a subclass that names its fields in `__new__`, and checks them there:
    whatever has the class is well formed, wherever it came from, so `receive`
    is left with the question of whether a correct peer could have sent it.

    An endpoint, which knows what it puts in, may skip that check and make
    packets with `tuple.__new__` (this is the hot path).
    """

    __slots__ = ()

    kind: ClassVar[str]
    """Short name of this kind of packet, also its first item."""

    fields: ClassVar[tuple[str, ...]]
    """Names of the other items, in order."""

    integers: int = 0
    """Metadata carried, in integers (flags are not counted)."""

    identifiers: int = 0
    """Metadata carried, in process identifiers."""

    numbers: ClassVar[tuple[str, ...]] = ()
    """Names of the fields with message numbers that endpoints compare with others."""

    numbered_by: ClassVar[Literal["source", "destination"]] = "source"
    """Whose messages these numbers count: an ack carries a number of its destination."""

    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...]]:
        return type(self), tuple(self[1:])

    def __repr__(self) -> str:
        named = zip(self.fields, self[1:], strict=True)
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in named)})"


class Numbered(Packet):
    """A packet that says something of message `mid`; what, is up to its kind."""

    __slots__ = ()
    fields = ("mid",)
    numbers = ("mid",)
    integers = 1

    def __new__(cls, mid: int) -> Self:
        check_number("mid", mid, 1)
        return tuple.__new__(cls, (cls.kind, mid))


class NumberedMessage(Packet):
    """Message `mid`, with no metadata but its number."""

    __slots__ = ()
    fields = ("mid", "payload")
    numbers: ClassVar[tuple[str, ...]] = ("mid",)
    integers = 1

    def __new__(cls, mid: int, payload: Any) -> Self:
        check_number("mid", mid, 1)
        return tuple.__new__(cls, (cls.kind, mid, payload))


class Delivery(NamedTuple):
    """A message handed to the application."""

    source: str
    mid: int
    payload: Any


class Wait(NamedTuple):
    """One thing that a blocked message waits for.

    `kind` is what is missing: `permit` or `ack` (a control packet from `peer`
    about message `mid`), `predecessor` (message `mid` of `peer`, which must be
    delivered here first) or `word` (anything at all from `peer`, about its
    clock having passed `mid`).
    """

    kind: str
    peer: str
    mid: int

    def __str__(self) -> str:
        if self.kind == "predecessor":
            return f"the delivery of message {self.mid} of {self.peer}"
        if self.kind == "word":
            return f"word from {self.peer} that its clock has passed {self.mid}"
        return f"the {self.kind} of {self.peer} for message {self.mid}"


class Blocked(NamedTuple):
    """A message that is held back, where, and why.

    `where` is `sender` (accepted here, not yet released to `destination`) or
    `receiver` (it arrived here, and `destination` is this process).
    """

    origin: str
    mid: int
    destination: str
    where: str
    waits: tuple[Wait, ...]

    def __str__(self) -> str:
        reasons = ", ".join(map(str, self.waits)) or "nothing that will come: it is stuck"
        return (
            f"message {self.mid} from {self.origin} to {self.destination}, "
            f"held at its {self.where}, waits for {reasons}"
        )


class Footprint(NamedTuple):
    """Space in the papers' unit: integers and process identifiers.

    `state` counts what the endpoint holds, payloads not included; `packet` has,
    for each kind of packet, what one sent now would carry as metadata.
    """

    state: int
    packet: dict[str, int]


Note: TypeAlias = Callable[[str, int], Hashable]
"""Called with a sender and the number of one of its messages; see `relative_state`."""

Outgoing: TypeAlias = tuple[str, Packet]
"""A packet and the process to which the driver is to carry it."""


def destinations(to: str | Collection[str]) -> tuple[str, ...]:
    """The processes named by `to`, each once and in the order of their names.

    Sorted, because a set has no order that two runs of Python agree on; and plain
    strings, which members of a `StrEnum`, say, are not.
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

    Subclasses implement `send`, `receive`, `blocked`, `footprint`, `_state`
    and `_copy_into`; `retransmit` as well if the protocol bears loss.
    """

    __slots__ = ("_deliveries", "_mid", "_packets", "me", "on_delivery")

    def __init__(self, me: str, group: Iterable[str] | None = None) -> None:
        if not isinstance(me, str) or not me:
            raise LocalProtocolError(f"a process name must be a non-empty string, not {me!r}")
        self.me = me
        self.on_delivery: Callable[[Delivery], None] | None = None
        self._mid = 0
        self._packets: list[Outgoing] = []
        self._deliveries: list[Delivery] = []

    # -- what the driver calls ------------------------------------------------

    @abstractmethod
    def send(self, to: str | Collection[str], payload: Any) -> int:
        """Causal send: accept `payload` for one process or a set of them.

        Returns the number of the message among all that this process sent,
        from 1 upward. Never blocks: a message that may not be released yet is
        kept. A copy to oneself is delivered before this returns.
        """

    @abstractmethod
    def receive(self, source: str, packet: Packet) -> None:
        """A packet arrived from `source`."""

    def retransmit(self) -> None:  # noqa: B027 - nothing to do is a fine answer
        """Send again what is unacknowledged, ask again for what is missing.

        The driver decides when. Does nothing for a protocol that needs a
        reliable network and has nothing to send when idle.
        """

    def take_packets(self) -> list[Outgoing]:
        """Packets to put on the network, in order; each is given out once."""
        packets = self._packets
        self._packets = []
        return packets

    def take_deliveries(self) -> list[Delivery]:
        """Messages for the application, in order; each is given out once.

        Stays empty while `on_delivery` is set.
        """
        deliveries = self._deliveries
        self._deliveries = []
        return deliveries

    # -- what people ask ------------------------------------------------------

    @abstractmethod
    def blocked(self) -> list[Blocked]:
        """Every message held back, here or for here, and what each waits for."""

    @abstractmethod
    def footprint(self) -> Footprint:
        """Integers and identifiers held as state, and carried per packet."""

    @property
    def idle(self) -> bool:
        """Whether nothing is left to do: all released, acknowledged, delivered."""
        return not self._packets and not self._deliveries and not self.blocked()

    # -- as a value -----------------------------------------------------------

    @abstractmethod
    def _state(self) -> Hashable:
        """The protocol state in canonical form: equal futures, equal values."""

    @abstractmethod
    def _copy_into(self, twin: Self) -> None:
        """Give `twin` its own copies of this class's attributes."""

    def __copy__(self) -> Self:
        """An independent endpoint in the same state, wired to no application."""
        twin = object.__new__(type(self))
        twin.me = self.me
        twin.on_delivery = None
        twin._mid = self._mid
        twin._packets = self._packets[:]
        twin._deliveries = self._deliveries[:]
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
        """What `take_packets` would give, as far as it is made already."""
        return tuple(self._packets)

    def value(self) -> Hashable:
        """Return the whole endpoint as one value: equal values behave alike from now on."""
        return (self.me, self._mid, self._state(), self._pending(), tuple(self._deliveries))

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.value() == other.value()

    def __hash__(self) -> int:
        return hash(self.value())

    def __repr__(self) -> str:
        held = len(self.blocked())
        return f"<{type(self).__name__} {self.me!r}: {self._mid} sent, {held} held back>"

    # -- what subclasses use --------------------------------------------------

    def _deliver(self, source: str, mid: int, payload: Any) -> None:
        """Hand a message to the application; all state is up to date already."""
        delivery = tuple.__new__(Delivery, (source, mid, payload))
        if self.on_delivery is None:
            self._deliveries.append(delivery)
        else:
            self.on_delivery(delivery)
