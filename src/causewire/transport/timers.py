"""One timer for each peer, all in one heap.

A timer that is moved forward is put into the heap again; the entry that it leaves behind
is skipped when its time comes. One that would be moved back is left as it is: when it
fires too early, there is nothing to do, and it is armed again. So a peer with which all
goes well costs the heap next to nothing.

A timer must move forward: after a peer has been served at some time, its next time is
later. Otherwise a driver would serve it again and again and do nothing else. `again`
enforces this: it moves such a timer forward by `STEP` and logs an error, or raises an
`AssertionError` if `STRICT` is set, as it is in tests.
"""

from __future__ import annotations

import logging
from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .identity import Peer

__all__ = ["Timers"]

STEP = 0.5
"""Seconds by which a timer is moved forward that did not move by itself."""

STRICT = False
"""Whether a timer that does not move forward is an error that is raised."""

_log = logging.getLogger("causewire.timers")


class Timers:
    """Peers, by the time at which they have to be served."""

    __slots__ = ("_heap", "_number")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Peer]] = []
        self._number = 0
        """Breaks ties: of two peers for the same time, the first comes first."""

    def arm(self, peer: Peer, when: float) -> None:
        """Have a peer served at that time or before."""
        if peer.armed is None or when < peer.armed:
            peer.armed = when
            self._number += 1
            heappush(self._heap, (when, self._number, peer))

    def again(self, peer: Peer, when: float, now: float) -> None:
        """Arm the timer of a peer that has just been served at the time `now`."""
        if when <= now:
            if STRICT:
                raise AssertionError(f"the timer of {peer.name!r} does not move forward: {when}")
            _log.error("the timer of peer %r does not move forward; skipped", peer.name)
            when = now + STEP
        self.arm(peer, when)

    @property
    def first(self) -> float | None:
        """The earliest time, if there is any."""
        return self._heap[0][0] if self._heap else None

    def due(self, now: float) -> list[Peer]:
        """Remove and return the peers whose time has come, in the order of their times."""
        heap = self._heap
        due: list[Peer] = []
        while heap and heap[0][0] <= now:
            when, _, peer = heappop(heap)
            if when == peer.armed:
                peer.armed = None
                due.append(peer)
        return due
