"""Cykas, "can you keep a secret?" (Tong, Liittschwager, Kuper), and two broken variants.

**What it guarantees.** Causal delivery of unicasts over a reliable network that may delay
and reorder. Every message is delivered as soon as it arrives, and carries no metadata.
Like MF, the protocol holds messages at the sender, but it lets a message leave while
others are in flight to other processes. Such an *eager* message obliges its receiver to
secrecy until the sender says YCT, "you can tell".

**How it works** (section 2.2, Algorithms 1 to 5). A process has

    OB          the output buffer, a FIFO queue of messages not sent yet
    UNACK       the processes that have not acked a message; at most one message each
    MODE        how many eager messages delivered here still lack their YCT
    EAGER_SENT  for each receiver, a queue with one set for each eager message sent
                to it: the processes whose ack it waits for (UNACK at that time)

The head of OB may leave when MODE = 0 (the process is not in secret mode) and its receiver
is not in UNACK. It leaves as a normal message if UNACK is empty, otherwise as an eager one.
The YCT of an eager message follows when its set has become empty, and the message itself
and any later one to the same receiver have been acked.

    invariant   if MODE = 0 at p, then all that happened before anything that p has
                delivered has been delivered, too.

For let p have delivered z from q, and let x have happened before z. If q sent x, then x
was acked when z left or, if z was eager, when its YCT left, and that has come. Otherwise x
is, or happened before, something that q had delivered when it sent z, and MODE was 0 at q
when z left: the invariant holds there, by induction. So nothing that p releases overtakes
what others sent, and what p itself sent to the same receiver has been acked. (What p sent
to others may be in flight: then the message is eager.)

**Unicast only**, as in the paper. A copy to the sender itself is delivered inside `send`.

**Names, not bits.** The paper's bit vectors of length N are sets of names here, so nobody
has to know N. MODE is the size of a record that says whose YCT is missing, for which
message. The protocol needs the count alone; the record makes `blocked` exact, and reveals
a YCT that nobody can have sent. Likewise UNACK has the number of the unacknowledged
message, only for `blocked`. The `mid` in a message names it to the application; ACK and
YCT carry nothing. So nothing distinguishes a repetition from something new, and because
MODE counts, Cykas cannot be made to tolerate duplicates, or loss (Almeida, section 4.3).

**Departures from the paper** in `Cykas`:

*   Algorithm 4 is repaired: on an ACK from i, first i is removed from all sets, then a YCT
    is tried for every receiver, then OB is tried, once (ERRATA 5.1, 5.2). As printed, all
    three happen for one entry of EAGER_SENT after the other.
*   Algorithm 2, line 13 pushes a *copy* of UNACK (ERRATA 5.3).
*   YCT is not acknowledged, although section 2.1 says so: the ack would be taken for that
    of a message (ERRATA 5.4).
*   A queue of EAGER_SENT that has become empty is dropped.

Line 14 of Algorithm 4 is right in testing UNACK[receiver]: otherwise a YCT could overtake
its message (ERRATA 5.5).

**Liveness** holds for runs with finitely many messages. In an infinite run two senders of
eager messages can keep MODE above 0 for ever, and OB waits for ever: Lemma 3.5 of the
paper is wrong (Almeida, section 4.3; ERRATA 5.7).

Cost: an ACK is removed from all sets of EAGER_SENT, of which there is one for each eager
message that lacks its YCT. While one receiver does not ack, no YCT for messages to others
can leave, so the number of these sets, and of the secrets that receivers keep, has no
bound. Everything else takes O(1) steps.
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
    NumberedMessage,
    Packet,
    RemoteProtocolError,
    Wait,
    destinations,
)

__all__ = ["Ack", "Cykas", "CykasAsPrinted", "CykasSecretSends", "Eager", "Normal", "Yct"]

_new = tuple.__new__


class Normal(NumberedMessage):
    """Message `mid`; everything that its sender sent before has been delivered."""

    __slots__ = ()
    kind = "normal"
    numbers = ()


class Eager(NumberedMessage):
    """Message `mid`; keep it secret until you get my YCT."""

    __slots__ = ()
    kind = "eager"
    numbers = ()


class Ack(Packet):
    """Your message, the only one without an ack, has been delivered here."""

    __slots__ = ()
    kind = "ack"
    fields = ()

    def __new__(cls) -> Self:
        return _new(cls, ("ack",))


class Yct(Packet):
    """You can tell: the oldest of my eager messages to you is no longer a secret."""

    __slots__ = ()
    kind = "yct"
    fields = ()

    def __new__(cls) -> Self:
        return _new(cls, ("yct",))


_ACK = Ack()
_YCT = Yct()


class Cykas(Endpoint):
    """Causal unicast: a message that leaves early obliges its receiver to secrecy."""

    __slots__ = ("_eager_sent", "_ob", "_secrets", "_unack")

    def __init__(self, me: str, group: Iterable[str] | None = None) -> None:
        super().__init__(me, group)
        self._ob: deque[tuple[str, int, Any]] = deque()
        """OB: receiver, number and payload of what is not sent yet."""
        self._unack: dict[str, int] = {}
        """UNACK: the number of the unacknowledged message to each process."""
        self._secrets: dict[str, deque[int]] = {}
        """MODE, in detail: the eager messages of each process that lack a YCT."""
        self._eager_sent: dict[str, deque[set[str]]] = {}
        """EAGER_SENT."""

    @property
    def mode(self) -> int:
        """MODE: how many YCTs are awaited here; 0 is normal mode."""
        return sum(map(len, self._secrets.values()))

    def send(self, to: str | Collection[str], payload: Any) -> int:
        """Send a message to one process (Algorithm 1), and return its number.

        Raises:
            LocalProtocolError: There is more than one other destination, or none that is
                a name.
        """
        names = (to,) if to.__class__ is str and to else destinations(to)
        others = [name for name in names if name != self.me]
        if len(others) > 1:
            raise LocalProtocolError(f"cykas is for unicast: one destination, not {others}")
        if self._forgotten:
            self._refuse_forgotten(others)
        mid = self._mid = self._mid + 1
        if others:
            self._ob.append((others[0], mid, payload))
            self._try_send_message()
        if len(others) < len(names):
            self._deliver(self.me, mid, payload)
        return mid

    def _may_tell(self, receiver: str) -> bool:
        """Return whether the mode lets a message to `receiver` leave (Algorithm 2, line 2)."""
        return not self._secrets

    def _try_send_message(self) -> None:
        """TRY_SEND_MESSAGE (Algorithm 2)."""
        ob = self._ob
        unack = self._unack
        while ob:
            receiver, mid, payload = ob[0]
            if receiver in unack or not self._may_tell(receiver):
                return
            packet: Packet
            if not unack:
                packet = _new(Normal, ("normal", mid, payload))
            else:
                packet = _new(Eager, ("eager", mid, payload))
                self._eager_sent.setdefault(receiver, deque()).append(set(unack))
            ob.popleft()
            unack[receiver] = mid
            self._packets.append((receiver, packet))

    def _try_send_yct(self, receiver: str) -> None:
        """TRY_SEND_YCT (Algorithm 4, lines 11 to 20)."""
        queue = self._eager_sent[receiver]
        while queue and not queue[0] and receiver not in self._unack:
            queue.popleft()
            self._packets.append((receiver, _YCT))

    def receive(self, source: str, packet: Packet) -> None:
        kind = packet.__class__
        if self._forgotten and source in self._forgotten:
            return
        if kind is Normal or kind is Eager:
            if not isinstance(source, str) or source in ("", self.me):
                raise RemoteProtocolError(
                    f"a message from {source!r}, which is not another process"
                )
            if kind is Eager:
                self._keep_secret(source, packet[1])
            try:
                self._deliver(source, packet[1], packet[2])
            finally:  # the message was delivered even if the application fails
                self._packets.append((source, _ACK))
        elif kind is Ack:
            if source not in self._unack:
                raise RemoteProtocolError(
                    f"{source!r} acks a message, but no message to it lacks an ack"
                )
            del self._unack[source]
            self._after_ack(source)
        elif kind is Yct:
            if source not in self._secrets:
                raise RemoteProtocolError(
                    f"{source!r} sent a YCT, but no eager message of it lacks one"
                )
            self._tell(source)
        else:
            raise RemoteProtocolError(f"{source!r} sent {packet!r}, which is not a packet of cykas")

    def _forget(self, peer: str) -> tuple[int, ...]:
        """Its ack and its YCTs count as come; what is not sent to it is dropped."""
        failed = [self._unack[peer]] if peer in self._unack else []
        failed += [mid for to, mid, _ in self._ob if to == peer]
        self._ob = deque([entry for entry in self._ob if entry[0] != peer])
        self._unack.pop(peer, None)
        self._eager_sent.pop(peer, None)
        self._secrets.pop(peer, None)
        self._after_ack(peer)
        return tuple(failed)

    def _keep_secret(self, source: str, mid: int) -> None:
        """An eager message arrived (Algorithm 3, line 1)."""
        self._secrets.setdefault(source, deque()).append(mid)

    def _tell(self, source: str) -> None:
        """A YCT arrived (Algorithm 5)."""
        secrets = self._secrets[source]
        secrets.popleft()
        if not secrets:
            del self._secrets[source]
        self._try_send_message()

    def _after_ack(self, i: str) -> None:
        """Algorithm 4 from line 3 on, repaired (ERRATA 5.2)."""
        eager_sent = self._eager_sent
        for queue in eager_sent.values():
            for waiting in queue:
                waiting.discard(i)
        for receiver in sorted(eager_sent):
            self._try_send_yct(receiver)
            if not eager_sent[receiver]:
                del eager_sent[receiver]
        self._try_send_message()

    def blocked(self) -> list[Blocked]:
        """Return what each message in OB waits for, and all before it, as OB is a queue.

        That is the last YCT (`permit`) of each sender of secrets, if the mode forbids the
        message to leave, and for each of these messages the ack of the last one to the
        same receiver. If that one is in OB itself, its ack will come after all that *it*
        waits for, so this is left out.
        """
        permits = [
            Wait("permit", source, secrets[-1]) for source, secrets in sorted(self._secrets.items())
        ]
        blocked = []
        unacked = {receiver: (-1, mid) for receiver, mid in self._unack.items()}
        waits: list[tuple[int, Wait]] = []  # with the place in OB where each first matters
        for place, (receiver, mid, _) in enumerate(self._ob):
            if permits and not self._may_tell(receiver):
                waits += [(place, permit) for permit in permits]
                permits = []
            if receiver in unacked:
                covered, last = unacked[receiver]
                waits = [wait for wait in waits if wait[0] > covered]
                waits.append((place, Wait("ack", receiver, last)))
            unacked[receiver] = (place, mid)
            reasons = tuple([wait for _, wait in waits])
            blocked.append(Blocked(self.me, mid, receiver, "sender", reasons))
        return blocked

    @property
    def held_back(self) -> int:
        return len(self._ob)

    @property
    def idle(self) -> bool:
        waiting = self._unack or self._secrets or any(self._eager_sent.values())
        return not (waiting or self._ob or self._packets or self._deliveries)

    def footprint(self) -> Footprint:
        state = 1 + 2 * len(self._ob) + 2 * len(self._unack)
        state += sum(1 + len(secrets) for secrets in self._secrets.values())
        state += sum(1 + sum(map(len, queue)) for queue in self._eager_sent.values())
        return Footprint(state, {kind.kind: kind.integers for kind in (Normal, Eager, Ack, Yct)})

    def _state(self) -> Hashable:
        """Return the state. Which messages are unacked or secret matters to `blocked` only,
        and not to the protocol, so only their number is compared."""
        return (
            tuple(self._ob),
            frozenset(self._unack),
            frozenset((source, len(secrets)) for source, secrets in self._secrets.items()),
            frozenset(
                (receiver, tuple(map(frozenset, queue)))
                for receiver, queue in self._eager_sent.items()
            ),
        )

    def relative_state(self, note: Note) -> Hashable:
        """Cykas compares no message numbers, so `note` is never called."""
        receivers = tuple([receiver for receiver, _, _ in self._ob])
        unacked = frozenset(self._unack)
        secrets = frozenset((source, len(mids)) for source, mids in self._secrets.items())
        eager = frozenset(
            (receiver, tuple(map(frozenset, queue))) for receiver, queue in self._eager_sent.items()
        )
        return (receivers, unacked, secrets, eager)

    def _copy_into(self, twin: Self) -> None:
        twin._ob = self._ob.copy()
        twin._unack = self._unack.copy()
        twin._secrets = {source: secrets.copy() for source, secrets in self._secrets.items()}
        twin._eager_sent = {
            receiver: deque(map(set, queue)) for receiver, queue in self._eager_sent.items()
        }


class CykasAsPrinted(Cykas):
    """Algorithm 4 to the letter: neither live nor safe, kept as a known-bad.

    It is not live, because an ACK does not lead to a look at OB while EAGER_SENT has no
    entry: of two messages to one process, the second stays (ERRATA 5.1). It is not safe,
    because line 8, inside the loop, can send to i and then eagerly to a receiver whose turn
    is yet to come. At that turn, line 5 removes i from the set of this message too, although
    i has not acked the new one, and a YCT leaves too early (ERRATA 5.2).

    The paper does not give the order of the loop. Here it takes the receivers that have an
    entry when it starts, in the order of the first eager message to each. An entry stays
    when its queue is empty, for "each process to which it has sent at least one" (section
    2.2.1). Both make a difference here.
    """

    __slots__ = ()

    def _after_ack(self, i: str) -> None:
        for receiver, queue in list(self._eager_sent.items()):
            for waiting in queue:
                waiting.discard(i)
            self._try_send_yct(receiver)
            self._try_send_message()

    def _state(self) -> Hashable:
        return (super()._state(), tuple(self._eager_sent))

    def relative_state(self, note: Note) -> Hashable:
        return (super().relative_state(note), tuple(self._eager_sent))


class CykasSecretSends(Cykas):
    """The variant of section 2.3, which is not safe: it sends to the last eager sender.

    In secret mode a message may leave for the sender of the eager message that was
    delivered last, who knows that secret. But not the other secrets: a message that
    this sender has yet to get may be what one of those waits for (Fig. 3; ERRATA
    5.6). Kept as a known-bad.
    """

    __slots__ = ("_confidant",)

    def __init__(self, me: str, group: Iterable[str] | None = None) -> None:
        super().__init__(me, group)
        self._confidant = ""
        """The sender of the eager message delivered last; "" in normal mode."""

    def _may_tell(self, receiver: str) -> bool:
        return not self._secrets or receiver == self._confidant

    def _keep_secret(self, source: str, mid: int) -> None:
        super()._keep_secret(source, mid)
        self._confidant = source
        self._try_send_message()

    def _tell(self, source: str) -> None:
        super()._tell(source)
        if not self._secrets:
            self._confidant = ""

    def _forget(self, peer: str) -> tuple[int, ...]:
        if self._confidant == peer or self._secrets.keys() <= {peer}:
            self._confidant = ""
        return super()._forget(peer)

    def _state(self) -> Hashable:
        return (super()._state(), self._confidant)

    def relative_state(self, note: Note) -> Hashable:
        return (super().relative_state(note), self._confidant)

    def _copy_into(self, twin: Self) -> None:
        super()._copy_into(twin)
        twin._confidant = self._confidant
