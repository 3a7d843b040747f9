"""Causal broadcast on positive acknowledgements, vector time modulo k (Baldoni).

The vector clocks of `bss` with small numbers. A process that waits for acknowledgements
before it continues cannot get far ahead of the others, so the entries of two vectors that
are ever compared differ by little, and it is enough to send them modulo some small k: n
entries of ceil(log2 k) bits.

**Sending** (Fig. 7, lines S1-S6). At most ct broadcasts of one process (its credit) are not
fully acknowledged; the next one waits until another is:

    Pak         ct = 1, stop and wait (section 4, condition SC_1)
    PakCredit   every broadcast is acknowledged (section 5.1, SC_ct)
    PakNak      every ct-th is, and the next waits for that (section 5.2)

The three differ only in `step`: every step-th broadcast is acknowledged, where step is 1, 1
and ct. A released broadcast carries V_T, the value of V before it is counted, modulo k.
V[me] is counted up right after the send, not on the last ack (line S5). Both work (ERRATA
8), and this way V[me] numbers the broadcasts.

**Delivering** (lines R1-R4). Message m of P_j is delivered at P_i when

    (V_i[h] - V_T(m)[h]) mod k <= ct    for every h;

then V_i[j] goes up by one, an ack leaves for P_j if m asks for one, and only then the
application gets m (ERRATA 7.1).

**The causal window.** For every m of P_j that was released and is not delivered at P_i, at
any time and for every h:

    -ct <= V_i[h] - V_T(m)[h] <= ct

*From below* (Theorem 4.2; Figs. 8a and 9 for ct > 1): message x of P_h is released when
x - ct or a later one is fully acknowledged, hence delivered at P_i. So nobody has delivered
more than ct messages of P_h that P_i has not. *From above* (Theorem 4.4, Lemma 4.3; Fig.
8b): suppose P_i has delivered a message x of P_h, x > V_T(m)[h] + ct. Between V_T(m)[h] and
x there is one that was fully acknowledged before x was released, so P_j acknowledged it,
after it released m, because m does not know it. That ack followed m on the channel to P_h;
so P_h delivered m, then took the ack, then released x. Thus m is in the past of x, and P_i,
which has x, must have m. Hence k = 2ct + 1 distinguishes the values of the window, and a
smaller k does not (ERRATA 8.1). For P_i's own entry the difference is never below 0, for
P_j's never above 0 nor below 1 - ct.

"Delivered m, then took the ack" is a rule here: **an ack waits for all messages that its
sender released before it**. Without discarding (next paragraph) this costs nothing. A
missing predecessor y of m, of P_g for example, does not know the message that is acked
either, so P_g's ack for it is behind y, and the set of acks cannot be complete before y and
m are delivered. That is why taking such acks at once works equally well (ERRATA 8.2).

**Receiver's credit** (section 5.1, remark on memory). Up to ct messages of every other
process may be held at a receiver. With wr < ct it stores only the next wr of each, and
discards the rest without an ack. `retransmit`, the sender's timer, sends again what is not
acknowledged, and duplicates are dropped. The paper does not mention that the proof above
then fails: m may have reached P_h and been discarded there while the ack behind it is taken,
and the window is exceeded. The rule for acks repairs it. A copy that is sent again is
recognised: it entered the channel when its sender had released less than ct messages after
it, so it is at most ct behind.

**Departures from the paper.** `send` never blocks. A broadcast that may not leave yet is
kept, in order, and V_T is that of its release (line S2 comes after the wait of S1). It then
depends on what was delivered meanwhile as well, which is causally safe, and the window
requires it. An ack has the number of its message, modulo k (ERRATA 8.3: anonymous acks are
fatal if they are matched carelessly). A plain counter decides which broadcasts of PAK-NAK
are acknowledged, not V[me] modulo k (ERRATA 8.4). Which messages a broadcast waits for is
determined once, when it arrives, and not again at every delivery.

Numbers (`mid`) do not travel: the x-th broadcast on a FIFO channel is the x-th that its
sender released, and that is the x-th it sent. Counts are kept in full to number deliveries;
every decision about a packet uses them modulo k. All members must be given the same ct, k
and wr. Channels must be reliable and FIFO (ERRATA 8.2); if a packet shows that they are
not, that is an error.

**Forgetting a member.** Its acks are not waited for, nor its messages, and its entry in
vectors is ignored: members may have delivered different numbers of its messages.

Cost: n integers below k per message, one per ack, n - 1 acks for every step-th broadcast;
O(n) steps to send and to receive, and O(log b) for each message that has to be waited for.
Throughput is at most ct broadcasts per round trip to the slowest member.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Hashable, Iterable
from typing import Any, Self

from .endpoint import (
    WORD_BITS,
    Blocked,
    Footprint,
    LocalProtocolError,
    Packet,
    RemoteProtocolError,
    Wait,
)
from .group import BroadcastEndpoint
from .held import HoldingBuffer, Need
from .pak_packets import Ack, PakMessage

__all__ = ["Ack", "Pak", "PakCredit", "PakMessage", "PakNak"]

_new = tuple.__new__


class PakCredit(BroadcastEndpoint):
    """PAK with credits: up to ct broadcasts that are not fully acknowledged.

    `ct` is the sender's credit, `k` the modulus, at least 2ct + 1 (the default),
    `wr` the receiver's credit, at most ct (the default: nothing is discarded).
    """

    __slots__ = (
        "_acked",
        "_buffer",
        "_flight",
        "_full",
        "_held",
        "_i",
        "_laggards",
        "_late",
        "_seen",
        "_step",
        "_v",
        "ct",
        "k",
        "wr",
    )

    def __init__(
        self,
        me: str,
        group: Iterable[str] | None = None,
        *,
        ct: int = 2,
        k: int | None = None,
        wr: int | None = None,
    ) -> None:
        super().__init__(me, group)
        self.ct = self._option("ct", ct, 1)
        self.k = self._option("k", self._least_k if k is None else k, self._least_k)
        self.wr = self._option("wr", ct if wr is None else wr, 1)
        if self.wr > ct:
            raise LocalProtocolError(f"wr={wr} is more than any sender uses, ct={ct}")
        self._step = 1
        self._i = self.index[me]
        self._v = [0] * len(self.group)
        """V: the broadcasts of each member delivered here; of this process, those released."""
        # As a sender.
        self._buffer: deque[Any] = deque()
        """Payloads that are not released yet; their numbers follow V[me]."""
        self._acked = {self.index[name]: 0 for name in self.others}
        """The last of one's own broadcasts that each other member has acknowledged."""
        self._full = 0
        """The last that all have acknowledged: the least of `_acked`."""
        self._laggards = len(self.others)
        """How many members have acknowledged no more than that."""
        self._flight: deque[Packet] = deque()
        """With a receiver's credit, what is released and above `_full`."""
        # As a receiver.
        self._seen = {self.index[name]: 0 for name in self.others}
        """The last broadcast of each other member that has arrived, kept or not."""
        self._held = HoldingBuffer()
        """What arrived too early."""
        self._late: dict[int, deque[tuple[int, int]]] = {}
        """Acks that wait for an earlier message of their sender: that message's
        number, and the own broadcast acknowledged; no empty entries."""

    @staticmethod
    def _option(name: str, value: int, least: int) -> int:
        if type(value) is not int or value < least:
            raise LocalProtocolError(
                f"{name} must be an integer from {least} upward, not {value!r}"
            )
        return value

    @property
    def _least_k(self) -> int:
        """The size of a causal window, whose values k has to distinguish."""
        return 2 * self.ct + 1

    # -- the two rules that make up the send condition ------------------------

    def _asks(self, number: int) -> int:
        """Return the last broadcast up to this one that is to be acknowledged."""
        return number // self._step * self._step

    def _gate(self, number: int) -> int:
        """Return the broadcast that must be fully acknowledged before this one leaves."""
        return self._asks(number - 1 - (self.ct - self._step))

    # -- sending --------------------------------------------------------------

    def send(self, to: str | Collection[str], payload: Any) -> int:
        to_self = self._everybody(to)
        mid = self._mid = self._mid + 1
        self._buffer.append(payload)
        self._release()
        if to_self:
            self._deliver(self.me, mid, payload)
        return mid

    def _release(self) -> None:
        """Release what the credit allows (lines S1-S3)."""
        v = self._v
        i = self._i
        while self._buffer and self._gate(v[i] + 1) <= self._full:
            vt = tuple([count % self.k for count in v])
            message = _new(PakMessage, ("msg", vt, self._buffer.popleft()))
            v[i] += 1
            self._packets.extend([(name, message) for name in self.others])
            if self.wr < self.ct:
                self._flight.append(message)
            if not self.others:
                self._full = self._asks(v[i])

    def _acknowledge(self, j: int, number: int) -> None:
        """Apply an ack of P_j (lines S4-S6)."""
        self._laggards -= self._acked[j] == self._full
        self._acked[j] = number
        if not self._laggards:
            self._all_acked_up_to(min(self._acked.values()))

    def _all_acked_up_to(self, number: int) -> None:
        """Broadcast `number` is fully acknowledged: let go what waited for that."""
        self._full = number
        self._laggards = sum(n == number for n in self._acked.values())
        while len(self._flight) > self._v[self._i] - number:
            self._flight.popleft()
        self._release()

    def retransmit(self) -> None:
        """With a receiver's credit, send again what may have been discarded."""
        if self._flight:
            first = self._full + 1
            for j, acked in self._acked.items():
                name = self.group[j]
                for number, message in enumerate(self._flight, first):
                    if number > acked:
                        self._packets.append((name, message))

    # -- receiving ------------------------------------------------------------

    def receive(self, source: str, packet: Packet) -> None:
        j = self._member(source)
        if self._forgotten and source in self._forgotten:
            return
        kind = packet.__class__
        if kind is PakMessage:
            self._receive_message(j, packet)
        elif kind is Ack:
            self._receive_ack(j, packet[1])
        else:
            raise RemoteProtocolError(f"{source!r} sent {packet!r}, which is not a packet of pak")

    def _receive_ack(self, j: int, ack: int) -> None:
        late = self._late.get(j)
        last = late[-1][1] if late else self._acked[j]
        number: int = last + (ack - last) % self.k
        if (
            ack >= self.k
            or number > self._v[self._i]
            or self._asks(number) != number
            or self._asks(number - 1) != last
        ):
            raise RemoteProtocolError(
                f"{self.group[j]!r} acks {ack} (modulo {self.k}), not the broadcast after {last}"
            )
        self._take_ack(j, number)

    def _take_ack(self, j: int, number: int) -> None:
        """Apply an ack, once everything that P_j released before it is delivered."""
        if self._v[j] < self._seen[j]:
            self._late.setdefault(j, deque()).append((self._seen[j], number))
        else:
            self._acknowledge(j, number)

    def _receive_message(self, j: int, message: Packet) -> None:
        number = self._number(j, message)
        if number is None:
            return
        if number > self._seen[j]:
            self._seen[j] = number
        name = self.group[j]
        needs = self._needs(j, number, message[1])
        if not needs:
            self._accept(j, name, message)
            self._settle()
        elif number <= self._v[j] + self.wr:
            self._held.hold(name, number, message, needs)

    def _number(self, j: int, message: Packet) -> int | None:
        """Return the number of a new message, or None if it is known already.

        Raises RemoteProtocolError if no correct peer could have sent it.
        """
        vt = message[1]
        if len(vt) != len(self._v) or max(vt) >= self.k:
            raise RemoteProtocolError(
                f"{self.group[j]!r} sent {vt} as vector time of {len(self._v)} modulo {self.k}"
            )
        ahead = (vt[j] - self._v[j]) % self.k
        number: int = self._v[j] + ahead + 1
        if self.wr < self.ct and self.k - self._v[j] <= ahead and self.k - self.ct <= ahead:
            return None
        again = self.wr < self.ct and number <= self._seen[j]
        if number != self._seen[j] + 1 and not again:
            raise RemoteProtocolError(
                f"{self.group[j]!r} sent broadcast {number} (modulo {self.k}) after "
                f"{self._seen[j]}: pak needs reliable FIFO channels"
            )
        if ahead >= self.ct or not self._in_window(vt):
            raise RemoteProtocolError(
                f"{self.group[j]!r} sent vector time {vt}, outside the window of {self._v}"
            )
        known = self._held.get(self.group[j], number)
        if known is not None and known != message:
            raise RemoteProtocolError(f"{self.group[j]!r} sent two different broadcasts {number}")
        return number if known is None else None

    def _in_window(self, vt: tuple[int, ...]) -> bool:
        """Return whether V_T is within ct of V, not negative, and right about this process."""
        k, ct = self.k, self.ct
        least = k - ct
        behind = [(mine - theirs) % k for mine, theirs in zip(self._v, vt, strict=True)]
        if max(behind) <= ct <= min(self._v):
            return True  # which is most often so
        for h, (mine, lag) in enumerate(zip(self._v, behind, strict=True)):
            outside = lag > min(mine, ct) and (lag < least or h == self._i)
            if outside and self.group[h] not in self._forgotten:
                return False
        return True

    def _needs(self, j: int, number: int, vt: tuple[int, ...]) -> list[Need]:
        """The delivery condition (line R1): which messages must be delivered first.

        An entry of V_T that is ahead of V, modulo k, names the last missing message of
        its process. It stays the same message while V moves on, by the causal window.
        Of P_j itself it is the message before this one.
        """
        k, ct, gone = self.k, self.ct, self._forgotten
        needs = [
            (name, mine + (theirs - mine) % k)
            for name, mine, theirs in zip(self.group, self._v, vt, strict=True)
            if (mine - theirs) % k > ct and name != self.group[j] and name not in gone
        ]
        if number > self._v[j] + 1:
            needs.append((self.group[j], number - 1))
        return needs

    def _forget(self, peer: str) -> tuple[int, ...]:
        """Its acks count as come, and nothing waits for its messages.

        Of its entry in vectors nobody can say how far it may lag behind or be ahead, so
        the entry is not looked at any more.
        """
        super()._forget(peer)
        j = self.index[peer]
        failed = range(self._acked[j] + 1, self._mid + 1)
        self._held.forget(peer)
        self._late.pop(j, None)
        del self._acked[j], self._seen[j]
        if self._acked:
            self._all_acked_up_to(min(self._acked.values()))
        else:
            self._all_acked_up_to(self._asks(self._v[self._i]))
        return tuple(failed)

    def _settle(self) -> None:
        for name, message in self._held.take():
            self._accept(self.index[name], name, message)

    def _accept(self, j: int, name: str, message: Packet) -> None:
        """Count, acknowledge, deliver (lines R2-R4, the upcall last)."""
        number = self._v[j] = self._v[j] + 1
        self._held.delivered(name, number)
        if self._asks(number) == number:
            self._packets.append((name, _new(Ack, ("ack", number % self.k))))
        late = self._late.get(j)
        while late and late[0][0] <= number:
            acked = late.popleft()[1]
            if not late:
                del self._late[j]
            self._acknowledge(j, acked)
        self._deliver(name, number, message[2])

    # -- what people ask ------------------------------------------------------

    def blocked(self) -> list[Blocked]:
        blocked = []
        for number in range(self._v[self._i] + 1, self._mid + 1):
            waits = self._waits_for_acks(self._gate(number))
            blocked += [Blocked(self.me, number, name, "sender", waits) for name in self.others]
        return blocked + self._held.blocked(self.me)

    @property
    def held_back(self) -> int:
        return len(self._buffer) * len(self.others) + len(self._held)

    def _waits_for_acks(self, gate: int) -> tuple[Wait, ...]:
        """Return why broadcast `gate` is not fully acknowledged.

        An ack that has arrived and waits is reported as the message that it waits for.
        """
        waits = []
        for j, acked in self._acked.items():
            if acked < gate:
                late = (first for first, number in self._late.get(j, ()) if number >= gate)
                first = next(late, None)
                kind, mid = ("ack", gate) if first is None else ("predecessor", first)
                waits.append(Wait(kind, self.group[j], mid))
        return tuple(waits)

    @property
    def idle(self) -> bool:
        """Whether nothing is left to do, and no ack is missing."""
        return self._full == self._asks(self._v[self._i]) and super().idle

    @property
    def entry_bits(self) -> int:
        """Bits of one entry of a vector modulo k, or of the number in an ack."""
        return (self.k - 1).bit_length()

    def metadata_bits(
        self, packet: Packet, integer: int = WORD_BITS, identifier: int = WORD_BITS
    ) -> int:
        """Return `entry_bits` for each integer: all of them are modulo k."""
        return packet.integers * self.entry_bits

    def footprint(self) -> Footprint:
        """Return the space: V, the own number, two numbers for each other member, two more.

        A message that is held takes its vector and its number, one that is kept to be sent
        again its vector, an ack that waits two numbers. Only vectors are modulo k.
        """
        n = len(self.group)
        late = sum(map(len, self._late.values()))
        words = n + 1 + 2 * (n - 1) + 2 + len(self._held) + 2 * late
        entries = n * (len(self._held) + len(self._flight))
        packet = {"msg": n, "ack": Ack.integers}
        bits = {kind: count * self.entry_bits for kind, count in packet.items()}
        state_bits = WORD_BITS * words + self.entry_bits * entries
        return Footprint(words + entries, packet, state_bits, bits)

    def _state(self) -> Hashable:
        return (
            self.group,
            (self.ct, self.k, self.wr),
            tuple(self._v),
            tuple(self._buffer),
            tuple(self._acked.values()),
            tuple(self._flight),
            tuple(self._seen.values()),
            self._held.state(),
            frozenset((j, tuple(late)) for j, late in self._late.items()),
        )

    def _copy_into(self, twin: Self) -> None:
        super()._copy_into(twin)
        twin.ct = self.ct
        twin.k = self.k
        twin.wr = self.wr
        twin._step = self._step
        twin._i = self._i
        twin._v = self._v[:]
        twin._buffer = self._buffer.copy()
        twin._acked = self._acked.copy()
        twin._full = self._full
        twin._laggards = self._laggards
        twin._flight = self._flight.copy()
        twin._seen = self._seen.copy()
        twin._held = self._held.copy()
        twin._late = {j: late.copy() for j, late in self._late.items()}


class Pak(PakCredit):
    """Stop and wait: one broadcast at a time, fully acknowledged before the next."""

    __slots__ = ()

    def __init__(
        self, me: str, group: Iterable[str] | None = None, *, k: int | None = None
    ) -> None:
        super().__init__(me, group, ct=1, k=k)


class PakNak(PakCredit):
    """PAK-NAK: ct broadcasts in a row, of which the last is acknowledged."""

    __slots__ = ()

    def __init__(
        self,
        me: str,
        group: Iterable[str] | None = None,
        *,
        ct: int = 2,
        k: int | None = None,
    ) -> None:
        super().__init__(me, group, ct=ct, k=k)
        self._step = ct
