"""When to look after which peer: one timer for each, all in one heap.

A timer that is moved forward is put into the heap again; the entry that it leaves
behind is passed over when its time comes. One that would be moved back is left as
it is: whoever looks too early sees that there is nothing to do, and arms it anew.
So a peer with which all goes well costs the heap next to nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .peers import Peer

__all__ = ["Timers"]


class Timers:
    """Peers, by when they are to be looked after."""

    __slots__ = ("_heap", "_number")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Peer]] = []
        self._number = 0
        """Peers are not compared: of two for the same time, the first comes first."""

    def arm(self, peer: Peer, when: float) -> None:
        """Look after this peer at that time, or before."""
        if peer.armed is None or when < peer.armed:
            peer.armed = when
            self._number += 1
            heappush(self._heap, (when, self._number, peer))

    @property
    def first(self) -> float | None:
        """When the first time is over, if there is any."""
        return self._heap[0][0] if self._heap else None

    def due(self, now: float) -> Iterator[Peer]:
        """Those whose time is over, one after the other; they may be armed meanwhile."""
        heap = self._heap
        while heap and heap[0][0] <= now:
            when, _, peer = heappop(heap)
            if when == peer.armed:
                peer.armed = None
                yield peer
