"""A reliable FIFO link, so that any protocol can run on datagrams.

Most protocols assume a network that loses nothing, or that keeps the order of each sender.
The `fifo` endpoint makes such a network: each packet of the protocol becomes the payload of
a `fifo` message, and what `fifo` delivers is handed to the protocol, in order. The transport
carries `fifo` as it always does.

An ack of `fifo` says that a packet has reached the protocol, not that a message has been
delivered to the application: the protocol may hold it back. Therefore the link has a notice
of its own: messages up to this number have been delivered to the application here. One
number is enough, because all these protocols deliver the messages of one sender in the order
in which they were sent (over a link, even `unordered` does). One notice covers everything
that was delivered at a time.

A peer that comes back as a new incarnation has lost its part of the protocol's state, and
none of these protocols can continue with that: the peer is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any

from ..core import fifo
from ..core.adaptive import Adaptive
from ..core.endpoint import Blocked, Delivery, LocalProtocolError, RemoteProtocolError
from ..core.run import MessageRun
from ..protocols import Protocol, create
from .carrier import Carrier, Native, group_of, is_native
from .codec import Codec
from .identity import Identity
from .listing import Listing
from .varint import MalformedError, get, put

__all__ = ["Link", "carrier_for"]

_PACKET = b"\x00"
_DELIVERED = b"\x01"


class Link(Carrier):
    """A protocol that runs on `fifo`."""

    permits = False
    forgets = False

    def __init__(
        self, protocol: Protocol, me: str, group: Iterable[str], most: int = 1 << 20
    ) -> None:
        self.me = me
        self._name = protocol.name
        self._codec = Codec(protocol)
        self.endpoint = create(protocol, me, group)
        self.ticks = not protocol.tolerates_loss
        self._fifo = fifo.Fifo(me)
        self._forgets = protocol.forgets
        self._confirmed: dict[str, int] = {}
        """The last message that the application of each peer has."""
        self._due: dict[str, int] = {}
        """Delivery notices to send."""
        self._ready: list[Delivery] = []
        self._most = most
        self._held: dict[str, int] = {}
        """Messages of each peer that the protocol has and has not delivered."""
        self.send = self._send

    def _send(self, to: str | Collection[str], payload: Any) -> int:
        mid = self.endpoint.send(to, payload)
        self._settle()
        return mid

    def sender_to(self, name: str) -> Callable[[Any], int]:
        return partial(self._send, name)

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
        if data[:1] == _DELIVERED:
            mid, _ = get(data, 1)
            self._confirmed[source] = max(mid, self._confirmed.get(source, 0))
        elif data[:1] == _PACKET:
            packet = self._codec.decode(data[1:])
            if "payload" in packet.fields:
                held = self._held.get(source, 0) + 1
                if held > self._most:
                    raise RemoteProtocolError(f"{source!r} sent {held} messages out of order")
                self._held[source] = held
            self.endpoint.receive(source, packet)
        else:
            raise MalformedError("neither a packet nor a delivery notice")

    def _settle(self) -> None:
        """Pass on packets of the protocol to the link, and deliveries to the application."""
        for to, packet in self.endpoint.take_packets():
            self._fifo.send(to, _PACKET + self._codec.encode(packet))
        for delivery in self.endpoint.take_deliveries():
            if delivery.source != self.me:
                self._held[delivery.source] = max(0, self._held.get(delivery.source, 0) - 1)
                self._due[delivery.source] = delivery.mid
            self._ready.append(delivery)

    def message_number(self, mid: int, payload: bytes) -> int | None:
        if payload[:1] != _PACKET:
            return None
        try:
            packet = self._codec.decode(payload[1:])
        except (MalformedError, RemoteProtocolError):
            return None
        fields = packet.fields
        if "payload" not in fields or "mid" not in fields:
            return None
        number: int = packet[fields.index("mid") + 1]
        return number

    def acked(self, source: str, mid: int) -> int:
        self._fifo.receive(source, fifo.Ack(mid))
        return 0

    def permitted(self, source: str, mid: int) -> None:
        """Refuse a permit: protocols on a link have no permits here.

        Raises:
            RemoteProtocolError: Always; no peer sends a permit on a link.
        """
        raise RemoteProtocolError(f"{source!r} sent a permit, but {self._name} has no permits")

    def take_runs(self) -> list[tuple[str, MessageRun]]:
        for name, mid in self._due.items():
            self._fifo.send(name, _DELIVERED + put(mid))
        self._due = {}
        return self._fifo.take_runs()

    def take_acks(self) -> dict[str, int]:
        return self._fifo.take_acks()

    def take_permits(self) -> dict[str, int]:
        return {}

    def take_deliveries(self) -> list[Delivery]:
        ready = self._ready
        self._ready = []
        return ready

    def forget(self, name: str) -> None:
        """Let the group go on without a member, if the protocol can."""
        if self._forgets:
            self._fifo.forget(name)
            self._due.pop(name, None)
            self.endpoint.forget(name)
            self._settle()

    def discard(self, name: str) -> bool:
        return False

    def blocked(self) -> list[Blocked]:
        return self.endpoint.blocked()

    def confirmed(self, peer: str, acked: int) -> int:
        return self._confirmed.get(peer, 0)

    @property
    def idle(self) -> bool:
        return self.endpoint.idle and self._fifo.idle and not self._due

    def tick(self) -> None:
        self.endpoint.retransmit()
        self._settle()


def carrier_for(protocol: Protocol, me: Identity, peers: Iterable[str], most: int) -> Carrier:
    """Return what carries a protocol: itself, or a link that it runs on.

    Args:
        protocol: The protocol.
        me: This process.
        peers: The other members of its group.
        most: How many messages of one peer a protocol on a link may hold back here; no
            correct peer has more messages under way than it may have unacknowledged.
    """
    if issubclass(protocol.endpoint, Adaptive):
        return Listing(protocol, me, most)
    if is_native(protocol):
        return Native(protocol, me.name)
    return Link(protocol, me.name, group_of(me.name, peers), most)
