"""The buffer protocol of Mattern and Fünfrocken (MF).

**What it guarantees.** Causal delivery of unicasts over any network: packets may be
delayed, reordered, lost and duplicated. A message carries only its number, and is
delivered as soon as it arrives. The price is paid at the sender: its messages leave one at
a time, each when the one before is known to have arrived, so the buffer of a busy sender
grows without bound (Almeida, section 3.2).

**How it works** (section 3.2 of the paper). Every process has an output buffer OB, a FIFO
queue. The head of OB is posted, and the next message only when the acknowledgement of that
one has come. The receiver acknowledges a message when it gets it. The paper's input buffer
IB only bridges the time until the application asks for a message. Here messages are handed
out as they arrive, so get, deliver and receive are one event, and there is no IB.

    invariant   whatever happened before a posted message has been delivered.

For a message of the same sender, its ack says so (Lemma 3). For a message z that was
delivered here first, the invariant held when z was posted, for everything that happened
before z; and z itself has been delivered here, the only place to which it was sent. So
nothing in flight can overtake anything (Proposition 1).

**Unicast only**, as in the paper, which leaves the adaptation to broadcasts to future work
(section 5). The last step above is where a set of destinations fails: z, delivered here,
may still be in flight to another process, and an answer to z that is sent there from here
overtakes it. It does not help that the sender of z posts nothing until z is acknowledged
by all, because the answer is not sent by that process. Posting the copies of z one after
another has the same problem. A remedy would have to constrain the receivers of z, and that
is what Cykas and the permits of `csps` do. A copy to the sender itself is no problem: it
is delivered inside `send`.

**Departures from the paper.** It assumes reliable channels; Almeida's Table 1 says "any
network". For that, messages and acks carry the message's number, `retransmit` posts again
what is unacknowledged, and the receiver drops repetitions (ERRATA 6). One number for each
sender is enough to recognise them: with one message in flight at a time, the messages of a
sender arrive in the order of their numbers, so whatever is not above the last one is a
repetition. It is acknowledged again, because the first ack may have been lost. On the other
side, the last number that each receiver acknowledged distinguishes a repeated ack from one
that no correct process can have sent.

**Footnote 4** (`fifo=True`): on a transport that does not reorder, a message need not wait
for those before it to the same receiver. They may still be in flight, but they arrive
first:

    invariant   whatever happened before a posted message has been delivered, or
                is ahead of it in the same channel.

This needs FIFO channels (ERRATA 6; `mf_footnote4_needs_fifo`), and these must not have
gaps: nothing shows that a message arrived before a lost one. It is delivered, which
violates causality, and the lost one is taken for a repetition when it is posted again.
Duplicates do no harm. Neither does a channel that breaks, loses *everything* in flight and
is set up again: `retransmit` then posts everything unacknowledged again, in order, and the
receiver drops repetitions. Acks must come in the order of the messages. So a channel that
loses or reorders messages is soon detected, if not in time: the ack of the message that
came too early raises `RemoteProtocolError` at the sender (unless the acks happen to be
reordered on their way back).

Cost: O(1) steps per message, amortised; two integers for each peer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Hashable, Iterable
from typing import Any, Self

from .endpoint import (
    Blocked,
    Endpoint,
    Footprint,
    LocalProtocolError,
    Note,
    Numbered,
    NumberedMessage,
    Outgoing,
    Packet,
    RemoteProtocolError,
    Wait,
    destinations,
)

__all__ = ["Ack", "Mf", "MfMessage"]

_new = tuple.__new__


class MfMessage(NumberedMessage):
    """Message `mid` of its sender; no message with a lower number is on its way
    (or, on FIFO channels, none that could be overtaken)."""

    __slots__ = ()
    kind = "msg"


class Ack(Numbered):
    """Your message `mid` has been delivered here."""

    __slots__ = ()
    kind = "ack"
    numbered_by = "destination"


class Mf(Endpoint):
    """Causal unicast: a message waits until the one before it has arrived."""

    __slots__ = ("_acked", "_got", "_ob", "_posted", "fifo")

    def __init__(self, me: str, group: Iterable[str] | None = None, *, fifo: bool = False) -> None:
        super().__init__(me, group)
        self.fifo = fifo
        """Whether channels are FIFO and without gaps, so that footnote 4 applies."""
        self._ob: deque[Outgoing] = deque()
        """OB, the output buffer: what is not posted yet, in order."""
        self._posted: deque[Outgoing] = deque()
        """Posted and not acknowledged, in order: at most one message or, with `fifo`, any
        number of messages to one receiver. If this is empty, so is OB."""
        self._acked: dict[str, int] = {}
        """The last message of this process that each other one acknowledged."""
        self._got: dict[str, int] = {}
        """The last message of each process that was delivered here."""

    def send(self, to: str | Collection[str], payload: Any) -> int:
        names = (to,) if to.__class__ is str and to else destinations(to)
        others = [name for name in names if name != self.me]
        if len(others) > 1:
            raise LocalProtocolError(f"mf is for unicast: one destination, not {others}")
        if self._forgotten:
            self._refuse_forgotten(others)
        mid = self._mid = self._mid + 1
        if others:
            self._ob.append((others[0], _new(MfMessage, ("msg", mid, payload))))
            self._post()
        if len(others) < len(names):
            self._deliver(self.me, mid, payload)
        return mid

    def _post(self) -> None:
        """Post messages from OB, as long as they cannot overtake what is posted."""
        ob = self._ob
        posted = self._posted
        while ob and (not posted or (self.fifo and ob[0][0] == posted[0][0])):
            outgoing = ob.popleft()
            posted.append(outgoing)
            self._packets.append(outgoing)

    def receive(self, source: str, packet: Packet) -> None:
        kind = packet.__class__
        if self._forgotten and source in self._forgotten:
            return
        if kind is MfMessage:
            self._get(source, packet[1], packet[2])
        elif kind is Ack:
            self._acknowledge(source, packet[1])
        else:
            raise RemoteProtocolError(f"{source!r} sent {packet!r}, which is not a packet of mf")

    def _get(self, source: str, mid: int, payload: Any) -> None:
        last = self._got.get(source, 0)
        if not last and (not isinstance(source, str) or source in ("", self.me)):
            raise RemoteProtocolError(f"a message from {source!r}, which is not another process")
        self._packets.append((source, _new(Ack, ("ack", mid))))
        if mid > last:
            self._got[source] = mid
            self._deliver(source, mid, payload)

    def _acknowledge(self, source: str, mid: int) -> None:
        posted = self._posted
        if posted and posted[0][0] == source and posted[0][1][1] == mid:
            posted.popleft()
            self._acked[source] = mid
            self._post()
        elif mid > self._acked.get(source, 0):
            raise RemoteProtocolError(
                f"{source!r} acks message {mid}, which was never sent to it, or is not next"
            )

    def _forget(self, peer: str) -> tuple[int, ...]:
        """What was posted to `peer` counts as acknowledged; the rest is not posted."""
        failed = [message[1] for to, message in (*self._posted, *self._ob) if to == peer]
        self._posted = deque([outgoing for outgoing in self._posted if outgoing[0] != peer])
        self._ob = deque([outgoing for outgoing in self._ob if outgoing[0] != peer])
        self._acked.pop(peer, None)
        self._got.pop(peer, None)
        self._post()
        return tuple(failed)

    def retransmit(self) -> None:
        self._packets.extend(self._posted)

    def blocked(self) -> list[Blocked]:
        """Return the messages in OB; each waits for the ack of the last message ahead of it.

        With `fifo`, the last one ahead of it to another receiver. That ack can only come
        when its message has been posted, so all acks before it have come then.
        """
        blocked = []
        if self._ob:
            ahead = barrier = self._posted[-1]
            for outgoing in self._ob:
                name, message = outgoing
                if not self.fifo or name != ahead[0]:
                    barrier = ahead
                wait = Wait("ack", barrier[0], barrier[1][1])
                blocked.append(Blocked(self.me, message[1], name, "sender", (wait,)))
                ahead = outgoing
        return blocked

    @property
    def held_back(self) -> int:
        return len(self._ob)

    @property
    def idle(self) -> bool:
        return not self._posted and not self._packets and not self._deliveries

    def footprint(self) -> Footprint:
        messages = len(self._ob) + len(self._posted)
        state = 1 + 2 * (messages + len(self._acked) + len(self._got))
        return Footprint(state, {"msg": MfMessage.integers, "ack": Ack.integers})

    def _state(self) -> Hashable:
        return (
            self.fifo,
            tuple(self._ob),
            tuple(self._posted),
            frozenset(self._acked.items()),
            frozenset(self._got.items()),
        )

    def relative_state(self, note: Note) -> Hashable:
        def queue(outgoing: Iterable[Outgoing]) -> Hashable:
            return tuple([(name, note(self.me, packet[1])) for name, packet in outgoing])

        acked = [(name, note(self.me, n)) for name, n in sorted(self._acked.items())]
        got = [(name, note(name, n)) for name, n in sorted(self._got.items())]
        return (self.fifo, queue(self._ob), queue(self._posted), tuple(acked), tuple(got))

    def _copy_into(self, twin: Self) -> None:
        twin.fifo = self.fifo
        twin._ob = self._ob.copy()
        twin._posted = self._posted.copy()
        twin._acked = self._acked.copy()
        twin._got = self._got.copy()
