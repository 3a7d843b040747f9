"""`adaptive`: causal delivery by naming what is undelivered, at most K names at a time.

A message lists the messages of its causal past that are not known to be delivered, so the
receiver knows what to wait for, and what to pass on. That is latency-optimal: the message
leaves at once and is held only for real predecessors. What it costs is the list. The
protocol keeps lists short in three ways: nobody is told anything twice, the news of
a delivery follows those who were told of the message, and a list that is longer than K
(`cap`) travels in parts, while its message waits.

**The rule that makes a silent process harmless.** *A message to d waits for nobody but d.*
At its sender it waits for d to confirm the parts of its list; at d it waits for messages
to d. So a process that stands still delays messages to itself and, as causality demands,
messages that depend on those it sent and that have not arrived; nothing else, whatever K
is and however long it lasts. No message ever waits for an ack or a permit of a third.

**Terms.** (o, c, x) is message x of o to c; numbers count all messages of o from 1, so they
grow on every channel. Channels are FIFO (`fifo`: a message carries the number of its
predecessor), so the newest message of a pair (o, c) stands for the earlier ones.
A multicast to a group g, a named set, is one entry (o, g, x).

    state   past     the undelivered causal past: for each pair the newest message
                     that is not known to be delivered (`adaptive_past`)
            upto[d]  how much of that was told to d, with the last message to d
            lane[d]  messages to d that wait, each with the rest of its list
            owed     who was told of a pair by us, and of which message: it gets the news
            news[d]  deliveries to tell d of; one packet of them at a time

    packet  MSG(mid, pid, payload, group, entries)     at most K entries
            ACK(mid)                 all up to mid is delivered here (`fifo`)
            PART(mid, k, entries)    part k of the list of mid, ahead of it
            GOT(mid, k)              part k is here
            NEWS(k, entries)         these are delivered to all their destinations
            SEEN(k)                  NEWS k has arrived

**Send.** The list of a message m to d is all of the past but: what d told us itself or sent
itself, and what was listed to d before (FIFO: d knows it when it delivers m). The copies
of a multicast, or the group as one entry, are part of the list of each copy. Then
m takes the place of all that is on its way to d, since d will not deliver m before
it: the past has (me, d, m) instead. If m lists at most K entries and nothing to d
waits, it leaves. Otherwise it joins lane[d] *with the list of this moment*.

**Lanes.** The first message in a lane leaves when the rest of its list has at most K
entries. The rest shrinks in two ways: an entry is found to be delivered, or it is sent
ahead, in a part. Parts go one at a time, each after the confirmation of the
one before; the first is empty. So for a round trip to d a message only hopes for news,
and after that its list shrinks by a part in every round trip.

**Receive.** m is held until its predecessor on the channel and the messages to here in its
list are delivered. Then, before the application sees m, its list joins the past.

**News.** Deliveries are stable facts: whoever knows one may tell anybody, at any time. An ack
of m tells the sender that m and all messages to the same destination in m's list are
delivered. Whoever finds out that (o, c, x) is delivered drops it from the past, and tells
those to whom it listed it, when they have acked the message that listed it (otherwise
the news could overtake the entry, and the entry would stay). The origin of a multicast to
a group tells the members when all have acked, unless it has sent to them again. That a
pair is delivered up to x is remembered for a while, so that an old entry is not learnt
again from somebody to whom the news is still on its way.

    I1  completeness: every message in the past of i, not to i, that is not delivered, is
        at most the message of its pair in `past`; or was sent to c before, or happened
        before, an undelivered message of i to c that is in `past`. (A group is all its pairs.)
    I2  truth: every entry in `past`, in a list or in a lane names a message that
        happened before; NEWS names delivered messages only.
    I3  snapshot: the list of a message that waits is fixed when it is sent, and shrinks.
    I4  a message carries at most K entries, a part at most max(K // 4, 1).

*Safety.* Let x -> m, both to d, m from i. If i sent x, channels are FIFO. Otherwise x is in
the past of i when m is sent, and by I1: x is delivered; or it is at most an entry (o, d, x')
of `past`, which m lists, so d holds m; or an earlier message of i to d stands for it,
which is before m on the channel and has x before it by induction. What m does not list, d
knows: what d told us was in d's past then, and is in d's `past` or delivered; what
we told d before, d learnt on delivering that, before m. d never tells anybody of
messages to d. I1 holds after a delivery at d since m's list and what d knows already
make up the past of m; after news, by I2; after a send, because m stands for what it replaces.

*Liveness*, without any clock on a reliable network. Induction over happened-before, which
is well founded. All messages of i to d before m are delivered at some time. Then m is first
in its lane, and every part of it is confirmed by d, unconditionally; its list is fixed
(I3) and loses an entry at least with each confirmation but the first; so m leaves. The
messages for which d holds m happened before m (I2), so they are delivered, and m is. News
is not needed for any of this: it only keeps lists short. Messages that come later
never delay m, so nothing starves. For loss, everything that is not confirmed is
repeated by `retransmit`.

K = 0 lists nothing but in parts of one entry; K = None, without limit, never waits,
and delivers at the very step at which `ks` does.

Work is O(1) for each entry listed, learnt or found delivered: a message within the cap
costs O(K), however many processes there are, and however much is in flight or held.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Collection, Hashable, Iterable
from typing import Any, Self

from .adaptive_packets import AdaptiveMessage, Dest, Entries, Entry, Got, News, Part, Seen
from .adaptive_past import Past
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
from .fifo import Ack, FifoEndpoint, FifoPeer
from .held import HoldingBuffer, Need

__all__ = ["Adaptive"]

_new = tuple.__new__


def _is_for(name: str, dest: Dest) -> bool:
    """Whether a process is the destination, or a member of the group."""
    return dest == name or (dest.__class__ is tuple and name in dest)


class _Sent:
    """What a message on its way has beside its number and payload."""

    __slots__ = ("entries", "group", "late", "parts")

    def __init__(self, group: tuple[str, ...], parts: Entries, entries: Entries) -> None:
        self.group = group
        self.parts = parts
        """What was listed ahead of it."""
        self.entries = entries
        """What it lists itself."""
        self.late: list[Entry] = []
        """News of what it lists, to be told when it is acked."""

    def copy(self) -> Self:
        twin = type(self)(self.group, self.parts, self.entries)
        twin.late = self.late[:]
        return twin

    def state(self) -> Hashable:
        return (self.group, self.parts, self.entries, frozenset(self.late))


class _Waiting:
    """A message in a lane."""

    __slots__ = ("group", "mid", "part", "parts", "rest")

    def __init__(self, mid: int, group: tuple[str, ...], entries: Iterable[Entry]) -> None:
        self.mid = mid
        self.group = group
        self.rest = dict.fromkeys(entries)
        """What is still to be listed, in this order."""
        self.parts: list[Entry] = []
        """What was listed in parts."""
        self.part: int | None = None
        """The part that is to be confirmed, if any was sent."""

    def copy(self) -> Self:
        twin = type(self)(self.mid, self.group, self.rest)
        twin.parts = self.parts[:]
        twin.part = self.part
        return twin

    def state(self) -> Hashable:
        return (self.mid, self.group, tuple(self.rest), tuple(self.parts), self.part)


class AdaptivePeer(FifoPeer):
    """What an endpoint knows of one other process."""

    __slots__ = ("lane", "news", "number", "parts", "sent", "unseen", "upto")

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.upto = 0
        """It was told of the past up to this stamp."""
        self.lane: deque[_Waiting] = deque()
        self.sent: dict[int, _Sent] = {}
        """What messages on their way list, by number; those that list nothing are not here."""
        self.news: dict[tuple[str, Dest], int] = {}
        """Deliveries to tell it of: all messages of the pair up to this one."""
        self.unseen: Entries = ()
        """The news on their way to it."""
        self.number = 0
        """How many packets of news there were."""
        self.parts: dict[int, list[Entries]] = {}
        """What came ahead of its messages, by message."""

    def copy(self) -> Self:
        twin = super().copy()
        twin.upto = self.upto
        twin.lane = deque([waiting.copy() for waiting in self.lane])
        twin.sent = {mid: sent.copy() for mid, sent in self.sent.items()}
        twin.news = self.news.copy()
        twin.unseen = self.unseen
        twin.number = self.number
        twin.parts = {mid: parts[:] for mid, parts in self.parts.items()}
        return twin

    def state(self) -> Hashable:
        return (
            super().state(),
            tuple([waiting.state() for waiting in self.lane]),
            tuple([(mid, sent.state()) for mid, sent in self.sent.items()]),
            frozenset(self.news.items()),
            self.unseen,
            self.number,
            frozenset([(mid, tuple(parts)) for mid, parts in self.parts.items()]),
        )

    def footprint(self) -> int:
        listed = sum(1 + 3 * (len(s.parts) + len(s.entries)) for s in self.sent.values())
        waiting = sum(2 + 3 * (len(w.parts) + len(w.rest)) for w in self.lane)
        parts = sum(1 + 3 * sum(map(len, p)) for p in self.parts.values())
        news = 3 * (len(self.news) + len(self.unseen))
        return super().footprint() + 2 + listed + waiting + parts + news


class Adaptive(FifoEndpoint[AdaptivePeer]):
    """Causal unicast and multicast, latency-optimal while lists have at most K entries."""

    __slots__ = ("_cap", "_copies", "_due", "_groups", "_held", "_hoped", "_open", "_part", "_past")

    def __init__(
        self,
        me: str,
        group: Iterable[str] | None = None,
        *,
        cap: int | None = 64,
        groups: int = 16,
    ) -> None:
        super().__init__(me)
        for name, value in (("cap", cap), ("groups", groups)):
            if type(value) is not int or value < 0:
                if name == "cap" and value is None:
                    continue
                raise LocalProtocolError(f"{name} must be an integer from 0 upward, not {value!r}")
        self._cap = cap
        """Most entries that a message carries (K); None: no limit."""
        self._part = 0 if cap is None else max(1, cap // 4)
        """Most entries that a part carries."""
        self._groups = groups
        """Most groups to which multicasts may be on their way from here."""
        self._past = Past(me)
        self._held = HoldingBuffer()
        self._open: dict[tuple[str, ...], int] = {}
        """Groups to which multicasts are on their way from here, and the last of each."""
        self._copies: dict[int, int] = {}
        """How many copies of each of these are not acked."""
        self._hoped: dict[tuple[str, Dest], dict[tuple[int, str, int], _Waiting]] = {}
        """Messages in lanes by what they list: (message, destination, message that waits)."""
        self._due: dict[str, None] = {}
        """Peers to whom news may leave."""

    def _peer(self, name: str) -> AdaptivePeer:
        peer = self._peers[name] = AdaptivePeer(name)
        return peer

    # -- send -----------------------------------------------------------------

    def send(self, to: str | Collection[str], payload: Any) -> int:
        if to.__class__ is not str or not to or to == self.me:
            return self._send_to(to, payload)
        mid = self._mid = self._mid + 1
        peer = self._peers.get(to) or self._peer(to)
        past = self._past
        entries = past.untold(to, peer.upto)
        past.sent(to, mid)
        self._post(peer, mid, payload, (), entries)
        return mid

    def _send_to(self, to: str | Collection[str], payload: Any) -> int:
        """`send`, where it is more, or less, than a message to one other process."""
        names = destinations(to)
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
        lists = [past.untold(peer.name, peer.upto, names) for peer in peers]
        members = tuple(sorted((*names, self.me)))
        group: tuple[str, ...] = ()
        if members in self._open or len(self._open) < self._groups:
            group = members
            for name in names:
                past.covered(name)
            past.sent(group, mid)
            self._open[group] = mid
            self._copies[mid] = len(names)
        else:
            for name in names:
                past.sent(name, mid)
            for peer, entries in zip(peers, lists, strict=True):
                entries += [(self.me, name, mid) for name in names if name != peer.name]
        for peer, entries in zip(peers, lists, strict=True):
            self._post(peer, mid, payload, group, entries)

    def _post(
        self,
        peer: AdaptivePeer,
        mid: int,
        payload: Any,
        group: tuple[str, ...],
        entries: list[Entry],
    ) -> None:
        """Release a copy of a message, or let it wait in its lane."""
        peer.upto = self._past.stamp
        peer.mids.append(mid)
        peer.payloads.append(payload)
        if not peer.lane and (self._cap is None or len(entries) <= self._cap):
            if entries or group:
                peer.sent[mid] = _Sent(group, (), tuple(entries))
                self._past.told(peer.name, entries, mid)
            self._out.append(peer)
            return
        name = peer.name
        # What the receiver will have to wait for goes last: a part need not bring it.
        entries.sort(key=lambda entry: _is_for(name, entry[1]))
        waiting = _Waiting(mid, group, entries)
        for origin, dest, listed in entries:
            self._hoped.setdefault((origin, dest), {})[listed, name, mid] = waiting
        peer.lane.append(waiting)
        if len(peer.lane) == 1:
            self._advance(peer)

    # -- lanes ----------------------------------------------------------------

    def _advance(self, peer: AdaptivePeer) -> None:
        """Release what can leave a lane; the first that cannot sends a part ahead."""
        cap = self._cap
        lane = peer.lane
        while lane and (cap is None or len(lane[0].rest) <= cap) and not lane[0].part:
            self._release(peer, lane.popleft())
        if lane and lane[0].part is None:
            lane[0].part = 0
            self._packets.append((peer.name, _new(Part, ("part", lane[0].mid, 0, ()))))

    def _release(self, peer: AdaptivePeer, waiting: _Waiting) -> None:
        name, mid = peer.name, waiting.mid
        parts, entries = tuple(waiting.parts), tuple(waiting.rest)
        for origin, dest, listed in entries:
            self._give_up_hope(origin, dest, listed, name, mid)
        if parts or entries or waiting.group:
            peer.sent[mid] = _Sent(waiting.group, parts, entries)
            self._past.told(name, (*parts, *entries), mid)
        self._out.append(peer)

    def _give_up_hope(self, origin: str, dest: Dest, listed: int, name: str, mid: int) -> None:
        hoped = self._hoped[origin, dest]
        del hoped[listed, name, mid]
        if not hoped:
            del self._hoped[origin, dest]

    def _receive_got(self, source: str, mid: int, number: int) -> None:
        peer = self._peers.get(source)
        if peer is None or mid > self._mid:
            raise RemoteProtocolError(f"{source!r} got a part of message {mid}, never sent to it")
        if not peer.lane or peer.lane[0].mid != mid or peer.lane[0].part != number:
            return
        waiting = peer.lane[0]
        if self._cap is None or len(waiting.rest) <= self._cap:
            waiting.part = 0
            self._advance(peer)
            return
        part = tuple(waiting.rest)[: self._part]
        for entry in part:
            del waiting.rest[entry]
            self._give_up_hope(*entry, source, mid)
        waiting.parts += part
        waiting.part = number + 1
        self._packets.append((source, _new(Part, ("part", mid, number + 1, part))))

    # -- receive --------------------------------------------------------------

    def receive(self, source: str, packet: Packet) -> None:
        kind = packet.__class__
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

    def _receive_message(self, source: str, message: Packet) -> None:
        _, mid, pid, _, dests, entries = message
        peer = self._peers.get(source)
        delivered = 0 if peer is None else peer.delivered
        if dests and (self.me not in dests or source not in dests):
            raise RemoteProtocolError(f"{source!r} sent a message to {dests!r}, not to {self.me!r}")
        if mid <= delivered:
            self._acks[source] = delivered  # the ack before may have been lost
            return
        if peer is not None and mid in peer.parts:
            needs = self._needs(source, [e for part in peer.parts[mid] for e in part])
            needs += self._needs(source, entries)
        else:
            needs = self._needs(source, entries) if entries else []
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
            return
        if peer is None:
            peer = self._stranger(source)
        if needs:
            self._held.hold(source, message, needs)
        else:
            self._accept(source, peer, message)
            self._settle()

    def _settle(self) -> None:
        """Deliver everything that can be delivered now."""
        for name, message in self._held.take():
            self._accept(name, self._peers[name], message)

    def _needs(self, source: str, entries: Iterable[Entry]) -> list[Need]:
        """What has to be delivered here before a message that lists these entries."""
        needs: list[Need] = []
        me, peers = self.me, self._peers
        for origin, dest, mid in entries:
            if origin == me:
                if mid > self._mid:
                    raise RemoteProtocolError(f"{source!r} lists message {mid}, never sent")
            elif _is_for(me, dest):
                if origin == source:
                    raise RemoteProtocolError(f"{source!r} lists its own message {mid} to {me!r}")
                peer = peers.get(origin)
                if peer is None or peer.delivered < mid:
                    needs.append((origin, mid))
        return needs

    def _accept(self, source: str, peer: AdaptivePeer, message: Packet) -> None:
        """Deliver a message; what it lists joins the past first."""
        _, mid, _, payload, dests, entries = message
        peer.delivered = mid
        if peer.parts:
            for part in peer.parts.pop(mid, ()):
                self._learn(source, part)
        if entries:
            self._learn(source, entries)
        if dests:
            self._past.learn(source, dests, mid, source)
        self._held.delivered(source, mid)
        self._acks[source] = mid
        self._deliver(source, mid, payload)

    def _learn(self, source: str, entries: Entries) -> None:
        me, learn = self.me, self._past.learn
        for origin, dest, mid in entries:
            if origin != me and dest != me:
                learn(origin, dest, mid, source)

    def _receive_part(self, source: str, part: Packet) -> None:
        _, mid, number, entries = part
        peer = self._peers.get(source)
        delivered = 0 if peer is None else peer.delivered
        if mid > delivered and number:
            parts = [] if peer is None else peer.parts.get(mid, [])
            if number > len(parts) + 1 or (number <= len(parts) and parts[number - 1] != entries):
                raise RemoteProtocolError(f"{source!r} sent {part!r} after {len(parts)} parts")
            self._needs(source, entries)
            if number == len(parts) + 1:
                if peer is None:
                    peer = self._stranger(source)
                peer.parts[mid] = [*parts, entries]
        elif peer is None and (not isinstance(source, str) or source in ("", self.me)):
            raise RemoteProtocolError(f"a packet from {source!r}, which is no other process")
        self._packets.append((source, _new(Got, ("got", mid, number))))

    # -- news -----------------------------------------------------------------

    def _acks_came(self, peer: AdaptivePeer) -> None:
        """It has delivered more messages, and what was on its way to it before them."""
        me, name, acked = self.me, peer.name, peer.acked
        self._delivered(me, name, acked, name)
        sent = peer.sent
        while sent:
            mid = next(iter(sent))
            if mid > acked:
                break
            message = sent.pop(mid)
            for entries in (message.parts, message.entries):
                for origin, dest, listed in entries:
                    if dest == name:
                        self._delivered(origin, name, listed, name)
            for origin, dest, listed in message.late:
                self._tell(peer, origin, dest, listed)
            if message.group:
                self._copy_acked(message.group, mid)

    def _copy_acked(self, group: tuple[str, ...], mid: int) -> None:
        """One more member has delivered a multicast."""
        self._copies[mid] -= 1
        if self._copies[mid]:
            return
        del self._copies[mid]
        self._delivered(self.me, group, mid, "")
        if self._open[group] == mid:  # otherwise a later one takes its place everywhere
            del self._open[group]
            for name in group:
                if name != self.me:
                    self._tell(self._peers[name], self.me, group, mid)

    def _delivered(self, origin: str, dest: Dest, mid: int, source: str) -> None:
        """All messages of a pair up to `mid` are delivered; `source` knows."""
        for name, told, telling in self._past.delivered(origin, dest, mid):
            if name != source:
                peer = self._peers[name]
                if telling <= peer.acked:
                    self._tell(peer, origin, dest, told)
                else:
                    peer.sent[telling].late.append((origin, dest, told))
        if self._hoped:
            self._shorten(origin, dest, mid)

    def _shorten(self, origin: str, dest: Dest, mid: int) -> None:
        """Messages in lanes need not list these any more."""
        hoped = self._hoped.get((origin, dest), {})
        keys = [key for key in hoped if key[0] <= mid]
        names = []
        for key in keys:
            listed, name, _ = key
            waiting = hoped.pop(key)
            del waiting.rest[origin, dest, listed]
            if self._peers[name].lane[0] is waiting:
                names.append(name)
        if keys and not hoped:
            del self._hoped[origin, dest]
        for name in names:
            self._advance(self._peers[name])

    def _tell(self, peer: AdaptivePeer, origin: str, dest: Dest, mid: int) -> None:
        """News for a peer."""
        if peer.news.get((origin, dest), 0) < mid:
            peer.news[origin, dest] = mid
        if not peer.unseen:
            self._due[peer.name] = None

    def _receive_news(self, source: str, news: Packet) -> None:
        me = self.me
        if source not in self._peers:
            raise RemoteProtocolError(f"{source!r} sent news, and nothing before")
        for origin, dest, mid in news[2]:
            if origin == me or dest == me:
                raise RemoteProtocolError(f"{source!r} has news of {me!r} for itself")
            if dest.__class__ is tuple and me in dest:
                peer = self._peers.get(origin)
                if peer is None or peer.delivered < mid:
                    raise RemoteProtocolError(
                        f"{me!r} has not delivered message {mid} of {origin!r}"
                    )
        for origin, dest, mid in news[2]:
            self._delivered(origin, dest, mid, source)
        self._packets.append((source, _new(Seen, ("seen", news[1]))))

    def _receive_seen(self, source: str, number: int) -> None:
        peer = self._peers.get(source)
        if peer is None or number > peer.number:
            raise RemoteProtocolError(f"{source!r} has seen news {number}, never sent to it")
        if number == peer.number and peer.unseen:
            peer.unseen = ()
            if peer.news:
                self._due[source] = None

    def _leave_news(self) -> None:
        """Make packets of the news that may leave."""
        for name in self._due:
            peer = self._peers[name]
            peer.unseen = tuple([(*pair, mid) for pair, mid in peer.news.items()])
            peer.news = {}
            peer.number += 1
            self._packets.append((name, _new(News, ("news", peer.number, peer.unseen))))
        self._due = {}

    # -- what the driver takes ------------------------------------------------

    def take_packets(self) -> list[Outgoing]:
        if self._due:
            self._leave_news()
        return super().take_packets()

    def retransmit(self) -> None:
        super().retransmit()
        for name, peer in self._peers.items():
            if peer.unseen:
                self._packets.append((name, _new(News, ("news", peer.number, peer.unseen))))
            if peer.lane and peer.lane[0].part is not None:
                first = peer.lane[0]
                k = first.part
                entries = tuple(first.parts[-self._part :]) if k else ()
                self._packets.append((name, _new(Part, ("part", first.mid, k, entries))))

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

    def _left(self, peer: AdaptivePeer) -> int:
        if not peer.lane:
            return len(peer.mids)
        return bisect_left(peer.mids, peer.lane[0].mid, peer.taken)

    # -- what people ask ------------------------------------------------------

    def blocked(self) -> list[Blocked]:
        here = []
        for name, peer in sorted(self._peers.items()):
            if peer.lane:
                waits = (Wait("ack", name, peer.lane[0].mid),)
                here += [Blocked(self.me, w.mid, name, "sender", waits) for w in peer.lane]
        return here + self._held.blocked(self.me)

    @property
    def idle(self) -> bool:
        telling = any(peer.news or peer.unseen for peer in self._peers.values())
        return not telling and super().idle

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
            (origin, dest, name, mid, telling if telling > self._peers[name].acked else 0)
            for origin, dest, name, mid, telling in past.owed()
        ]
        return (
            super()._state(),
            frozenset(items) if self._cap is None else items,
            frozenset(owed),
            frozenset(past.settled()),
            frozenset(self._open.items()),
            frozenset(self._copies.items()),
            self._held.state(),
        )

    def _copy_into(self, twin: Self) -> None:
        super()._copy_into(twin)
        twin._cap = self._cap
        twin._part = self._part
        twin._groups = self._groups
        twin._past = self._past.copy()
        twin._held = self._held.copy()
        twin._open = self._open.copy()
        twin._copies = self._copies.copy()
        twin._due = self._due.copy()
        twin._hoped = {}
        for name, peer in twin._peers.items():
            for waiting in peer.lane:
                for origin, dest, listed in waiting.rest:
                    hoped = twin._hoped.setdefault((origin, dest), {})
                    hoped[listed, name, waiting.mid] = waiting
