"""`adaptive`: causal delivery by naming what is undelivered, at most K names at a time.

A message lists the messages of its causal past that are not known to be delivered. From
the list the receiver knows what to wait for, and what to list in its own messages. While the
list fits, this is latency-optimal: a message leaves at once and is held only for real
predecessors, where messages sent in one turn count as one (see Bursts). The price is the
list. Three rules keep it short: no process lists an entry twice to the same peer;
news of a delivery follows the entry to every process that learnt it; and a list that is
longer than K (the option `cap`) travels in parts while its message waits.

**A message to d waits for nobody but d.** At its sender it waits for d to confirm the
parts of its list; at d it waits for other messages to d. So a process that stands still
delays messages to itself and, as causality demands, messages that depend on what it sent
and that did not arrive. It delays nothing else, whatever K is and however long it stands
still. No message ever waits for an ack or a permit from a third process.

**Terms.** (o, c, x) is message x of o to c. Numbers count all messages of o from 1, so they
grow on every channel. Channels are FIFO (`fifo`: a message carries the number of its
predecessor), so the newest message of a pair (o, c) stands for the earlier ones. A
multicast to a group g, a set of processes, is one entry (o, g, x).

    state   past     the undelivered causal past: for each pair the newest message
                     that is not known to be delivered (`adaptive_past`)
            upto[d]  how much of it d has learnt from messages of this process
            lane[d]  messages to d that wait, each with the rest of its list
            owed     for each pair, the peers to which this process listed it
            news[d]  deliveries to report to d; one packet of them at a time

    packet  MSG(mid, pid, payload, group, entries)     at most K entries
            ACK(mid)                 all up to mid is delivered here (`fifo`)
            PART(mid, k, entries)    part k of the list of mid, ahead of it
            GOT(mid, k)              part k has arrived
            NEWS(k, entries)         these are delivered to all their destinations
            SEEN(k)                  NEWS k has arrived

**Send.** A message m of this process to d joins the past as (me, d, m). Its list is the past,
except what is known to d: what d listed to this process, what d sent itself, what this
process sent to d (the channel is FIFO), and what it listed to d before (d learns that
before it delivers m). The copies of a multicast list each other, or carry the group, which
stands for them. If m lists at most K entries and no message to d waits, m leaves.
Otherwise it joins lane[d] *with the list of this moment*.

**Bursts.** Messages that are sent without anything learnt in between, and taken by the driver
together, share their lists: the first to each destination lists the past as it is after all
of them. It may so name a message that was sent after it, but before it left (see I2). In
other words, messages sent in one turn count as one: a process that delivers one of them lists
the others, and what it sends to their destinations waits for them, although it may not depend
on them.

**Lanes.** The first message in a lane leaves when the rest of its list has at most K
entries. The rest shrinks in two ways: an entry turns out to be delivered, or it is sent
ahead in a part. Parts go one at a time, each after the confirmation of the one before, and
the first is empty. So for one round trip to d the message only waits for news, and after
that its list shrinks by a part in every round trip.

**Receive.** A message m is held until its predecessor on the channel, and all messages to
this process in its list, are delivered. Then its list joins the past, and after that the
application gets m.

**News.** A delivery is a stable fact: any process that knows it may report it to any other
at any time. An ack of m says that m, and all messages to the same destination in m's list,
are delivered. A process that learns that (o, c, x) is delivered drops it from its past and
reports it to the peers to which it listed it, once they have acked the message with that
list (otherwise the news could overtake the entry, and the entry would stay for good). The
origin of a multicast to a group reports to the members when all have acked, unless it has
sent to the group again. Each process remembers for a while up to where the messages of a
pair are delivered, so that it does not learn an old entry again from a process that the
news has not reached.

    I1  completeness: for every undelivered message (o, c, x) in the past of process i, c
        other than i, `past` of i has an entry of o for c, or for a group with c, of at
        least x.
    I2  truth: an entry in `past`, or in the list of a message, names a message that
        happened before, or that its sender sent before the list was made, in the same
        burst as a message that happened before; NEWS names delivered messages only.
    I3  snapshot: the list of a waiting message is fixed when it is sent, and only shrinks.
    I4  a message carries at most K entries, and a part at most max(K, 1).

*Safety.* Let x -> m, both to d, and m from i. If i sent x, the channel is FIFO. Otherwise x
is in the past of i when m is sent. If x is not delivered, then by I1 `past` has an entry e
for d, or for a group with d, that names x or a later message of the same channel. Either m
lists e, so d holds m; or an earlier message of i to d did, and that is before m on the channel;
or d listed e to i. In the last case e is for a group, since no process lists messages to itself
alone, and d has then delivered its own copy: d takes a list into its past only when it delivers
the message with that list, which it holds for e. So d delivers m after x.

*I1* holds after a send, which adds its entry, and after news: by I2 the entry that it drops, and
all earlier messages on the same channels, are delivered. After the delivery of m from i at d,
let (o, c, x) be undelivered, c other than d, and in the past of m (or a copy of m itself). If it
was in the past of d before, its entry is still there: learning only replaces an entry by a newer
one. Otherwise, by I1 for i, `past` of i had an entry e of o, of at least x, when m was sent. If m
lists e, in parts or at the end, d learns it now. If m does not list e, then d sent e itself, d
listed it to i, i listed it to d before, or e is an earlier multicast of i to a group with d. In
all four cases e, or a newer entry of the same pair, was in the past of d before: of i's messages
d has delivered those before m. If d has dropped it since, or did not take it from a list because
it had the news already, then by I2 e is delivered to all its destinations, and x, which is e or
before it on the channel from o to c, is delivered: a contradiction. The same holds if i has taken
e off the list of m while m waited.

*Liveness*, on a reliable network without any clock. Induction over the times at which lists
are made, which is well founded: a list only names messages whose own lists were made before
it or, for messages of the same burst, with it; and those are for other destinations, so that
d does not hold m for them. All messages of i to d before m are delivered at some time. Then
m is the first of its lane, and d confirms every part of it, unconditionally. Its list is fixed
(I3) and loses at least one entry with each confirmation but the first, so m leaves. The
messages for which d holds m had their lists before m, so they are delivered, and then m is.
News is not needed for this: it only keeps lists short. Messages that arrive later
never delay m, so nothing starves. `retransmit` repeats everything that is not confirmed.

**Forgetting** a process drops all entries from and to it; a group entry stays for the other
members. It is safe because an entry never stands for the message of another process: if m
replaced everything on its way to d, as in `ks`, and its sender were forgotten, nothing would
say any more that others must wait for what m had replaced. (Lists would be hardly
shorter: what is on its way to d is listed once to each peer anyway.)

With K = None there is no limit: nothing waits at its sender, and everything is delivered at
the same step as under `ks`, if the driver takes packets after each send. Messages that are sent
in one turn count as one, and what depends on one of them may wait for the others as well. With
K = 0, entries travel in parts of one entry only.

Work is O(1) for each entry that is listed, learnt or found delivered, with one exception: if a
message leaves its lane after a newer entry of the same pair was listed to others, the peers that
get news of that pair are sorted (`Past.listed`), which takes O(p log p) for p peers. So a message
within the cap costs O(K), whatever the number of processes and of messages in flight or held; a
message beyond it costs O(its list), and that sorting.

The classes form layers, each in a module of its own: `Adaptive` (sends, receives, holds), on
`RunEndpoint` (messages in runs), on `AliasEndpoint` (short names for groups), on `LaneEndpoint`
(lanes and parts), on `ReportingEndpoint` (news), on `FifoEndpoint` (channels and acks).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable
from typing import Any, Self

from .adaptive_packets import (
    UNMET,
    AdaptiveMessage,
    Checked,
    Dest,
    Entries,
    Entry,
    Got,
    Listed,
    News,
    Part,
    Seen,
)
from .adaptive_peer import AdaptivePeer
from .adaptive_runs import RunEndpoint
from .endpoint import (
    Blocked,
    Footprint,
    LocalProtocolError,
    Outgoing,
    Packet,
    RemoteProtocolError,
    Wait,
    destinations,
)
from .fifo import Ack
from .held import Need

__all__ = [
    "UNMET",
    "Adaptive",
    "AdaptiveMessage",
    "Checked",
    "Dest",
    "Entries",
    "Entry",
    "Got",
    "Listed",
    "News",
    "Part",
    "Seen",
]

_new = tuple.__new__


class Adaptive(RunEndpoint):
    """Causal unicast and multicast, latency-optimal while lists have at most K entries."""

    __slots__ = ("_groups",)

    def __init__(
        self,
        me: str,
        group: Iterable[str] | None = None,
        *,
        cap: int | None = 128,
        groups: int = 16,
    ) -> None:
        for name, value in (("cap", cap), ("groups", groups)):
            if type(value) is not int or value < 0:
                if name == "cap" and value is None:
                    continue
                raise LocalProtocolError(f"{name} must be an integer from 0 upward, not {value!r}")
        super().__init__(me, cap=cap)
        self._groups = groups
        """Most groups to which multicasts may be on their way from here."""

    # -- send -----------------------------------------------------------------

    def send(self, to: str | Collection[str], payload: Any) -> int:
        if to.__class__ is not str or not to or to == self.me:
            return self._send_to(to, payload)
        peer = self._peers.get(to) or self._peer(to)
        mid = self._mid = self._mid + 1
        peer.mids.append(mid)
        peer.payloads.append(payload)
        self._burst.append(peer)
        return mid

    def sender_to(self, name: str) -> Callable[[Any], int]:
        if not isinstance(name, str) or not name or name == self.me:
            return super().sender_to(name)
        peer = self._peers.get(name) or self._peer(name)

        def send(payload: Any) -> int:
            mid = self._mid + 1
            peer.mids.append(mid)  # which refuses if the peer was forgotten
            peer.payloads.append(payload)
            self._mid = mid
            self._burst.append(peer)
            return mid

        return send

    def _send_to(self, to: str | Collection[str], payload: Any) -> int:
        """`send`, where it is more, or less, than a message to one other process."""
        names = destinations(to)
        self._refuse_forgotten(names)
        others = tuple([name for name in names if name != self.me])
        if len(others) == 1:
            mid = self.send(others[0], payload)
        else:
            mid = self._mid = self._mid + 1
            if others:
                self._multicast(others, mid, payload)
        if len(others) < len(names):
            self._deliver(self.me, mid, payload)
        return mid

    def _multicast(self, names: tuple[str, ...], mid: int, payload: Any) -> None:
        past = self._past
        peers = [self._peers.get(name) or self._peer(name) for name in names]
        self._flush()
        members = tuple(sorted((*names, self.me)))
        group: tuple[str, ...] = ()
        known = members in self._open or len(self._open) < self._groups
        if known and not any(peer.provisional for peer in peers):
            group = members
            past.sent(group, mid)
            self._open[group] = mid
            self._copies[mid] = len(names)
        else:
            for name in names:
                past.sent(name, mid)
        for peer in peers:
            peer.mids.append(mid)
            peer.payloads.append(payload)
            if self._post(peer, group):
                self._out.append(peer)

    # -- receive --------------------------------------------------------------

    def receive(self, source: str, packet: Packet) -> None:
        """Handle a packet that arrived.

        Raises:
            RemoteProtocolError: No correct peer could have sent it. Nothing was changed.
        """
        kind = packet.__class__
        if self._forgotten and source in self._forgotten:
            return
        if kind is AdaptiveMessage:
            self._receive_message(source, packet)
        elif kind is Ack:
            peer = self._receive_ack(source, packet[1])
            if peer is not None:
                self._acks_came(peer)
        elif kind is News:
            self._receive_news(source, packet)
        elif kind is Seen:
            self._receive_seen(source, packet[1])
        elif kind is Part:
            self._receive_part(source, packet)
        elif kind is Got:
            self._receive_got(source, packet[1], packet[2])
        else:
            raise RemoteProtocolError(f"{source!r} sent {packet!r}, which is no packet of adaptive")

    def _needs_of(self, source: str, message: Packet) -> list[Need] | None:
        """Return what a message has to wait for, or None if it is here already.

        Raises RemoteProtocolError if no correct peer could have sent it.
        """
        _, mid, pid, _, dests, entries = message
        peer = self._peers.get(source)
        delivered = 0 if peer is None else peer.delivered
        if dests and (self.me not in dests or source not in dests):
            raise RemoteProtocolError(f"{source!r} sent a message to {dests!r}, not to {self.me!r}")
        needs = self._needs(source, entries) if entries else []
        if mid <= delivered:
            return None
        if peer is not None and mid in peer.parts:
            for part in peer.parts[mid]:
                needs += self._needs(source, part)
        if pid != delivered:
            if pid < delivered:
                raise RemoteProtocolError(
                    f"{source!r} sent message {mid} as the one after {pid}, which was another"
                )
            needs.append((source, pid))
        held = self._held.get(source, mid)
        if held is not None:
            if held != message:
                raise RemoteProtocolError(f"{source!r} sent two messages of the number {mid}")
            return None
        return needs

    def _receive_message(self, source: str, message: Packet) -> None:
        needs = self._needs_of(source, message)
        peer = self._peers.get(source)
        if needs is None:
            if peer is not None and message[1] <= peer.delivered:
                self._acks[source] = peer.delivered  # the ack before may have been lost
            return
        if peer is None:
            peer = self._stranger(source)
        if needs:
            self._held.hold(source, message[1], message, needs)
        else:
            self._accept(source, peer, message)
            self._settle()

    def _needs(self, source: str, entries: Iterable[Entry]) -> list[Need]:
        """What has to be delivered here before a message that lists these entries."""
        needs: list[Need] = []
        me, peers = self.me, self._peers
        for origin, dest, mid in entries:
            if origin == me:
                if mid > self._mid:
                    raise RemoteProtocolError(f"{source!r} lists message {mid}, never sent")
            elif dest == me or (dest.__class__ is tuple and me in dest):
                if origin in self._forgotten:
                    continue
                if origin == source:
                    raise RemoteProtocolError(f"{source!r} lists its own message {mid} to {me!r}")
                peer = peers.get(origin)
                delivered = 0 if peer is None else peer.delivered
                if delivered < mid and self._void.get(origin, 0) < mid:
                    needs.append((origin, mid))
        return needs

    def _accept(self, source: str, peer: AdaptivePeer, message: Packet) -> None:
        """Deliver a message; what it lists joins the past first."""
        _, mid, _, payload, dests, entries = message
        if self._burst and (entries or dests or mid in peer.parts):
            self._flush()
        peer.delivered = mid
        if peer.parts:
            for part in peer.parts.pop(mid, ()):
                self._learn(source, part)
        if entries:
            self._learn(source, entries)
        if dests:
            self._past.learn([(source, dests, mid)], source)
        self._held.delivered(source, mid)
        self._acks[source] = mid
        self._deliver(source, mid, payload)

    def _learn(self, source: str, entries: Entries) -> None:
        self._past.learn(self._to_be_delivered(self._of_the_living(entries)), source)

    def _receive_part(self, source: str, part: Packet) -> None:
        _, mid, number, entries = part
        peer = self._peers.get(source)
        delivered = 0 if peer is None else peer.delivered
        if mid > delivered and number:
            parts = [] if peer is None else peer.parts.get(mid, [])
            former = parts[number - 1] if number <= len(parts) else entries
            # What comes again may lack entries of processes that are gone by now.
            if number > len(parts) + 1 or (
                former != entries and self._of_the_living(former) != self._of_the_living(entries)
            ):
                raise RemoteProtocolError(f"{source!r} sent {part!r} after {len(parts)} parts")
            self._needs(source, entries)
            if number == len(parts) + 1:
                if peer is None:
                    peer = self._stranger(source)
                peer.parts[mid] = [*parts, entries]
        elif peer is None and (not isinstance(source, str) or source in ("", self.me)):
            raise RemoteProtocolError(f"a packet from {source!r}, which is no other process")
        self._packets.append((source, _new(Got, ("got", mid, number))))

    # -- what the driver takes ------------------------------------------------

    def _message(self, mid: int, pid: int, payload: Any, per: bool) -> Packet:
        return _new(AdaptiveMessage, ("msg", mid, pid, payload, (), ()))

    def _message_at(self, peer: AdaptivePeer, k: int) -> Packet:
        mid = peer.mids[k]
        sent = peer.sent.get(mid)
        group, entries = ((), ()) if sent is None else (sent.group, sent.entries)
        fields = ("msg", mid, peer.before(k), peer.payloads[k], group, entries)
        return _new(AdaptiveMessage, fields)

    def _leaving(self) -> list[Outgoing]:
        packets: list[Outgoing] = []
        for peer in self._out:
            packets.append((peer.name, self._message_at(peer, peer.taken)))
            peer.taken += 1
        self._out = []
        return packets

    # -- what people ask ------------------------------------------------------

    def blocked(self) -> list[Blocked]:
        here = []
        for name, peer in sorted(self._peers.items()):
            if peer.lane:
                waits = (Wait("ack", name, peer.lane[0].mid),)
                mids = self._waiting(peer)
                here += [Blocked(self.me, mid, name, "sender", waits) for mid in mids]
        return here + self._held.blocked(self.me)

    def first_missing(self) -> list[tuple[str, int, Wait]]:
        """Return what messages that are here wait for: see `RunBuffer.first_missing`."""
        return self._held.first_missing()

    @property
    def awaited(self) -> Iterable[str]:
        """The processes whose messages others wait for that are here."""
        return self._held.awaited_origins

    @property
    def held_back(self) -> int:
        return len(self._held) + sum(len(self._waiting(p)) for p in self._peers.values() if p.lane)

    def footprint(self) -> Footprint:
        state = 1 + sum(1 + peer.footprint() for peer in self._peers.values())
        state += self._past.footprint() + self._held.footprint() + 2 * len(self._open)
        most = len(self._past)
        if self._cap is not None:
            most = min(most, self._cap)
        listed = 2 + 3 * most
        packet = {"msg": listed, "ack": 1, "part": listed, "got": 2, "news": listed, "seen": 1}
        return Footprint(state, packet)

    # -- as a value -----------------------------------------------------------

    def _state(self) -> Hashable:
        past = self._past
        items = past.knowing({name: peer.upto for name, peer in self._peers.items()})
        owed = [
            (origin, dest, name, mid, listing if listing > self._peers[name].acked else 0)
            for origin, dest, name, mid, listing in past.owed()
        ]
        return (
            super()._state(),
            frozenset(items) if self._cap is None else items,
            frozenset(owed),
            frozenset(past.settled()),
            frozenset(self._open.items()),
            frozenset(self._copies.items()),
            self._held.state(),
            tuple([peer.name for peer in self._burst]),
            frozenset(self._void.items()),
            self._aliased,
            self._over,
            frozenset(self._dropped.items()),
            frozenset(self._unmet.items()),
        )

    def _copy_into(self, twin: Self) -> None:
        super()._copy_into(twin)
        twin._groups = self._groups
