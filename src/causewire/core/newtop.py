"""Causal broadcast with one Lamport clock (Newtop; Almeida, section 3.1).

One integer per message, at the price of time: a message cannot say what it depends on, so
it waits until nothing that it could depend on can still arrive.

**State.** V (`_v`): for each member, the clock of the last packet from it; the own entry is
the Lamport clock of this process (ERRATA 7.7).

**Send.** The clock goes up by one, and the message carries it.

**Receive.** The message is kept, its clock is noted as the last from its sender, and the
own clock is raised to it if it is lower. The clocks of one sender only rise, and channels
are FIFO, so everything that is yet to arrive from P_h has a clock above V[h].

**Deliver.** Messages with a clock up to min(V), in the order of (clock, name). Whatever
happened before m has a smaller clock than m. It is at most min(V), so it has arrived, and
goes first.

    invariant   everything with a clock up to min(V) has been delivered here;
                V[me] >= V[h] for every h.

**Null messages.** m waits for a packet from everybody, so one idle process would hold it
back for ever (ERRATA 7.7). Such a process sends a `Null`, which contains only its clock. A
null does not advance the clock of its sender, because "nothing with a clock up to this is
yet to come from here" is true already. Hence clocks count messages alone; `told` (the clock
of the last message or null sent from here) is behind the clock only if something with a
higher clock arrived; and each such arrival leads to at most one null. When the messages
stop, the nulls stop.

The endpoint has no clock on the wall, so the driver decides what "idle for some time"
means: `retransmit`, its periodic block, sends the null if one is needed. Once all packets
have arrived, one such round at every process delivers everything. With `eager_nulls` the
null leaves with the handling of the packet that made it necessary, unless a reaction to a
delivery has carried the same clock. Latency is then two hops whatever the driver does, at
up to n - 1 packets per process for each broadcast.

**Order.** Messages of others are delivered everywhere in the same order, but a copy to the
sender itself is delivered inside `send`, as in every protocol here, and not when its turn
comes. That is causal (everything that it depends on is delivered here or sent from here).
The order is total only among messages that neither of the two processes compared has sent.

Numbers need not travel: on a FIFO channel, the x-th message of a process that only
broadcasts is its message x. Anything but a rise of the sender's clock is an error: channels
must not lose, duplicate or reorder (ERRATA 7.7).

**Forgetting a member.** Its clock counts as having passed everything, so nobody waits for a
packet from it.

Cost: one integer per packet, O(1) steps to send, O(n + log b) to receive.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from heapq import heapify, heappop, heappush
from typing import Any, Self

from .endpoint import Blocked, Footprint, Packet, RemoteProtocolError, Wait, check_number
from .group import BroadcastEndpoint

__all__ = ["Newtop", "NewtopMessage", "Null"]

_new = tuple.__new__

_FOR_EVER = 1 << 63
"""A clock that no process reaches."""


class NewtopMessage(Packet):
    """A broadcast, sent when the clock of its sender became `clock`."""

    __slots__ = ()
    kind = "msg"
    fields = ("clock", "payload")
    integers = 1

    def __new__(cls, clock: int, payload: Any) -> Self:
        check_number("clock", clock, 1)
        return _new(cls, ("msg", clock, payload))


class Null(Packet):
    """Nothing with a clock up to `clock` is yet to come from the sender."""

    __slots__ = ()
    kind = "null"
    fields = ("clock",)
    integers = 1

    def __new__(cls, clock: int) -> Self:
        check_number("clock", clock, 1)
        return _new(cls, ("null", clock))


class Newtop(BroadcastEndpoint):
    """Lamport-clock broadcast over reliable FIFO channels."""

    __slots__ = ("_counts", "_eager", "_held", "_i", "_told", "_v")

    def __init__(
        self, me: str, group: Iterable[str] | None = None, *, eager_nulls: bool = False
    ) -> None:
        super().__init__(me, group)
        self._eager = eager_nulls
        self._i = self.index[me]
        self._v = [0] * len(self.group)
        """V: the last clock from each member; the own entry is the clock of this process."""
        self._told = 0
        """The last clock that was sent from here to everybody."""
        self._counts = [0] * len(self.group)
        """How many messages of each other member have arrived."""
        self._held: list[tuple[int, int, int, Any]] = []
        """A heap of (clock, sender, number, payload); no two have the same first two."""

    def send(self, to: str | Collection[str], payload: Any) -> int:
        to_self = self._everybody(to)
        mid = self._mid = self._mid + 1
        clock = self._told = self._v[self._i] = self._v[self._i] + 1
        message = _new(NewtopMessage, ("msg", clock, payload))
        self._packets.extend([(name, message) for name in self.others])
        if to_self:
            self._deliver(self.me, mid, payload)
        return mid

    def receive(self, source: str, packet: Packet) -> None:
        j = self._member(source)
        if self._forgotten and source in self._forgotten:
            return
        kind = packet.__class__
        if kind is not NewtopMessage and kind is not Null:
            raise RemoteProtocolError(
                f"{source!r} sent {packet!r}, which is not a packet of newtop"
            )
        v = self._v
        clock = packet[1]
        if clock <= v[j]:
            raise RemoteProtocolError(
                f"{source!r} sent clock {clock} after {v[j]}: newtop needs reliable FIFO channels"
            )
        v[j] = clock
        if clock > v[self._i]:
            v[self._i] = clock
        if kind is NewtopMessage:
            self._counts[j] += 1
            heappush(self._held, (clock, j, self._counts[j], packet[2]))
        self._settle()

    def _settle(self) -> None:
        """Deliver all up to min(V), which a reaction cannot change: it only sends."""
        held = self._held
        if held:
            low = min(self._v)
            while held and held[0][0] <= low:
                _, j, mid, payload = heappop(held)
                self._deliver(self.group[j], mid, payload)
        if self._eager:
            self._say_null()

    def _forget(self, peer: str) -> tuple[int, ...]:
        """Nobody waits for word from `peer` any more: its clock has passed everything."""
        super()._forget(peer)
        j = self.index[peer]
        self._v[j] = _FOR_EVER
        self._held = [entry for entry in self._held if entry[1] != j]
        heapify(self._held)
        return ()

    def retransmit(self) -> None:
        """Send the clock to the others, if they may not know how far it has come."""
        self._say_null()

    def _say_null(self) -> None:
        clock = self._v[self._i]
        if self._told < clock:
            self._told = clock
            null = _new(Null, ("null", clock))
            self._packets.extend([(name, null) for name in self.others])

    def blocked(self) -> list[Blocked]:
        return [
            Blocked(self.group[j], mid, self.me, "receiver", self._waits(clock))
            for clock, j, mid in sorted(entry[:3] for entry in self._held)
        ]

    @property
    def held_back(self) -> int:
        return len(self._held)

    def _waits(self, clock: int) -> tuple[Wait, ...]:
        return tuple(
            Wait("word", name, clock)
            for name, heard in zip(self.group, self._v, strict=True)
            if heard < clock
        )

    @property
    def idle(self) -> bool:
        """Whether nothing is left to do, and nobody can be waiting for a null from here."""
        return self._told == self._v[self._i] and super().idle

    def footprint(self) -> Footprint:
        """Return the space for V, the counts (one's own number among them) and `told`.

        A message that is held takes its clock, its number and its sender.
        """
        state = 2 * len(self.group) + 1 + 3 * len(self._held)
        return Footprint(state, {"msg": NewtopMessage.integers, "null": Null.integers})

    def _state(self) -> Hashable:
        held = frozenset(self._held)
        return (self.group, self._eager, tuple(self._v), self._told, tuple(self._counts), held)

    def _copy_into(self, twin: Self) -> None:
        super()._copy_into(twin)
        twin._eager = self._eager
        twin._i = self._i
        twin._v = self._v[:]
        twin._told = self._told
        twin._counts = self._counts[:]
        twin._held = self._held[:]
