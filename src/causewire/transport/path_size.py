"""How long the datagrams of a session may be: a search for what its path carries (RFC 8899).

A datagram that is too long for a link on its way vanishes without a word, however often it is
sent. So a session begins with a length that it may trust, and tries longer ones with *probes*:
datagrams that say nothing and are filled up with zeros. When a probe is acknowledged, its length
is used. A probe that is lost says nothing about congestion, and costs nobody a message.

    base      what every path is expected to carry; it is never less than this
    size      what is used: that of the settings at first, or a probe of this length has arrived
    goal      the longest that is worth trying

**Order.** First the goal, as most paths either carry it or are an Ethernet; then what an Ethernet
carries; then the middle between what is known to pass and what does not. A length counts as too
long when `TRIES` probes of it are lost. The search ends when the difference is below a sixteenth.

**When.** Only while a session has more to send than one datagram holds: a session that does not
need longer datagrams never sends a probe, and there is no timer. One probe is under way at a time.
The window does not count it: so there is at most one in a round trip, and it delays no message.

**Paths change.** If datagrams longer than `base` are found lost again and again, and none of them
arrives in between, the path may not carry them any more, whatever becomes of short ones. After
`UNPROVED` losses if none has ever arrived, and after `PROVED` otherwise, since the peer may be
merely silent, the session goes back to `base`, and the search begins again; if the path is as it
was, the first probe finds the goal. If the search ended below the goal, it begins again after
`AGAIN` seconds. A peer at another host, or one that has come back with its memory, has a new path.
"""

from __future__ import annotations

from .config import TransportConfig

__all__ = ["PathSize", "path_to"]

TRIES = 3
"""Probes of one length that are lost before it counts as too long."""

UNPROVED, PROVED = 2, 6
"""Losses in a row after which long datagrams are given up: before and after one has arrived.
Several that are found lost at once are one loss."""

WORTH = 16
"""A datagram that may be longer by less than this part of its length is not worth a probe."""

ETHERNET = 1472
"""What a datagram holds on an Ethernet: 1,500 bytes less the heads of IPv4 and UDP."""

EVERY_PATH = 1232
"""What a datagram holds on every IPv6 path: 1,280 bytes less the heads of IPv6 and UDP."""

AGAIN = 600.0
"""Seconds after which a search that ended below its goal begins again (RFC 8899, 5.1.1)."""


class PathSize:
    """The length of datagrams on a path, and the search for a longer one."""

    __slots__ = (
        *("_again", "_lost", "_too_long", "_trying", "_vanished", "base", "goal", "proved"),
        *("since", "size"),
    )

    def __init__(self, base: int, first: int, goal: int, since: float = 0.0) -> None:
        self.base = base
        self.size = first
        self.goal = goal
        self.since = since
        """When the path was taken: datagrams that were sent before say nothing about it."""
        self.proved = False
        """Whether any datagram longer than the base has arrived."""
        self._trying = 0
        """The length of the probe that is under way, or 0."""
        self._vanished = 0
        """Losses of long datagrams since one has arrived."""
        self._restart()

    def _restart(self) -> None:
        self._too_long = self.goal + 1
        """The shortest length that is believed not to pass."""
        self._lost = -1 if self._trying else 0
        """Probes of the length to be tried that were lost; one of the former search is not."""
        self._again = 0.0
        """When a search that has ended begins again."""

    def probe(self, now: float) -> int:
        """Return the length of the probe that has to be sent now, or 0.

        The caller reports what becomes of it: `arrived` or `lost`.
        """
        if self._trying or self.size >= self.goal:
            return 0
        if (self._too_long - self.size) * WORTH <= self.size:
            if now < self._again:
                return 0
            if self._again:
                self._restart()
            else:
                self._again = now + AGAIN
                return 0
        self._trying = self._next()
        return self._trying

    def _next(self) -> int:
        if self._too_long > self.goal:
            return self.goal
        if self.size < ETHERNET < self._too_long:
            return ETHERNET
        return (self.size + self._too_long) // 2

    def arrived(self, length: int, probe: bool) -> None:
        """Note that a datagram has arrived that is longer than the base."""
        self.proved = True
        self._vanished = 0
        if not probe:
            return
        self._trying = self._lost = 0
        if self.size < length <= self.goal:
            self.size = length
            self._too_long = max(self._too_long, length + 1)

    def lost(self, length: int) -> None:
        """Note that a probe of this length was lost."""
        self._trying = 0
        self._lost += 1
        if self._lost >= TRIES:
            self._lost = 0
            if length > self.size:
                self._too_long = length

    def vanished(self) -> bool:
        """Note that datagrams longer than the base were found lost.

        Returns whether to go back to the base, and to search again.
        """
        self._vanished += 1
        if self._vanished < (PROVED if self.proved else UNPROVED) or self.size == self.base:
            return False
        self._vanished = 0
        self.size = self.base
        self._restart()
        return True


def path_to(config: TransportConfig, host: str, most: int, now: float = 0.0) -> PathSize:
    """Return what is known of the path to an address whose process accepts `most` bytes.

    The base is the same for all addresses: a part of a message fits wherever the peer moves.
    """
    first, goal = config.datagrams_to(host)
    base = min(EVERY_PATH, config.datagram, config.local_datagram, most)
    return PathSize(base, min(first, most), min(goal, most), now)
