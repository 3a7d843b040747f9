"""Which numbers of incarnations are believed.

A number is made of a clock, so that it is higher for each start. A number that is more than a day
ahead of what this process would choose itself, and of what all of its peers but one have chosen,
is not believed when somebody is buried with it: otherwise one member that lies could ban a name
for ever. If this process has one peer only, that one's choice counts.

**A clock that was set back.** A process that starts and hears from its peers that they have known
a higher number of its own name takes a number above that, however far ahead it is: the clock
here may be wrong by years. It waits a second for the word of all peers, and goes above the
*lowest* of the numbers that are far ahead. So a liar is not believed as long as there is anybody
else: those who tell the truth accept the process by then, and it takes no other number any more.
A liar that is all alone with a process can make it use a high number. Others accept that one.

The first to accept a number that is far too low may be somebody who has just started as well, and
knows nothing, or whose number is as low. The others never do. Such a process hears from them that
it is not accepted, and believes that if two of them say so, or if it has no peer any more.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import nlargest

__all__ = ["PLAUSIBLE", "Numbers"]

PLAUSIBLE = 86_400_000
"""How many milliseconds a number may be ahead of what this process would choose itself."""

PATIENCE = 1.0
"""How many seconds a process waits for the word of other peers."""

HIGHEST = (1 << 63) - (1 << 40)
"""The highest number that a process goes above: a million more are left then."""


class Numbers:
    """What one process believes about numbers of incarnations."""

    def __init__(self) -> None:
        self._first: float | None = None
        """The first time that this process knows of."""
        self._claims: dict[str, int] = {}
        """The numbers that are far ahead and that peers claim to know, by peer."""
        self._since = 0.0
        """When the first of these arrived."""

    def believable(self, number: int, mine: int, met: Iterable[int], now: float) -> bool:
        """Return whether some process can really have used a number by now.

        Args:
            number: The number.
            mine: The number of this process.
            met: Those of its peers.
            now: The time.
        """
        if self._first is None:
            self._first = now
        elapsed = int(1000 * max(0.0, now - self._first))
        ahead = (elapsed + PLAUSIBLE) << 20
        return number <= mine + ahead or number <= min(nlargest(2, met), default=0) + ahead

    def claimed(self, number: int, informant: str, alone: bool, now: float) -> int:
        """Note what a peer claims to know of this process, which nobody accepts.

        Args:
            number: The number, which is far ahead.
            informant: The peer.
            alone: Whether no peer accepts this process.
            now: The time.

        Returns:
            The number that this process has to go above, or 0 if it should wait for others.
        """
        if number > HIGHEST:
            return 0
        if not self._claims:
            self._since = now
        self._claims[informant] = number
        if now < self._since + PATIENCE or (not alone and len(self._claims) < 2):
            return 0
        lowest = min(self._claims.values())
        self._claims.clear()  # others may accept the next number, which takes a moment
        return lowest
