"""Causal broadcast with vector clocks (Birman, Schiper, Stephenson; Baldoni's Fig. 1).

The plain protocol, and the reference for others: every broadcast says exactly what it may
depend on, so it is never held longer than causality requires.

**State.** V (`_v`), a count for each member: how many of its broadcasts have been delivered
here; for this process itself, how many it has sent. Every message is a broadcast, so the
count of a process is the number (`mid`) of its last one.

**Send** (lines S1-S3). The packet carries V_T, the value of V before the message is
counted: everything that was delivered at its sender, or sent by it, before. The sender's
own entry of V_T is `mid - 1`, so the packet has `mid` in its place.

**Deliver** (lines R1-R3). Message m of P_j is delivered at P_i when

    V_T(m)[j] = V_i[j]  and  V_T(m)[h] <= V_i[h] for every other h,

then V_i[j] becomes `mid`. Fig. 1 has `<=` for j as well, which accepts duplicates (ERRATA
7.6). With `=` a duplicate is recognised: its number is not above V_i[j]. The state is
updated before the upcall (ERRATA 7.1).

    invariant   V_i[j] = x: the messages 1 to x of P_j, and no others of it, are
                delivered here, and everything that they depend on.

**Forgetting a member.** Nothing waits for its messages any more. Vectors keep their size.

Cost: n integers per message; O(n) steps to send and to receive, and O(log b) for each
message that has to be waited for (`held.py`).

Channels may reorder and duplicate, but not lose: nothing is ever sent again. Two processes
may deliver concurrent messages in different orders.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from typing import Any, Self

from .endpoint import Blocked, Footprint, Packet, RemoteProtocolError, check_number
from .group import BroadcastEndpoint
from .held import HoldingBuffer

__all__ = ["Bss", "BssMessage"]

_new = tuple.__new__


class BssMessage(Packet):
    """Broadcast `mid`, and what was delivered at its sender before it.

    `past` has the number of broadcasts of each other member, in the order of
    the group with the sender left out.
    """

    __slots__ = ()
    kind = "msg"
    fields = ("mid", "past", "payload")

    def __new__(cls, mid: int, past: tuple[int, ...], payload: Any) -> Self:
        check_number("mid", mid, 1)
        if type(past) is not tuple:
            raise RemoteProtocolError(f"past must be a tuple of counts, not {past!r}")
        for count in past:
            check_number("a count of past", count, 0)
        return _new(cls, ("msg", mid, past, payload))

    @property
    def integers(self) -> int:  # type: ignore[override]
        return 1 + len(self[2])


class Bss(BroadcastEndpoint):
    """Vector-clock broadcast over a reliable network of any order."""

    __slots__ = ("_held", "_i", "_v")

    def __init__(self, me: str, group: Iterable[str] | None = None) -> None:
        super().__init__(me, group)
        self._i = self.index[me]
        self._v = [0] * len(self.group)
        """V: the broadcasts of each member delivered here; of this process, those sent."""
        self._held = HoldingBuffer()

    def send(self, to: str | Collection[str], payload: Any) -> int:
        to_self = self._everybody(to)
        i = self._i
        v = self._v
        mid = self._mid = self._mid + 1
        message = _new(BssMessage, ("msg", mid, (*v[:i], *v[i + 1 :]), payload))
        v[i] = mid
        self._packets.extend([(name, message) for name in self.others])
        if to_self:
            self._deliver(self.me, mid, payload)
        return mid

    def receive(self, source: str, packet: Packet) -> None:
        j = self._member(source)
        if self._forgotten and source in self._forgotten:
            return
        if packet.__class__ is not BssMessage:
            raise RemoteProtocolError(f"{source!r} sent {packet!r}, which is not a packet of bss")
        if self._known(source, j, packet):
            return
        self._held.hold(source, packet[1], packet, self._needs(j, packet))
        self._settle()

    def _settle(self) -> None:
        for name, message in self._held.take():
            mid = message[1]
            self._v[self.index[name]] = mid
            self._held.delivered(name, mid)
            self._deliver(name, mid, message[3])

    def _needs(self, j: int, message: Packet) -> list[tuple[str, int]]:
        """Return the messages that V_T counts and V does not (the delivery condition, R1).

        The last message of each process is enough: those before it are delivered first.
        """
        past = message[2]
        vt = (*past[:j], message[1] - 1, *past[j:])
        counts = zip(self.group, self._v, vt, strict=True)
        gone = self._forgotten
        return [(name, n) for name, mine, n in counts if n > mine and name not in gone]

    def _forget(self, peer: str) -> tuple[int, ...]:
        """Nothing waits for messages of `peer` any more; vectors keep their size."""
        super()._forget(peer)
        self._held.forget(peer)
        return ()

    def _known(self, source: str, j: int, message: Packet) -> bool:
        """Check that a correct peer can have sent this; return whether it is a duplicate."""
        _, mid, past, _ = message
        if len(past) != len(self.group) - 1:
            raise RemoteProtocolError(f"{source!r} sent a vector for {len(past) + 1} members")
        about_me = past[self._i - (self._i > j)]
        if about_me > self._mid:
            raise RemoteProtocolError(
                f"{source!r} claims message {about_me} of {self.me!r}, which has sent {self._mid}"
            )
        held = self._held.get(source, mid)
        if held is not None and held != message:
            raise RemoteProtocolError(f"{source!r} sent two different messages {mid}")
        return held is not None or mid <= self._v[j]

    def blocked(self) -> list[Blocked]:
        return self._held.blocked(self.me)

    @property
    def held_back(self) -> int:
        return len(self._held)

    def footprint(self) -> Footprint:
        n = len(self.group)
        return Footprint(n + self._held.footprint(), {"msg": n})

    def _state(self) -> Hashable:
        return (self.group, tuple(self._v), self._held.state())

    def _copy_into(self, twin: Self) -> None:
        super()._copy_into(twin)
        twin._i = self._i
        twin._v = self._v[:]
        twin._held = self._held.copy()
