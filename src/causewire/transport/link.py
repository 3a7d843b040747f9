"""A reliable link for protocols that the transport does not carry itself.

Most protocols assume more of the network than datagrams offer: that nothing is lost, or
that the packets of a channel stay in order. Some say in each packet what matrix or log it
depends on. All run here on `fifo` as a network: each packet of the protocol becomes the payload of
a `fifo` message, and what `fifo` delivers is handed to the protocol, in order. The transport
carries `fifo` as it always does.

An ack of `fifo` says that a packet has reached the protocol, not that a message has been
delivered to the application: the protocol may hold it back. Therefore the link has a notice
of its own: messages up to this number have been delivered to the application here. One
number is enough, because all these protocols deliver the messages of one sender in the order
in which they were sent (over a link, even `unordered` does). One notice covers everything
that was delivered at a time.

**Epochs.** The endpoint of the protocol is for a given group. When members come, go or restart,
everybody goes over to a new endpoint at a causal cut (`epochs`). What the application sends
meanwhile waits in a queue, in order. So does what it sends to a process that is not a member
yet, and everything after that: if a later message overtook it, an answer to the later one
could reach that process first.

**Numbers and names.** Endpoints count messages from 1, and know one incarnation of each name.
The link has numbers that continue, and an alias for each incarnation, as the transport has. In
front of each payload, the link writes the difference of the two numbers. If the protocol can
only broadcast and a message is not for all members, it writes their names as well: all receive
it, and those that it is not for drop it. If the protocol cannot forget, it writes a Lamport
time, too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, NamedTuple

from ..core import fifo
from ..core.adaptive import Adaptive
from ..core.endpoint import (
    Blocked,
    Delivery,
    LocalProtocolError,
    RemoteProtocolError,
    destinations,
)
from ..core.run import MessageRun
from ..protocols import Protocol, create
from .carrier import Carrier, Native, is_native
from .codec import Codec, kinds
from .epochs import Epochs, View, decode, encode, name_of
from .identity import Identity
from .listing import Listing
from .varint import MalformedError, get, get_text, put, put_text

__all__ = ["Link", "carrier_for"]

_PACKET = b"\x00"
_DELIVERED = b"\x01"
_STOPPED = b"\x02"
_DRAINED = b"\x03"
_ENTERS = b"\x04"


class _Waiting(NamedTuple):
    """A message that was sent and that the protocol has not got yet."""

    mid: int
    to: set[str]
    """The aliases of its destinations, as far as these are not gone."""
    payload: bytes


class _Head(NamedTuple):
    """What the link writes in front of a payload."""

    offset: int
    """The number of the message, less the number that the endpoint has for it."""
    only: tuple[str, ...]
    """The destinations, if the message is not for all members."""
    time: int
    """The Lamport time, in a protocol that cannot forget."""


class Link(Carrier):
    """A protocol that runs on `fifo`.

    Args:
        protocol: The protocol.
        me: This process.
        most: How many messages of one peer the protocol may hold back here.

    Raises:
        LocalProtocolError: The protocol cannot run on a network where processes fail.
    """

    permits = False
    linked = True

    def __init__(self, protocol: Protocol, me: Identity, most: int = 1 << 20) -> None:
        self.me = me.name
        self._identity = me
        self._protocol = protocol
        self._codec = Codec(protocol)
        self._forgets = protocol.forgets
        if not protocol.forgets:
            _check(protocol)
        self._epochs = Epochs(me.name, me.incarnation)
        self.endpoint = create(protocol, me.name, (me.name,))
        self.ticks = not protocol.tolerates_loss
        self._fifo = fifo.Fifo(me.name)
        self._mid = 0
        """The number of the last message."""
        self._count = 0
        """How many of them the endpoint of this epoch has got."""
        self._time = 0
        self._queue: deque[_Waiting] = deque()
        self._queued: dict[str, int] = {}
        """How many messages in the queue are for each alias."""
        self._everybody: tuple[str, ...] = ()
        """The other members of the epoch."""
        self._sent: dict[str, int] = {}
        """The last message to each member in this epoch, by alias."""
        self._in_step: set[str] = set()
        """Peers that have entered this epoch, by alias."""
        self._confirmed: dict[str, int] = {}
        """The last message that the application of each peer has."""
        self._due: dict[str, int] = {}
        """Delivery notices to send."""
        self._ready: list[Delivery] = []
        self._most = most
        self._held: dict[str, int] = {}
        """How many messages of each peer the protocol has and has not delivered."""
        self._undelivered: dict[tuple[str, int], bytes] = {}
        """These messages by sender and number, with their heads, if it cannot forget."""
        self.send = self._send

    # -- sending --------------------------------------------------------------

    def _send(self, to: str | Collection[str], payload: Any) -> int:
        names = destinations(to)
        others = {name for name in names if name != self.me}
        if len(others) > 1 and not (self._protocol.multicast or self._protocol.broadcast):
            raise LocalProtocolError(
                f"{self._protocol.name} is for unicast: one destination, not {sorted(others)}"
            )
        self._mid += 1
        if others:
            self._queue.append(_Waiting(self._mid, others, payload))
            for alias in others:
                self._queued[alias] = self._queued.get(alias, 0) + 1
        if len(others) < len(names):
            self._ready.append(Delivery(self.me, self._mid, payload))
        self._settle()
        return self._mid

    def sender_to(self, name: str) -> Callable[[Any], int]:
        return partial(self._send, name)

    def _hand_down(self) -> None:
        """Give the protocol the messages whose destinations are all members of the epoch."""
        queue, epochs = self._queue, self._epochs
        while queue and all(map(epochs.present, queue[0].to)):
            mid, to, payload = queue.popleft()
            for alias in to:
                self._queued[alias] -= 1
            names = tuple(sorted(map(name_of, to)))
            receivers = names if self._protocol.unicast else self._everybody
            self._time += 1
            self._count += 1
            only = names if names != receivers else ()
            head = self._put_head(_Head(mid - self._count, only, self._time))
            number = self.endpoint.send(receivers, head + payload)
            assert number == self._count
            for name in receivers:
                self._sent[epochs.aliases[name]] = mid

    def _put_head(self, head: _Head) -> bytes:
        data = put(2 * head.offset + bool(head.only))
        if head.only:
            data += put(len(head.only)) + b"".join(map(put_text, head.only))
        return data if self._forgets else data + put(head.time)

    def _get_head(self, data: bytes) -> tuple[_Head, bytes]:
        first, at = get(data, 0)
        only: list[str] = []
        if first & 1:
            count, at = get(data, at)
            if count > len(data):
                raise MalformedError("cut short")
            for _ in range(count):
                name, at = get_text(data, at)
                only.append(name)
        time = 0
        if not self._forgets:
            time, at = get(data, at)
        return _Head(first >> 1, tuple(only), time), data[at:]

    # -- receiving ------------------------------------------------------------

    def receive(self, source: str, run: MessageRun) -> None:
        """Accept messages that come next in the chain of `source`.

        Raises:
            RemoteProtocolError: No correct peer could have sent these messages.
        """
        self._fifo.receive_run(source, run)
        refused: Exception | None = None
        for delivery in self._fifo.take_deliveries():
            try:
                self._hand_over(delivery.source, delivery.payload)
            except (MalformedError, RemoteProtocolError, LocalProtocolError) as error:
                refused = error
        self._settle()
        if refused:
            raise RemoteProtocolError(str(refused))

    def _hand_over(self, source: str, data: bytes) -> None:
        kind = data[:1]
        if kind == _PACKET:
            packet = self._codec.decode(data[1:])
            if source in self._in_step:
                self._packet(source, packet)
        elif kind == _DELIVERED:
            mid, _ = get(data, 1)
            self._confirmed[source] = max(mid, self._confirmed.get(source, 0))
        elif kind in (_STOPPED, _DRAINED):
            self._epochs.told(source, decode(data, 1), kind == _DRAINED)
        elif kind == _ENTERS:
            view = decode(data, 1)
            if self._epochs.pulls(view):
                self._enter(view)
            if view == self._epochs.current:
                self._in_step.add(source)
            else:
                self._in_step.discard(source)
        else:
            raise MalformedError("an unknown kind of message on a link")

    def _packet(self, source: str, packet: Any) -> None:
        """Hand a packet of this epoch to the protocol."""
        name = name_of(source)
        if "payload" in packet.fields:
            payload = packet[packet.fields.index("payload") + 1]
            self._get_head(payload)
            held = self._held.get(name, 0) + 1
            if held > self._most:
                raise RemoteProtocolError(f"{name!r} sent {held} messages out of order")
            self._held[name] = held
            if not self._forgets:
                self._undelivered[name, packet[packet.fields.index("mid") + 1]] = payload
        self.endpoint.receive(name, packet)
        self._collect()

    def _collect(self) -> None:
        """Pass on packets of the protocol to the link, and deliveries to the application."""
        aliases = self._epochs.aliases
        for to, packet in self.endpoint.take_packets():
            if to in aliases and self._epochs.present(aliases[to]):
                self._fifo.send(aliases[to], _PACKET + self._codec.encode(packet))
        for name, number, data in self.endpoint.take_deliveries():
            self._undelivered.pop((name, number), None)
            self._deliver(name, number, data)

    def _deliver(self, name: str, number: int, data: bytes) -> None:
        head, payload = self._get_head(data)
        self._time = max(self._time, head.time)
        self._held[name] = max(0, self._held.get(name, 0) - 1)
        alias = self._epochs.alias(name)
        if alias is None or not self._epochs.present(alias):
            return  # its sender is gone
        mid = number + head.offset
        self._due[alias] = mid
        if not head.only or self.me in head.only:
            self._ready.append(Delivery(alias, mid, payload))

    # -- epochs ---------------------------------------------------------------

    def _settle(self) -> None:
        """Do everything that can be done now."""
        epochs = self._epochs
        self._collect()
        if epochs.changing and not self._forgets and epochs.all_told(drained=False):
            self._release()
        if epochs.changing and not epochs.drained and self._is_drained():
            epochs.drained = True
            epochs.due.update(epochs.aliases.values())
        if epochs.changing and epochs.drained and epochs.all_told(drained=True):
            self._enter(epochs.known)
        if not epochs.changing and self._queue:
            self._hand_down()
            self._collect()

    def _is_drained(self) -> bool:
        """Return whether all messages to members that are still alive are delivered there."""
        return all(
            self._confirmed.get(alias, 0) >= mid
            for alias, mid in self._sent.items()
            if self._epochs.alias(name_of(alias)) == alias
        )

    def _release(self) -> None:
        """Deliver what the protocol holds back, in the order of Lamport times."""
        held, self._undelivered = self._undelivered, {}
        for (name, number), data in sorted(
            held.items(), key=lambda item: (self._get_head(item[1])[0].time, item[0])
        ):
            self._deliver(name, number, data)

    def _enter(self, view: View) -> None:
        """Begin an epoch, with a new endpoint."""
        epochs = self._epochs
        epochs.current = view
        names = sorted(view.alive)
        self.endpoint = create(self._protocol, self.me, names)
        self._everybody = tuple(name for name in names if name != self.me)
        self._count = 0
        for table in (self._sent, self._held, self._undelivered):
            table.clear()
        self._in_step.clear()
        for name in self._everybody:
            alias = epochs.alias(name)
            if alias is not None and epochs.present(alias):
                self._fifo.send(alias, _ENTERS + encode(view))
            elif self._forgets:
                self.endpoint.forget(name)

    def establish(self, alias: str, name: str, incarnation: int) -> str:
        self._epochs.met(alias, name, incarnation, self._identity.incarnation)
        self._settle()
        return alias

    def forget(self, name: str) -> None:
        """Let the group go on without an incarnation."""
        member = self._epochs.present(name)
        self._fifo.forget(name)
        self._due.pop(name, None)
        self._sent.pop(name, None)
        self._queued.pop(name, None)
        self._in_step.discard(name)
        self._epochs.ended(name)
        for waiting in self._queue:
            waiting.to.discard(name)
        self._queue = deque([waiting for waiting in self._queue if waiting.to])
        if member and self._forgets:
            self.endpoint.forget(name_of(name))
        self._settle()

    def discard(self, name: str) -> bool:
        self._fifo.readmit(name)
        self._confirmed.pop(name, None)
        self._epochs.discard(name)
        return True

    # -- what the transport asks for ------------------------------------------

    def message_number(self, mid: int, payload: bytes) -> int | None:
        if payload[:1] != _PACKET:
            return None
        try:
            packet = self._codec.decode(payload[1:])
            fields = packet.fields
            if "payload" not in fields or "mid" not in fields:
                return None
            head, _ = self._get_head(packet[fields.index("payload") + 1])
            if head.only and self.me not in head.only:
                return None
        except (MalformedError, RemoteProtocolError):
            return None
        number: int = packet[fields.index("mid") + 1]
        return number + head.offset

    def acked(self, source: str, mid: int) -> int:
        self._fifo.receive(source, fifo.Ack(mid))
        return 0

    def permitted(self, source: str, mid: int) -> None:
        """Refuse a permit: protocols on a link have no permits here.

        Raises:
            RemoteProtocolError: Always; no peer sends a permit on a link.
        """
        name = self._protocol.name
        raise RemoteProtocolError(f"{source!r} sent a permit, but {name} has no permits")

    def take_runs(self) -> list[tuple[str, MessageRun]]:
        for alias, mid in self._due.items():
            self._fifo.send(alias, _DELIVERED + put(mid))
        self._due = {}
        epochs = self._epochs
        if epochs.due:
            told = (_DRAINED if epochs.drained else _STOPPED) + encode(epochs.known)
            for alias in sorted(epochs.due):
                self._fifo.send(alias, told)
            epochs.due.clear()
        return self._fifo.take_runs()

    def take_acks(self) -> dict[str, int]:
        return self._fifo.take_acks()

    def take_permits(self) -> dict[str, int]:
        return {}

    def take_deliveries(self) -> list[Delivery]:
        ready = self._ready
        self._ready = []
        return ready

    @property
    def changing(self) -> bool:
        return self._epochs.changing

    @property
    def group_waits(self) -> str:
        if not self._queue:
            return ""
        if not self._epochs.changing:
            names = sorted(
                name_of(alias) for alias in self._queue[0].to if not self._epochs.present(alias)
            )
            return f"waiting for {' and '.join(names)} to be reached and to join the group"
        names = sorted({*self._epochs.missing, *self._epochs.absent})
        return f"waiting for {' and '.join(names) or 'everybody'} to agree that the group changes"

    def queued(self, name: str) -> int:
        return self._queued.get(name, 0)

    @property
    def absent(self) -> dict[str, int]:
        return self._epochs.absent

    @property
    def waits(self) -> bool:
        return self.changing or self.endpoint.held_back > 0

    def blocked(self) -> list[Blocked]:
        return self.endpoint.blocked()

    def confirmed(self, peer: str, acked: int) -> int:
        return self._confirmed.get(peer, 0)

    @property
    def idle(self) -> bool:
        return (
            not self._epochs.changing
            and not self._queue
            and self.endpoint.idle
            and self._fifo.idle
            and not self._due
        )

    def tick(self) -> None:
        self.endpoint.retransmit()
        self._settle()


def _check(protocol: Protocol) -> None:
    """Raise an error if a protocol cannot go on when a member fails."""
    for kind in kinds(protocol):
        if "mid" not in kind.fields or "payload" not in kind.fields:
            raise LocalProtocolError(
                f"{protocol.name} cannot run on a network: its group could not go on when a "
                f"member fails, because it cannot forget members (`Protocol.forgets`) and not "
                f"all of its packets are messages with a number and a payload"
            )


def carrier_for(protocol: Protocol, me: Identity, most: int) -> Carrier:
    """Return what carries a protocol: itself, or a link that it runs on.

    Args:
        protocol: The protocol.
        me: This process.
        most: How many messages of one peer a protocol on a link may hold back here; no
            correct peer has more messages under way than it may have unacknowledged.
    """
    if issubclass(protocol.endpoint, Adaptive):
        return Listing(protocol, me, most)
    if is_native(protocol):
        return Native(protocol, me.name)
    return Link(protocol, me, most)
