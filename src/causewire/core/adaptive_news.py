"""The part of `adaptive` that keeps lists short: what acks and news say, and who gets news.

The rules are in `adaptive`. Neither safety nor liveness depends on anything here, except
that news must be true.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Self

from .adaptive_packets import UNMET, Dest, Entries, News, Seen, is_alias
from .adaptive_past import Past
from .adaptive_peer import AdaptivePeer
from .endpoint import Outgoing, Packet, RemoteProtocolError
from .fifo import FifoEndpoint

__all__ = ["ReportingEndpoint"]

_new = tuple.__new__


class ReportingEndpoint(FifoEndpoint[AdaptivePeer]):
    """FIFO channels, the undelivered past, and news about what was delivered."""

    __slots__ = ("_copies", "_due", "_open", "_past")

    def __init__(self, me: str, group: Iterable[str] | None = None) -> None:
        super().__init__(me)
        self._past = Past(me)
        self._open: dict[tuple[str, ...], int] = {}
        """Groups to which multicasts are on their way from here, and the last of each."""
        self._copies: dict[int, int] = {}
        """The number of copies of each of these multicasts that are not acked."""
        self._due: dict[str, None] = {}
        """Peers to which news may leave."""

    def _peer(self, name: str) -> AdaptivePeer:
        self._refuse_forgotten((name,))
        peer = self._peers[name] = AdaptivePeer(name)
        return peer

    @abstractmethod
    def _shorten(self, origin: str, dest: Dest, mid: int) -> None:
        """Take the messages of a pair up to `mid` off the lists of waiting messages."""

    @abstractmethod
    def _unmet_over(self, origin: str, mid: int) -> None:
        """Messages of a process to aliases, up to `mid`, are delivered or do not come."""

    def _acks_came(self, peer: AdaptivePeer) -> None:
        """It has delivered more messages, and what was on its way to it before them."""
        me, name, acked = self.me, peer.name, peer.acked
        self._delivered(me, name, acked, name)
        if peer.alias is not None:
            alias, last = peer.alias
            self._delivered(me, alias, min(acked, last), name)
            if acked >= last:
                peer.alias = None
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
                self._report(peer, origin, dest, listed)
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
                if name in self._peers:  # not this process, nor one that is gone
                    self._report(self._peers[name], self.me, group, mid)

    def _delivered(self, origin: str, dest: Dest, mid: int, source: str) -> None:
        """All messages of a pair up to `mid` are delivered; `source` knows that."""
        for name, known, listing in self._past.delivered(origin, dest, mid):
            if name != source:
                peer = self._peers[name]
                if listing <= peer.acked:
                    self._report(peer, origin, dest, known)
                else:
                    message = peer.sent.get(listing) or peer.lane[0]
                    message.late.append((origin, dest, known))
                    if is_alias(dest):  # the peer may wait for just this: see `adaptive_aliases`
                        self._report(peer, origin, dest, known)
        self._shorten(origin, dest, mid)

    def _report(self, peer: AdaptivePeer, origin: str, dest: Dest, mid: int) -> None:
        """Let a peer know that the messages of a pair up to `mid` are delivered."""
        if peer.news.get((origin, dest), 0) < mid:
            peer.news[origin, dest] = mid
        if not peer.unseen:
            self._due[peer.name] = None

    def _receive_news(self, source: str, news: Packet) -> None:
        me = self.me
        if source not in self._peers:
            raise RemoteProtocolError(f"{source!r} sent news, and nothing before")
        entries = self._of_the_living(news[2])
        for origin, dest, mid in entries:
            if dest == UNMET:
                if origin != source:
                    raise RemoteProtocolError(f"{source!r} cannot know what {origin!r} has met")
            elif origin == me:  # listed to an alias of this process: see `adaptive_aliases`
                if mid > self._mid:
                    raise RemoteProtocolError(f"{source!r} has news of message {mid}, never sent")
            elif dest == me or (dest.__class__ is tuple and me in dest):
                peer = self._peers.get(origin)
                if peer is None or peer.delivered < mid:
                    raise RemoteProtocolError(
                        f"{me!r} has not delivered message {mid} of {origin!r}"
                    )
        for origin, dest, mid in entries:
            if dest == UNMET:
                self._unmet_over(origin, mid)
            elif me not in (origin, dest):
                self._delivered(origin, dest, mid, source)
        self._packets.append((source, _new(Seen, ("seen", news[1]))))

    def _of_the_living(self, entries: Entries) -> Entries:
        """Return the entries about messages between processes that are not forgotten."""
        gone = self._forgotten
        if not gone:
            return entries
        return tuple([entry for entry in entries if gone.isdisjoint(entry[:2])])

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

    # -- when a process is gone -----------------------------------------------

    def _forget(self, peer: str) -> tuple[int, ...]:
        self._past.forget(peer)
        return self._drop_record(peer)

    def _drop_record(self, peer: str) -> tuple[int, ...]:
        """Drop what is kept for a peer; what was sent to it counts as delivered."""
        record = self._peers.get(peer)
        failed = super()._forget(peer)
        self._due.pop(peer, None)
        if record is not None:
            if record.alias is not None:
                self._delivered(self.me, *record.alias, peer)
            waiting = [(message.mid, message.group) for message in record.lane]
            sent = [(mid, message.group) for mid, message in record.sent.items()]
            for mid, group in sent + waiting:
                if group:
                    self._copy_acked(group, mid)
        return failed

    # -- what the driver takes ------------------------------------------------

    def take_packets(self) -> list[Outgoing]:
        if self._due:
            self._leave_news()
        return super().take_packets()

    def take_control(self) -> list[Outgoing]:
        """Return the packets that are neither messages nor acks, each once."""
        if self._due:
            self._leave_news()
        packets, self._packets = self._packets, []
        return packets

    def retransmit(self) -> None:
        super().retransmit()
        for peer in self._peers.values():
            self._repeat(peer)

    def _repeat(self, peer: AdaptivePeer) -> None:
        """Send again what a peer has not confirmed, apart from messages."""
        if peer.unseen:
            self._packets.append((peer.name, _new(News, ("news", peer.number, peer.unseen))))

    def repeat_control(self, names: Iterable[str]) -> None:
        """Send some peers again what they have not confirmed, apart from messages.

        What else was on its way to them is lost. They repeat in turn what they want confirmed.
        """
        again = set(names)
        self._packets = [outgoing for outgoing in self._packets if outgoing[0] not in again]
        for name, peer in self._peers.items():
            if name in again:
                self._repeat(peer)

    @property
    def has_control(self) -> bool:
        """Whether `take_control` would return anything."""
        return bool(self._due or self._packets)

    @property
    def idle(self) -> bool:
        reporting = any(peer.news or peer.unseen for peer in self._peers.values())
        return not reporting and super().idle

    def _copy_into(self, twin: Self) -> None:
        super()._copy_into(twin)
        twin._past = self._past.copy()
        twin._open = self._open.copy()
        twin._copies = self._copies.copy()
        twin._due = self._due.copy()
