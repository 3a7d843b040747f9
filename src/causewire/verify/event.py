"""One event at one process: the endpoint is called, and the client reacts.

The client makes its sends in order, at any moment: as an event of its
own, or inside a delivery, of which a handler may have several. An event with
deliveries therefore has an outcome for each way to spread sends over them. The way
taken is the outcome's *script*, a number at each point at which there was a choice: 0
for going on, 1 to send, 2 and up to send and mark a copy. To find all, an event is run
again and again, each time with the choices of some outcome so far up to one point, and
another choice there (`ExecutedEvent.others`).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ..core.endpoint import Delivery, Endpoint, Outgoing, Packet
from .ghost import Tag, tags_in
from .obituaries import Member, opened
from .post import Sent
from .selfcheck import EndpointError, copied
from .setup import FORGET, FREE, MARK, TICK, Setup

if TYPE_CHECKING:
    from .actor import Actor

__all__ = [
    "FORGETS",
    "PUMP",
    "SEND",
    "TICKS",
    "ExecutedEvent",
    "Local",
    "Outcome",
    "Script",
    "trimmed",
    "unasked_events",
]

SEND = -1
TICKS = -2
PUMP = -3
FORGETS = -4
"""Events that are no packets: the client sends, the driver calls `retransmit`, or takes
what is to be sent, or (this one minus k) forgets process k."""

Script: TypeAlias = tuple[int, ...]


def unasked_events(setup: Setup) -> list[tuple[int, int]]:
    """Return the events that may happen at any moment besides sends, and what each costs."""
    events = []
    if setup.network.ticks:
        events.append((TICKS, TICK))
    if setup.calls.pumps:
        events.append((PUMP, FREE))
    if setup.network.forgets:
        events += [(FORGETS - k, FORGET) for k in range(setup.processes)]
    return events


class Local(NamedTuple):
    """A local state: the endpoint, and what client and ghost keep."""

    endpoint: Endpoint
    left: int
    """Sends that are still to come."""
    got: tuple[int, ...]
    """For each sender, which of its messages were delivered here, as bits."""
    ghost: Hashable
    out: int = 0
    """The copies of own messages that have left, as bits."""
    touched: bool = False
    """Whether a taint has ever been here; if not, there is none to look for."""
    known: int = 0
    """The obituaries known here, as bits; with its own, a process has stopped."""

    @property
    def delivered(self) -> int:
        """The number of messages delivered here."""
        return sum(bits.bit_count() for bits in self.got)


class Outcome(NamedTuple):
    """One of the things that come of an event."""

    local: int
    sent: Sent
    cost: int
    script: Script
    over: bool = False
    violation: str | None = None


def trimmed(script: Script) -> Script:
    """A script without the choices at its end to do nothing."""
    end = len(script)
    while end and not script[end - 1]:
        end -= 1
    return script[:end]


class ExecutedEvent:
    """One event, with the client's choices given as far as `script` goes."""

    __slots__ = (
        "actor",
        "choices",
        "endpoint",
        "ghost",
        "got",
        "left",
        "marked",
        "member",
        "others",
        "out",
        "over",
        "script",
        "touched",
        "violation",
    )

    def __init__(self, actor: Actor, local: Local, script: Script) -> None:
        self.actor = actor
        self.script = script
        self.choices: list[int] = []
        self.others: list[Script] = []
        self.endpoint = copied(local.endpoint)
        if actor.post.driver.reacts:
            self.endpoint.on_delivery = self._delivered
        self.left = local.left
        self.got = list(local.got)
        self.ghost = local.ghost
        self.out = local.out
        self.touched = local.touched
        self.member = Member(actor.index, len(actor.names), actor.post.setup.network, local.known)
        self.marked = False
        self.over = False
        self.violation: str | None = None

    def perform(self, event: int) -> Outcome:
        """Let the endpoint handle an event, and return the outcome."""
        actor = self.actor
        endpoint = self.endpoint
        driver = actor.post.driver
        sent: dict[int, list[int]] = {}
        try:
            if event == SEND:
                self._send(self._choose(self._options() - 1) + 1)
            elif event == TICKS:
                endpoint.retransmit()
            elif event <= FORGETS:
                self._learn(1 << FORGETS - event, actor.index)
            elif event != PUMP:
                sender, packet = actor.post.packets[actor.index].values[event]
                self._receive(sender, packet)
            if not driver.reacts:
                for delivery in endpoint.take_deliveries():
                    self._delivered(delivery)
            if event == PUMP or not driver.pumps:
                sent = self._outgoing(driver.take(endpoint))
            endpoint.on_delivery = None
            k = self._number()
        except EndpointError:
            raise
        except Exception as error:
            self.violation = f"error: {type(error).__name__}: {error}"
            k, sent = 0, {}
        return Outcome(
            k,
            tuple(sorted((j, tuple(numbers)) for j, numbers in sent.items())),
            MARK if self.marked else FREE,
            tuple(self.choices),
            self.over,
            self.violation,
        )

    def _outgoing(self, packets: list[Outgoing]) -> dict[int, list[int]]:
        """Return the numbers of the packets that leave, by destination."""
        actor = self.actor
        sent: dict[int, list[int]] = {}
        numbered = [(actor.numbers[name], packet) for name, packet in packets]
        for j, packet in self.member.outgoing(numbered):
            sent.setdefault(j, []).append(actor.post.packets[j]((actor.index, packet)))
            if actor.forget:
                self._left(j, packet)
        if not actor.post.ordered:
            for numbers in sent.values():
                numbers.sort()
        return sent

    def _number(self) -> int:
        """Return the number of the local state after the event."""
        actor = self.actor
        touched = actor.ghost.marks and (self.touched or self.marked)
        got = tuple(self.got)
        return actor.number(
            Local(self.endpoint, self.left, got, self.ghost, self.out, touched, self.member.known)
        )

    def _receive(self, sender: int, packet: Packet) -> None:
        """Learn of the obituaries in front of a packet, then hand the packet over."""
        actor = self.actor
        obituaries, inner = opened(packet)
        if obituaries:
            self._learn(obituaries, sender)
        if inner is not None and self.member.accepts(sender):
            self.touched |= any(tag.taint for tag in tags_in(inner))
            actor.post.driver.receive(self.endpoint, actor.names[sender], inner)

    def _learn(self, obituaries: int, source: int) -> None:
        """Forget processes; or stop, if this process is one of them."""
        names = self.actor.names
        self.member.learn(obituaries, source, lambda k: self.endpoint.forget(names[k]))
        if self.member.stopped:
            self.left = 0

    def _left(self, j: int, packet: Packet) -> None:
        """A packet has left: what is written on its message may be forgotten here."""
        for tag in tags_in(packet):
            if tag.sender != self.actor.index:
                continue
            bit = 1 << len(self.actor.names) * (tag.mid - 1) + j
            if self.out & bit:
                name = type(self.endpoint).__name__
                raise EndpointError(
                    f"{self.actor.names[self.actor.index]} sends {packet.kind} of message "
                    f"{tag.mid} to {self.actor.names[j]} a second time, though nothing is lost: "
                    f"look at `_copy_into` and `_state` of {name}; if {name} repeats messages "
                    "by design, check it with --reductions symmetry,merge,prune"
                )
            self.out |= bit

    def _options(self) -> int:
        """How many ways there are to go on: not sending, sending, marking."""
        sends = self.actor.sends
        if not self.left:
            return 1
        send = sends[len(sends) - self.left]
        if not send.ready(self.got):
            return 1
        return 2 + len(self._may_mark())

    def _may_mark(self) -> list[int]:
        """Which copies of the next message may be marked."""
        if self.marked:
            return []
        actor = self.actor
        mid = len(actor.sends) - self.left + 1
        return actor.ghost.may_mark(self.ghost, actor.index, mid, self._receivers(mid))

    def _receivers(self, mid: int) -> tuple[int, ...]:
        return self.member.living(self.actor.sends[mid - 1].to)

    def _choose(self, options: int) -> int:
        k = len(self.choices)
        if k < len(self.script):
            self.choices.append(self.script[k])
        else:
            self.others += [(*self.choices, other) for other in range(1, options)]
            self.choices.append(0)
        return self.choices[-1]

    def _send(self, how: int) -> None:
        actor = self.actor
        mark = self._may_mark()[how - 2] if how > 1 else None
        self.marked |= mark is not None
        self.left -= 1
        mid = len(actor.sends) - self.left
        to = self._receivers(mid)
        if not to:
            return  # the send fails at once
        taint, self.ghost = actor.ghost.sends(self.ghost, actor.index, mid, to, mark)
        names = actor.names[to[0]] if len(to) == 1 else [actor.names[j] for j in to]
        self.endpoint.send(names, Tag(actor.index, mid, taint))

    def _delivered(self, delivery: Delivery) -> None:
        """Judged by what was sent, and by whom: not by what the protocol says of it."""
        source, mid, taint = delivery.payload
        bit = 1 << mid
        got = self.got[source]
        judged = self.actor.judged
        if self.violation is None and not self.over:
            if got & bit and "duplicate" in judged:
                self.violation = "duplicate"
            elif got > bit and "FIFO order" in judged:
                self.violation = "FIFO order"
            else:
                ghost = self.actor.ghost
                seen = ghost.delivers(
                    self.ghost, self.actor.index, source, mid, taint, self.member.known
                )
                self.ghost, violation, self.over = seen
                if violation in judged:
                    self.violation = violation
        self.got[source] = got | bit
        while self.actor.post.driver.reacts and (options := self._options()) > 1:
            how = self._choose(options)
            if not how:
                break
            self._send(how)
