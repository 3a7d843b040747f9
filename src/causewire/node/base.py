"""What the two kinds of node have in common: arguments, addresses, status.

`causewire.node.Node` drives a transport from an asyncio event loop,
`causewire.blocking.Node` from a thread of its own.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import time
from abc import abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, ClassVar, Generic, Literal, TypeVar

from ..core.endpoint import Delivery
from ..protocols import DEFAULT, Protocol
from ..transport import (
    Address,
    GiveUpAfter,
    PeerEvent,
    Session,
    Superseded,
    TraceFailed,
    Transport,
    TransportConfig,
)
from .addresses import NOWHERE, Place, check_socket, is_hostname, mismatch, settings, split
from .gate import Gate, StorePlace
from .held import Held, HeldObserver
from .logs import EventLog
from .metrics import metrics
from .receipt import BaseReceipt, NodeError
from .rejoining import Rejoining

__all__ = ["BaseNode", "Message", "Resolver", "new_incarnation"]

Message = Delivery
"""A message that was delivered: `source`, `mid` (its number there) and `payload`."""

Resolver = Callable[[str], Place | Awaitable[Place | None] | None]
"""Returns the address of a process, or None if it is not known."""

GIVE_UP_AFTER = 30.0
"""The default of `give_up_after`, in seconds."""

GOODBYE = 0.5
"""Seconds that a goodbye may take after `drain`, if there was any."""

R = TypeVar("R", bound=BaseReceipt)

_log = logging.getLogger("causewire.node")


def new_incarnation() -> int:
    """Return a number that is higher than that of every earlier start, if the clock is right."""
    return (time.time_ns() // 1_000_000) << 20 | secrets.randbits(20)


def _is_number(value: object) -> bool:
    """Return whether a value can be a time in seconds."""
    return isinstance(value, int | float) and not isinstance(value, bool)


class BaseNode(Generic[R]):
    """A process that sends and receives messages in causal order.

    Args:
        name: The name of this process, by which others send to it.
        listen: The address to listen on, as `"host:port"` or a pair; port 0 takes a free one.
        peers: Addresses of other processes by name. More can be added with `add_peer` or
            found by `resolver`, and processes that contact this one become known as well.
        protocol: The name of a protocol, or a `causewire.protocols.Protocol`.
        protocol_options: Options of the protocol.
        key: The cluster key, at least 16 random bytes, or several, of which the first one
            seals and all open, so that a key can be replaced while the cluster runs.
            Without one, datagrams are not encrypted, and the node listens on loopback
            addresses only, unless `insecure`.
        identity: The private key of this process (32 bytes, X25519). With it, a member
            that has the cluster key cannot speak for another one.
        identities: The public keys of the other members, by name; needed with `identity`.
        resolver: A function that returns the address of a process, given its name.
        trace: A file or directory to write a trace to.
        run: The name of the run in the trace.
        config: Limits and times of the transport.
        drain: How many seconds closing may take until everything is delivered.
        insecure: Whether to listen on other addresses than loopback without a key.
        sock: A bound datagram socket to use, in place of `listen`.
        incarnation: A number that is higher than that of every earlier start of this
            process; by default it is made from the time.
        give_up_after: How many seconds a peer may leave messages or pings unanswered before
            it is given up: messages to it fail, and nobody waits for it any longer. A
            mapping gives a time for each name, and for all others under `""`, by default the
            same 30 seconds; None means never. The default is 30 seconds:
            longer than a restart, a pause for garbage collection or a change of routes
            usually takes, and shorter than callers of a service usually wait.
        read_within: How soon the application of this node promises to take a message, in
            seconds. If messages wait for longer without any of them being taken, the node has
            its peers give it up, so that nobody waits for it, and raises `Superseded`; with
            `rejoin`, it comes back when the application reads again. Choose more than the
            longest piece of work between two messages. None, the default, promises nothing.
        ordered_events: Whether `receive` and iteration yield, in addition to messages, the
            events `PeerUp`, `PeerRestarted`, `PeerLeft` and `PeerForgotten`, at the place
            where they belong: after the last message of that incarnation, and before any
            message that may depend on the event. `isinstance(item, Message)` tells them apart.
        reports_handled: Whether the application says when it has handled a message
            (`message.done()`, or `async with message:`), so that senders can wait for that
            with `receipt.handled()`. It then has to say so for every message.
        store: A file in which the node keeps what must survive a crash: messages that `send`
            accepted, and messages that were delivered and not handled. A node that is started
            with the file of an earlier one continues as the same incarnation. See the page
            "Durability".
        rejoin: Whether to continue as a new incarnation when peers have given this
            process up: at once, or after a pause if that happens again soon. During a pause,
            `send` raises `Superseded`, and `receive` waits. Without `rejoin`, both raise
            `Superseded`.

    Raises:
        LocalProtocolError: The protocol or one of its options is not known, or the protocol
            cannot be stored.
        StoreError: The store is in use, is not a store of this node, or is damaged.
        ValueError: The name, the key, an address or another argument is unsuitable.
    """

    _receipt: ClassVar[type[Any]] = BaseReceipt

    def __init__(
        self,
        name: str,
        *,
        listen: Place = "127.0.0.1:0",
        peers: Mapping[str, Place] | None = None,
        protocol: str | Protocol = DEFAULT,
        protocol_options: Mapping[str, Any] | None = None,
        key: bytes | Sequence[bytes] | None = None,
        identity: bytes | None = None,
        identities: Mapping[str, bytes] | None = None,
        resolver: Resolver | None = None,
        trace: str | os.PathLike[str] | None = None,
        run: str = "node",
        config: TransportConfig | None = None,
        drain: float = 5.0,
        insecure: bool = False,
        sock: socket.socket | None = None,
        incarnation: int | None = None,
        give_up_after: GiveUpAfter | Literal["default"] = "default",
        read_within: float | None = None,
        rejoin: bool = False,
        ordered_events: bool = False,
        reports_handled: bool = False,
        store: StorePlace | None = None,
    ) -> None:
        if not isinstance(peers or {}, Mapping):
            raise ValueError(
                f"peers is a mapping from names to addresses, not a {type(peers).__name__}"
            )
        self._listen = listen
        self._places = dict(peers or {})
        for place in (listen, *self._places.values()):
            split(place)
        if not _is_number(drain) or not drain >= 0:
            raise ValueError(f"drain is a number of seconds from 0, not {drain!r}")
        if sock is not None:
            check_socket(sock)
        self._resolver = resolver
        self._insecure = insecure or key is not None
        self._drain = drain
        self._socket = sock
        self._recorder = None
        life = 1
        if trace is not None and store is not None:
            raise ValueError("a node with a store cannot write a trace: a crash would tear it")
        if trace is not None:
            from .recorder import TraceRecorder, lives_in

            life += lives_in(trace, name)
        if give_up_after == "default":
            give_up_after = GIVE_UP_AFTER
        elif isinstance(give_up_after, Mapping):
            give_up_after = {"": GIVE_UP_AFTER, **give_up_after}
        times = give_up_after.values() if isinstance(give_up_after, Mapping) else [give_up_after]
        for seconds in times:
            if seconds is not None and not _is_number(seconds):
                raise ValueError(f"give_up_after is a number of seconds above 0, not {seconds!r}")
        self._rejoins = rejoin
        self._rejoining = Rejoining()
        self._messages: deque[Message] = deque()
        self._arguments: dict[str, Any] = {
            "protocol": protocol,
            "protocol_options": protocol_options,
            "key": key,
            "entropy": secrets.token_bytes,
            "identity": identity,
            "identities": identities,
            "config": settings(config),
            "life": life,
            "receipt": self._receipt,
            "driver": self,
            "give_up_after": give_up_after,
            "read_within": read_within,
            "messages": self._messages,
            "ordered_events": ordered_events,
            "report": self._report if reports_handled else None,
        }
        self._gate: Gate | None = None
        if store is not None:
            self._gate = gate = Gate(store, name, protocol, dict(protocol_options or {}))
            incarnation = gate.memory.incarnation or incarnation
            life = gate.memory.life
            self._arguments |= {
                "life": life,
                "memory": gate.memory,
                "connection": gate.connection,
            }
        try:
            self._transport: Transport[R] = Transport(
                name, incarnation=incarnation or new_incarnation(), **self._arguments
            )
        except BaseException:
            if self._gate is not None:
                self._gate.close()
            raise
        if self._gate is not None:
            self._gate.attach(self._transport)
            self._messages = self._gate.inbox.ready
            self._arguments["messages"] = self._gate.inbox
        if trace is not None:
            number, lists = self._transport.message_number, self._transport.list_bytes
            self._recorder = TraceRecorder(trace, run, name, life, number, lists)
            self._transport.observer = self._recorder
        self._held: HeldObserver | None = None
        self._event_log = EventLog(name)
        self._closing = False
        self.drained: bool | None = None
        """After closing: whether every accepted message had been delivered by then."""
        self.unheard: tuple[str, ...] = ()
        """After closing: the peers that were up and have not acknowledged the goodbye."""
        self._prepare()

    def _prepare(self) -> None:
        """Set up what only this kind of node has."""

    def _report(self, session: Session, mid: int) -> None:
        """Have a peer told that the application has handled its message."""
        raise NotImplementedError

    def _check_ttl(self, ttl: float) -> None:
        """Raise an error unless messages can have this time to live."""
        if ttl <= 0:
            raise ValueError(f"a time to live is more than 0 seconds, not {ttl}")

    def _expire(self, receipt: BaseReceipt, ttl: float, deadline: float, now: float) -> None:
        """Have a message fail at its deadline, also after a crash."""
        until = int(1000 * (time.time() + deadline - now)), int(1000 * ttl)
        self._transport.withdraw(receipt, deadline, until)

    def _resume(self, now: float) -> None:
        """Go on with what an earlier run of this process had begun."""
        if self._gate is not None:
            self._gate.resume(now, int(1000 * time.time()))

    @property
    def name(self) -> str:
        """The name of this process."""
        return self._transport.me.name

    @property
    def incarnation(self) -> int:
        """The number that tells this start of the process from all others."""
        return self._transport.me.incarnation

    @property
    def label(self) -> str:
        """What this incarnation is called in traces: the name, and the number of its life."""
        life = self._arguments["life"]
        return self.name if life == 1 else f"{self.name}/{life}"

    @property
    def ordered_events(self) -> bool:
        """Whether peer events come between messages."""
        return bool(self._arguments["ordered_events"])

    @property
    def longest_message(self) -> int:
        """The most bytes that a message may have (`TransportConfig.message`)."""
        return self._transport.config.message

    @property
    def idle(self) -> bool:
        """Whether every accepted message is delivered, and nothing waits here."""
        return self._transport.idle

    @property
    def address(self) -> Address:
        """The address on which this node listens.

        Raises:
            NodeError: The node has not been started.
        """
        if self._socket is None:
            raise NodeError(f"{self.name} has not been started")
        host, port = self._socket.getsockname()[:2]
        return host, port

    @property
    def _here(self) -> Address | None:
        """The address on which this node listens, if it does."""
        return None if self._socket is None else self.address

    def address_of(self, name: str) -> Address | None:
        """Return the address at which a peer is reached, or None if it is not known."""
        peer = self._transport.status().peers.get(name)
        return None if peer is None or peer.address == NOWHERE else peer.address

    def on_held(self, tell: Callable[[Held], object]) -> None:
        """Have a function called with each message that had to wait, when it waits no longer.

        That is when it is delivered here, before `receive` returns it, or when it has left. Call
        this before the first message; the function must return quickly, and not raise.
        """
        number = self._transport.message_number
        self._held = HeldObserver(self.name, lambda: self.incarnation, tell, number, self._recorder)
        self._transport.observer = self._held

    def _next_life(self, now: float) -> None:
        """Replace the transport by that of a new incarnation, with the same peers."""
        old = self._transport
        number = max(new_incarnation(), old.me.incarnation + 1, old.me.superseded + 1)
        self._arguments["life"] += 1
        if self._gate is not None:
            memory = self._gate.fresh_memory(self.name)
            self._arguments |= {"memory": memory, "connection": 0}
        self._transport = Transport(self.name, incarnation=number, **self._arguments)
        if self._gate is not None:
            self._gate.next_life(self._transport)
        if self._recorder is not None:
            self._recorder.begin_life(self._arguments["life"])
        if self._held is not None:
            self._held.begin_life()
        self._transport.observer = self._held or self._recorder
        for name, peer in old.status().peers.items():
            if peer.wanted or peer.met:
                self._meet(name, peer.address, now, peer.wanted)
        old.abort()

    def _meet(self, name: str, address: Address | None, now: float, wanted: bool = True) -> None:
        """Make a process known to the transport.

        If its address is not known yet, messages to it are kept; an earlier address still counts.
        """
        if address is None and self.address_of(name) is not None:
            return
        if address is None or address == NOWHERE:
            address, place = NOWHERE, self._places.get(name)
            host = "" if place is None else f" {split(place)[0]}"
            trouble = f"its host name{host} does not resolve yet"
        else:
            trouble = mismatch(self.address, address)
        self._transport.add_peer(name, address, now, trouble, wanted)

    def _remember(self, name: str, place: Place) -> bool:
        """Note where a peer is to be looked for, if that may change; return whether it may."""
        changes = is_hostname(place)
        if changes or name in self._places:
            self._places[name] = place
        return changes

    @property
    def _resolves(self) -> bool:
        """Whether peers that do not answer have to be looked for again and again."""
        return self._resolver is not None or any(map(is_hostname, self._places.values()))

    @property
    def _must_rejoin(self) -> bool:
        """Whether to continue as a new incarnation without being asked."""
        me = self._transport.me
        if self._gate is not None and self._gate.failure is not None:
            return False
        reads = not (me.unread and self._messages)
        return me.cut_off or (self._rejoins and me.superseded > 0 and reads)

    def _check_superseded(self) -> None:
        if self._transport.me.superseded:
            raise Superseded(self.name, self._transport.me.superseded)

    def _peers_up(self) -> list[str]:
        return [name for name, peer in self._transport.status().peers.items() if peer.up]

    def _unreached(self) -> list[str]:
        return [name for name, peer in self._transport.status().peers.items() if not peer.up]

    def _lost(self) -> list[str]:
        """The peers that do not answer, and that somebody can be asked for."""
        unreached = self._unreached()
        return [name for name in unreached if self._resolver is not None or name in self._places]

    @abstractmethod
    def _publish(self, event: PeerEvent) -> None:
        """Log an event, and pass it on to those who watch."""

    def _check_trace(self) -> None:
        """Report that the trace could not be written, and end it, if that is so."""
        recorder = self._recorder
        if recorder is not None and recorder.failure is not None:
            self._recorder = None
            self._transport.stats.trace_failed += 1
            self._publish(TraceFailed(recorder.failure))

    def _stats(self) -> dict[str, Any]:
        return self._transport.status().counters

    def _metrics(self) -> str:
        return metrics(self.name, self._transport.status(), len(self._messages))

    def _end_drain(self) -> bool:
        """Record, and log, whether every accepted message was delivered."""
        status = self._transport.status()
        left = {name: peer.messages for name, peer in status.peers.items() if peer.messages}
        stopped = self._gate is not None and self._gate.failure is not None
        self.drained = not (status.accepted if stopped else left)
        if left:
            _log.warning("%s closes with messages that were not delivered: %s", self.name, left)
        return self.drained

    @property
    def _goodbye_goes_on(self) -> bool:
        """Whether a peer that is up may still acknowledge the goodbye."""
        peers = self._transport.status().peers
        return any(peers[name].up for name in self._transport.unheard)

    def _end_goodbye(self) -> None:
        """Record, and log, which peers have not acknowledged the goodbye."""
        self.unheard = tuple(self._transport.unheard)
        if self.unheard:
            _log.warning(
                "%s leaves, and these peers have not heard of it: %s",
                self.name,
                ", ".join(self.unheard),
            )
