"""Kshemkalyani and Singhal's optimal causal ordering (KS).

**What it guarantees.** Causal delivery of unicasts and multicasts, between processes that
need not know each other beforehand, over a reliable network that may delay, reorder and
duplicate. Nothing waits longer than causality requires, and among the protocols for which
that holds, it carries and keeps the least: no redundant information (Definition 5). This
counts facts, as defined below; the encoding has a price of its own.

**Facts and where they end.** The unit of information is the fact "d is a destination of
M(i,a)", where a is the sender's clock: here the `mid`, so (i,a) names the message. It makes
a later message to d wait for M(i,a). It has to travel along every causal path from the send
of M(i,a) up to, and only up to, the first event at which one of these is known (Propagation
Constraints, 3.4):

    PC1   M(i,a) has been delivered to d;
    PC2   another message was sent to d after M(i,a), causally. Whoever waits for
          that one waits for M(i,a) as well, because that one does. The send that
          causes PC2 passes the fact on to d, for the last time.

**Explicit and implicit (4.2).** LOG has entries (i, a, Dests): the facts about M(i,a) to
which neither applies as far as is known here. If a destination is *absent* from an entry,
PC1 or PC2 applies to it. An entry with no destinations left is omitted if there is a later
one of the same sender; so an entry that is absent while a later one of its sender is present
means that no destinations are left. The newest entry of each sender stays even if it is
empty: it says up to which message that reading holds. This is how the end of a fact spreads
without being sent. Dropping those last empty entries, or misreading them, is safe but makes
facts outlive their end (ERRATA 7.5). They take space themselves, though: where nearly
everything is multicast widely, packets without them can be a little smaller, in spite of
the redundant facts in them.

    invariant   LOG holds exactly the facts about my causal past to which neither
                PC1 nor PC2 applies, and the newest entry of each sender in it.
    Lemma 1     No d is in two entries of the same sender.
    Lemma 7     Only the newest entry of a sender can be empty.

**The procedures (4.3)** and where they are:

    SND(1)      `send`
    SND(2-5)    `_post`. What is sent to the destinations and what stays here is
                computed together (third note of 4.5); a unicast carries LOG as it is.
    RCV(1)      `_needs`, the Delivery Condition
    RCV(2)      `_settle`, once `_absorb` is done
    RCV(3-5)    `_absorb`, with `_without`, `_merged` and `_purged`

**Departures from the paper.**

*   RCV(3-5) come before the delivery, so that what the application sends from inside it
    depends on it (ERRATA 7.1).
*   RCV(4), first test, is `t < t' and l(s,t) not in LOG` (ERRATA 7.5), as its comment and
    the running example require.
*   LOG starts empty, not with (i, 0, {}) for all i: absent means clock 0, so nobody has to
    know who the members are (ERRATA 7.4).
*   *Channels need not be FIFO* (ERRATA 7.3), and the numbers per channel of section 7.1 are
    not needed: the entries of O_M about the message's own sender are waited for like any
    others, and they order the channel. For the same reason they must not be skipped on FIFO
    channels: arrival is not delivery.
*   A copy to the sender itself is delivered inside `send`. PC1 applies to it from the start,
    so Dests never contains the sender.
*   *Duplicates* are recognised, by SR or in the receive buffer, and dropped.
*   The lookahead of the second note of 4.5 (run RCV(4-5) on a message that cannot be
    delivered yet) is left out, because it violates causal order: O_M no longer has the facts
    that the message itself takes over by PC2, and RCV(3) is what enters the message. Without
    RCV(3), a process forgets those facts and does not learn of their successor; its next
    message to d overtakes M(i,a).

**Options.** All members of a system use the same ones.

    hardware_multicast   (4.5) One packet for all destinations, with the whole LOG.
                         What SND(2) would have left out is left out on arrival:
                         RCV(3) removes all of Dests instead of the receiver alone.
                         That changes nothing in a packet from which the sender has
                         removed it before, so RCV(3) always does it.
    complement           (6.2) A set of destinations travels as what is missing from it,
                         if that is smaller. It is relative to everybody but the sender,
                         so the set of a broadcast costs nothing. Needs `group`. (The
                         paper's bound of n/2 identifiers holds for each entry, not for
                         all entries of a sender together.)
    broadcast            (7.1) All messages go to everybody, so Dests is not written
                         down at all: it is empty everywhere, every entry of O_M concerns
                         every receiver, one entry per sender is left, and LOG is a
                         vector clock. Needs `group`.

**Forgetting a member** is refused, except with `broadcast`: see `_forget`.

Cost: up to O(n*n) per message and process, but usually much less, and never less than one
entry for each known process.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from itertools import pairwise
from typing import Any, NamedTuple, Self, TypeAlias

from .endpoint import (
    Blocked,
    Endpoint,
    Footprint,
    LocalProtocolError,
    Packet,
    RemoteProtocolError,
    check_number,
    destinations,
)
from .held import HoldingBuffer, Need

__all__ = ["AllBut", "Ks", "KsMessage", "Need"]

_new = tuple.__new__


class AllBut(NamedTuple):
    """A set of destinations by its complement: all but the sender and these."""

    names: frozenset[str]


Dests: TypeAlias = frozenset[str]
Row: TypeAlias = tuple[tuple[int, Dests], ...]
"""The entries of one sender, (clock, Dests) in the order of clocks; never empty."""
Log: TypeAlias = tuple[tuple[str, Row], ...]
"""The rows of all senders, in the order of their names."""

NOBODY: Dests = frozenset()


def _check_dests(dests: object) -> Dests:
    """Check a set of destinations, written either way, and return the names in it."""
    names = dests.names if type(dests) is AllBut else dests
    if type(names) is not frozenset or not all(isinstance(d, str) and d for d in names):
        raise RemoteProtocolError(f"destinations must be a frozenset of names, not {dests!r}")
    return names


def _check_row(origin: object, row: object) -> None:
    """Check the order of clocks in a row, Lemma 1 and Lemma 7."""
    if not isinstance(origin, str) or not origin or type(row) is not tuple or not row:
        raise RemoteProtocolError(f"a log must have rows of entries, not {row!r} for {origin!r}")
    last = 0
    seen: set[str] = set()
    for entry in row:
        if type(entry) is not tuple or len(entry) != 2:
            raise RemoteProtocolError(f"an entry must be a clock and destinations, not {entry!r}")
        clock, dests = entry
        check_number("a clock in a row", clock, last + 1)
        names = _check_dests(dests)
        if type(dests) is frozenset:
            if (not names and entry is not row[-1]) or not seen.isdisjoint(names):
                raise RemoteProtocolError(f"no log of a correct process has the row {row!r}")
            seen |= names
        if origin in names:
            raise RemoteProtocolError(
                f"{origin!r} cannot be a destination of its own message {clock}"
            )
        last = clock


class KsMessage(Packet):
    """Message `mid` to `dests`, with what its sender passes on of its LOG (O_M)."""

    __slots__ = ()
    kind = "msg"
    fields = ("mid", "dests", "log", "payload")

    def __new__(cls, mid: int, dests: Dests | AllBut, log: Log, payload: Any) -> Self:
        check_number("mid", mid, 1)
        _check_dests(dests)
        if type(log) is not tuple or not all(type(r) is tuple and len(r) == 2 for r in log):
            raise RemoteProtocolError(f"a log must be a tuple of senders and rows, not {log!r}")
        for origin, row in log:
            _check_row(origin, row)
        if any(one[0] >= other[0] for one, other in pairwise(log)):
            raise RemoteProtocolError(f"a log must be sorted, each sender once, not {log!r}")
        return _new(cls, ("msg", mid, dests, log, payload))

    @property
    def integers(self) -> int:  # type: ignore[override]
        return 1 + sum(len(row) for _, row in self[3])

    @property
    def identifiers(self) -> int:  # type: ignore[override]
        sets = [self[2], *(dests for _, row in self[3] for _, dests in row)]
        return len(self[3]) + sum(len(d.names if type(d) is AllBut else d) for d in sets)


def _shorter(everybody: Dests, dests: Dests) -> Dests | AllBut:
    """Return a set of destinations as it travels with `complement`."""
    missing = everybody - dests
    return AllBut(missing) if len(missing) < len(dests) else dests


def _written_out(everybody: Dests, dests: Dests | AllBut) -> Dests:
    """Return a set of destinations that was received, whichever way it was written."""
    if not isinstance(dests, AllBut):
        return dests
    if not dests.names <= everybody:
        raise RemoteProtocolError(f"{dests!r} excepts more than there are: {sorted(everybody)}")
    return everybody - dests.names


def _purged(row: Row) -> Row:
    """PURGE_NULL_ENTRIES: of the empty entries, only the newest carries information."""
    return (*(entry for entry in row[:-1] if entry[1]), row[-1])


def _without(row: Row, dests: Dests) -> Row:
    """Return a row without the facts about `dests`, which a message to them takes over."""
    for _, remaining in row:
        if not dests.isdisjoint(remaining):
            return _purged(tuple((clock, remaining - dests) for clock, remaining in row))
    return row


def _merged(mine: Row, theirs: Row) -> Row:
    """RCV(4-5) for one sender: the facts that neither side knows to have ended."""
    if mine == theirs:
        return mine
    mine_up_to, theirs_up_to = mine[-1][0], theirs[-1][0]
    other = dict(theirs)
    row = []
    for clock, dests in mine:
        if clock in other:
            row.append((clock, dests & other.pop(clock)))
        elif clock > theirs_up_to:
            row.append((clock, dests))
    row.extend((clock, dests) for clock, dests in other.items() if clock > mine_up_to)
    return _purged(tuple(row))


class Ks(Endpoint):
    """Causal unicast and multicast with the least possible control information."""

    __slots__ = (
        "_broadcast",
        "_complement",
        "_delivered",
        "_hardware",
        "_held",
        "_log",
        "_members",
    )

    def __init__(
        self,
        me: str,
        group: Iterable[str] | None = None,
        *,
        hardware_multicast: bool = False,
        complement: bool = False,
        broadcast: bool = False,
    ) -> None:
        super().__init__(me)
        self._hardware = hardware_multicast
        self._complement = complement
        self._broadcast = broadcast
        self._members: Dests | None = None
        """All members, if an option needs to know them; otherwise `group` is ignored."""
        if complement or broadcast:
            if group is None:
                raise LocalProtocolError("complement and broadcast need group=, all members")
            self._members = frozenset(destinations(tuple(group)))
            if me not in self._members:
                raise LocalProtocolError(f"{me!r} is not a member of {sorted(self._members)}")
        self._delivered: dict[str, int] = {}
        """SR: for each sender its last message delivered here."""
        self._log: dict[str, Row] = {}
        """LOG, by sender."""
        self._held = HoldingBuffer()

    @property
    def log(self) -> Log:
        """LOG as in the paper: for each sender, entries (clock, Dests)."""
        return tuple(sorted(self._log.items()))

    # -- SND ------------------------------------------------------------------

    def send(self, to: str | Collection[str], payload: Any) -> int:
        names = destinations(to)
        others = frozenset(names) - {self.me}
        self._refuse_forgotten(others)
        if self._members is not None:
            if not self._members.issuperset(names):
                raise LocalProtocolError(f"not all of {names} are among {sorted(self._members)}")
            if self._broadcast and others != self._members - {self.me} - self._forgotten:
                raise LocalProtocolError(f"all is broadcast here: {names} are not everybody")
        mid = self._mid = self._mid + 1
        if others:
            self._post(mid, others, payload)
        if len(others) < len(names):
            self._deliver(self.me, mid, payload)
        return mid

    def _post(self, mid: int, to: Dests, payload: Any) -> None:
        """SND(2-5). Of the facts that this message takes over, each destination
        gets those about itself; the others go nowhere, and none is kept here."""
        dests = NOBODY if self._broadcast else to
        log = self.log
        kept = {origin: _without(row, dests) for origin, row in log}
        if self._hardware or self._broadcast or len(to) == 1:
            message = self._message(mid, dests, log, payload)
            self._packets.extend([(d, message) for d in sorted(to)])
        else:
            for d in sorted(to):
                told = tuple(
                    (origin, row if row is kept[origin] else _without(row, dests - {d}))
                    for origin, row in log
                )
                self._packets.append((d, self._message(mid, dests, told, payload)))
        kept[self.me] = _purged((*kept.get(self.me, ()), (mid, dests)))
        self._log = kept

    def _message(self, mid: int, dests: Dests, log: Log, payload: Any) -> KsMessage:
        if not self._complement or self._members is None:
            return _new(KsMessage, ("msg", mid, dests, log, payload))
        everybody = self._members
        coded = tuple(
            (origin, tuple((clock, _shorter(everybody - {origin}, d)) for clock, d in row))
            for origin, row in log
        )
        return _new(KsMessage, ("msg", mid, _shorter(everybody - {self.me}, dests), coded, payload))

    # -- RCV ------------------------------------------------------------------

    def receive(self, source: str, packet: Packet) -> None:
        if packet.__class__ is not KsMessage or not isinstance(source, str):
            raise RemoteProtocolError(f"{source!r} sent {packet!r}, which is not a packet of ks")
        if source in self._forgotten:
            return
        message = self._decoded(source, packet)
        self._check(source, message)
        if self._is_known(source, message):
            return
        self._held.hold(source, message[1], message, self._needs(message))
        self._settle()

    def _settle(self) -> None:
        for name, ready in self._held.take():
            self._absorb(name, ready)
            self._held.delivered(name, ready[1])
            self._deliver(name, ready[1], ready[4])

    def _decoded(self, source: str, packet: Packet) -> Packet:
        """Return the packet with all sets written out, none by its complement."""
        _, mid, dests, log, payload = packet
        sets = [dests, *(d for _, row in log for _, d in row)]
        if AllBut not in map(type, sets):
            return packet
        if not self._complement or self._members is None:
            raise RemoteProtocolError(f"{source!r} sent complements, which are not in use here")
        everybody = self._members
        written_out = tuple(
            (origin, tuple((clock, _written_out(everybody - {origin}, d)) for clock, d in row))
            for origin, row in log
        )
        return KsMessage(mid, _written_out(everybody - {source}, dests), written_out, payload)

    def _check(self, source: str, message: Packet) -> None:
        """Raise RemoteProtocolError if no correct process could have sent this here."""
        _, mid, dests, log, _ = message
        if self._broadcast:
            addressed = not dests and not any(d for _, row in log for _, d in row)
        else:
            addressed = self.me in dests and source not in dests
        if not addressed or source in ("", self.me):
            raise RemoteProtocolError(f"{source!r} sent {message!r}, which cannot be for here")
        for origin, row in log:
            newest = row[-1][0]
            if origin == source and newest >= mid:
                raise RemoteProtocolError(f"{source!r} sent message {mid} after {newest}")
            if origin == self.me and newest > self._newest(origin):
                raise RemoteProtocolError(f"{source!r} knows of message {newest}, never sent")
        if self._members is not None:
            named = {source, *dests, *(origin for origin, _ in log)}
            named.update(*(d for _, row in log for _, d in row))
            if not named <= self._members:
                raise RemoteProtocolError(f"{source!r} names {sorted(named - self._members)}")

    def _newest(self, origin: str) -> int:
        """TS(origin, LOG): the last message of `origin` to others that is known here."""
        row = self._log.get(origin)
        return row[-1][0] if row else 0

    def _is_known(self, source: str, message: Packet) -> bool:
        """Return whether this is a duplicate of what is delivered or held."""
        mid = message[1]
        if mid <= self._delivered.get(source, 0):
            return True
        if mid <= self._newest(source):
            # To be known here without having been delivered, it went to others.
            raise RemoteProtocolError(f"{source!r} sent message {mid}, which was another")
        held = self._held.get(source, mid)
        if held is not None and held != message:
            raise RemoteProtocolError(f"{source!r} sent two different messages {mid}")
        return held is not None

    def _needs(self, message: Packet) -> list[Need]:
        """RCV(1), the Delivery Condition: return what was sent here and is missing."""
        me = self.me
        everybody = self._broadcast
        delivered = self._delivered
        return [
            (origin, clock)
            for origin, row in message[3]
            if origin not in self._forgotten
            for clock, dests in row
            if (everybody or me in dests) and clock > delivered.get(origin, 0) and origin != me
        ]

    def _absorb(self, source: str, message: Packet) -> None:
        """RCV(2-5), without the delivery, for a message that may be delivered."""
        _, mid, dests, log, _ = message
        self._delivered[source] = mid
        gone = self._forgotten
        told = {origin: _without(row, dests) for origin, row in log if origin not in gone}
        told[source] = _purged((*told.get(source, ()), (mid, dests - {self.me})))
        for origin, row in told.items():
            mine = self._log.get(origin)
            self._log[origin] = row if mine is None else _merged(mine, row)

    def _forget(self, peer: str) -> tuple[int, ...]:
        """Drop the facts about messages of `peer`: nobody will wait for them.

        Only with `broadcast`. Otherwise a message of `peer` may have taken over a fact
        by PC2: a third process no longer says that M(i,a) was sent here, because it says
        that a later message of `peer` was. If that never comes, nothing tells that the
        third process's message has to wait for M(i,a), whose sender is alive.
        """
        if not self._broadcast:
            return super()._forget(peer)
        if self._members is None or peer not in self._members:
            raise LocalProtocolError(f"{peer!r} is not among {sorted(self._members or ())}")
        self._held.forget(peer)
        self._delivered.pop(peer, None)
        self._log.pop(peer, None)
        return ()

    # -- what people ask, and as a value --------------------------------------

    def blocked(self) -> list[Blocked]:
        return self._held.blocked(self.me)

    @property
    def held_back(self) -> int:
        return len(self._held)

    def footprint(self) -> Footprint:
        """Return the space of LOG, SR, the clock and what is held; a message has one
        destination."""
        somebody = min((self._members or NOBODY) - {self.me}, default=self.me)
        dests = NOBODY if self._broadcast else frozenset({somebody})
        message = self._message(self._mid + 1, dests, self.log, None)
        log = sum(1 + sum(1 + len(d) for _, d in row) for row in self._log.values())
        state = 1 + 2 * len(self._delivered) + log + self._held.footprint()
        return Footprint(state, {"msg": message.integers + message.identifiers})

    def _state(self) -> Hashable:
        return (
            (self._hardware, self._complement, self._broadcast, self._members),
            frozenset(self._log.items()),
            frozenset(self._delivered.items()),
            self._held.state(),
        )

    def _copy_into(self, twin: Self) -> None:
        twin._hardware = self._hardware
        twin._complement = self._complement
        twin._broadcast = self._broadcast
        twin._members = self._members
        twin._delivered = self._delivered.copy()
        twin._log = self._log.copy()
        twin._held = self._held.copy()
