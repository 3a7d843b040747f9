"""Mistakes that can be made in `adaptive`, as subclasses; each has a test that catches it.

The first group are those of the prototypes that came before, as far as they can be made
here at all; the second group are new.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from causewire import protocols
from causewire.core import adaptive_past
from causewire.core.adaptive import Adaptive
from causewire.core.adaptive_packets import Dest, Entries, Entry
from causewire.core.adaptive_past import Owed, Past
from causewire.core.adaptive_peer import AdaptivePeer, Waiting
from causewire.core.endpoint import Delivery, Packet
from causewire.core.held import Need


class _WithPast(Adaptive):
    """An endpoint with another kind of past."""

    __slots__ = ()
    past: type[Past]

    def __init__(self, me: str, group: Any = None, **options: Any) -> None:
        super().__init__(me, group, **options)
        if not str(adaptive_past.__file__).endswith(".py"):
            pytest.skip("no class in Python can derive from a compiled `Past`")
        self._past = self.past(me)


class NoHold(Adaptive):
    """The receiver does not wait for what a message lists."""

    __slots__ = ()

    def _needs(self, source: str, entries: Iterable[Entry]) -> list[Need]:
        return []


class NoRelay(Adaptive):
    """What a message lists is not passed on."""

    __slots__ = ()

    def _learn(self, source: str, entries: Entries) -> None:
        pass


class _NoOwn(Past):
    __slots__ = ()

    def unlisted(self, to: str, since: int) -> list[Entry]:
        return [e for e in super().unlisted(to, since) if e[0] != self.me]


class NoOwn(_WithPast):
    """A message does not list earlier messages of its own sender."""

    __slots__ = ()
    past = _NoOwn


class NoSibling(Adaptive):
    """A copy of a multicast does not say that there are others."""

    __slots__ = ()

    def _accept(self, source: str, peer: AdaptivePeer, message: Packet) -> None:
        fields = (*message[:4], (), tuple(e for e in message[5] if e[::2] != (source, message[1])))
        super()._accept(source, peer, tuple.__new__(type(message), fields))


class UpcallFirst(Adaptive):
    """The application gets a message before its list joins the past."""

    __slots__ = ()

    def _accept(self, source: str, peer: AdaptivePeer, message: Packet) -> None:
        callback = self.on_delivery
        if callback is None:
            super()._accept(source, peer, message)
            return
        self.on_delivery = None
        peer.delivered = message[1]
        callback(Delivery(source, message[1], message[3]))
        super()._accept(source, peer, message)
        self._deliveries.clear()
        self.on_delivery = callback


class _ExemptAny(Past):
    __slots__ = ()

    def unlisted(self, to: str, since: int) -> list[Entry]:
        items = dict(self.knowing({}))
        return [e for e in super().unlisted(to, since) if not items[e]]


class ExemptAny(_WithPast):
    """What any process told is taken to be known to all."""

    __slots__ = ()
    past = _ExemptAny


class Newest(Adaptive):
    """A message that waited lists what is known when it leaves, not what was when it was sent."""

    __slots__ = ()

    def _release(self, peer: AdaptivePeer, waiting: Waiting) -> None:
        past = {(origin, dest): mid for origin, dest, mid in self._past}
        for origin, dest, mid in list(waiting.rest):
            newest = past.get((origin, dest), 0)
            if newest > mid:
                self._unindex(origin, dest, mid, peer.name, waiting.mid)
                del waiting.rest[origin, dest, mid]
                waiting.rest[origin, dest, newest] = None
                indexed = self._indexed.setdefault((origin, dest), {})
                indexed[newest, peer.name, waiting.mid] = waiting
        # Also what came for the destination itself since.
        for origin, dest, mid in list(self._past):
            if dest == peer.name and origin != self.me:
                waiting.rest[origin, dest, mid] = None
                indexed = self._indexed.setdefault((origin, dest), {})
                indexed[mid, peer.name, waiting.mid] = waiting
        super()._release(peer, waiting)


class WaitSibling(Adaptive):
    """A message waits for its whole list to be delivered: the copies wait for each other."""

    __slots__ = ()

    def _receive_got(self, source: str, mid: int, number: int) -> None:
        peer = self._peers.get(source)
        if peer is not None and peer.lane and peer.lane[0].mid == mid:
            peer.lane[0].part = 0
            return  # and never sends a part ahead
        super()._receive_got(source, mid, number)


class CoverAny(Adaptive):
    """A waiting message leaves out what was sent to a process that a later message went to."""

    __slots__ = ()

    def _release(self, peer: AdaptivePeer, waiting: Waiting) -> None:
        for entry in list(waiting.rest):
            origin, dest, mid = entry
            later = self._peers.get(dest) if isinstance(dest, str) else None
            if later is None or later is peer or origin == self.me:
                continue
            if later.mids and later.mids[-1] > waiting.mid:
                self._unindex(origin, dest, mid, peer.name, waiting.mid)
                del waiting.rest[entry]
        super()._release(peer, waiting)


class EarlyNews(Adaptive):
    """News leaves before the list that it is about was acked, and may overtake it."""

    __slots__ = ()

    def _delivered(self, origin: str, dest: Dest, mid: int, source: str) -> None:
        for name, known, _ in self._past.delivered(origin, dest, mid):
            if name != source:
                self._report(self._peers[name], origin, dest, known)
        self._shorten(origin, dest, mid)


class AckedOnce(Adaptive):
    """A multicast counts as delivered to its group when the first member has it."""

    __slots__ = ()

    def _copy_acked(self, group: tuple[str, ...], mid: int) -> None:
        if mid in self._copies:
            self._copies[mid] = 1
            super()._copy_acked(group, mid)


class _NewestDone(Past):
    __slots__ = ()

    def delivered(self, origin: str, dest: Dest, mid: int) -> list[Owed]:
        items = self._items.get(dest, {})
        if origin in items:
            mid = max(mid, items[origin].mid)
        return super().delivered(origin, dest, mid)


class NewestDone(_WithPast):
    """News of a message is taken for news of the newest message of its pair."""

    __slots__ = ()
    past = _NewestDone


class PartForgotten(Adaptive):
    """What came in parts ahead of a message does not join the past."""

    __slots__ = ()

    def _accept(self, source: str, peer: AdaptivePeer, message: Packet) -> None:
        peer.parts.pop(message[1], None)
        super()._accept(source, peer, message)


class Overtaking(Adaptive):
    """A message with a short list leaves although others to the same destination wait."""

    __slots__ = ()

    def _post(self, peer: AdaptivePeer, group: tuple[str, ...]) -> bool:
        lane, peer.lane = peer.lane, type(peer.lane)()
        leaves = super()._post(peer, group)
        lane.extend(peer.lane)
        peer.lane = lane
        return leaves


class GroupIsOne(Adaptive):
    """A group entry is believed to concern its first member only."""

    __slots__ = ()

    def _needs(self, source: str, entries: Iterable[Entry]) -> list[Need]:
        return super()._needs(
            source, [(o, d if isinstance(d, str) else next(n for n in d if n != o), x)
                     for o, d, x in entries]
        )  # fmt: skip


class _NotForYou(Past):
    __slots__ = ()

    def unlisted(self, to: str, since: int) -> list[Entry]:
        return [entry for entry in super().unlisted(to, since) if entry[1] != to]


class NotForYou(_WithPast):
    """A message lists what others lack, and not what its destination lacks."""

    __slots__ = ()
    past = _NotForYou


class _Replacing(Past):
    __slots__ = ()

    def unlisted(self, to: str, since: int) -> list[Entry]:
        entries = super().unlisted(to, since)
        items = self._items.get(to, {})
        for origin in [origin for origin in items if origin != self.me]:
            self._unlink(items.pop(origin))
        return entries


class Replacing(_WithPast):
    """A message replaces everything else on its way to its destination (PC2 of `ks`).

    This is safe, and lists are shorter, until a process is forgotten: then nobody waits
    for its message any more, nor for what that message had replaced.
    """

    __slots__ = ()
    past = _Replacing


UNSAFE: dict[str, tuple[type[Adaptive], dict[str, Any]]] = {
    "no_hold": (NoHold, {}),
    "no_relay": (NoRelay, {}),
    "no_own": (NoOwn, {}),
    "no_sibling": (NoSibling, {}),
    "upcall_first": (UpcallFirst, {}),
    "exempt_any": (ExemptAny, {}),
    "cover_any": (CoverAny, {"cap": 1}),
    "acked_once": (AckedOnce, {}),
    "newest_done": (NewestDone, {}),
    "part_forgotten": (PartForgotten, {"cap": 1}),
    "group_is_one": (GroupIsOne, {}),
    "not_for_you": (NotForYou, {}),
}
"""Mutants that violate causal order, and options with which they show."""

STUCK: dict[str, tuple[type[Adaptive], dict[str, Any]]] = {
    "newest": (Newest, {"cap": 0}),
    "wait_sibling": (WaitSibling, {"cap": 1, "groups": 0}),
    "overtaking": (Overtaking, {"cap": 0}),
}
"""Mutants under which a message is never delivered."""

FORGETFUL: dict[str, tuple[type[Adaptive], dict[str, Any]]] = {
    "early_news": (EarlyNews, {}),
}
"""Mutants that are safe and live, and keep for ever what they should drop."""


def mutant(endpoint: type[Adaptive], **options: Any) -> protocols.Protocol:
    """Return a protocol with that endpoint."""
    about = protocols.describe("adaptive")
    return replace(about, name=endpoint.__name__, endpoint=endpoint).with_options(**options)
