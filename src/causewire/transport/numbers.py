"""Which numbers of incarnations are believed.

A number is made of a clock, so that it is higher for each start. A number that is more than a day
ahead of what this process would choose itself is not believed when others are buried with it:
otherwise one member that lies could ban a name for ever.

**A clock that was set back.** A process that starts and hears from its peers that they have known
a higher number of its own name takes a number above that, however far ahead it is: the clock
here may be wrong by years. It waits a second for the word of all peers, and goes above the
*lowest* of the numbers that are far ahead. So a liar is not believed as long as there is anybody
else: those who tell the truth accept the process by then, and it takes no other number any more.
A liar that is all alone with a process can make it use a high number. Others accept that one.
"""

from __future__ import annotations

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

    def believable(self, number: int, mine: int, now: float) -> bool:
        """Return whether some process can really have used a number by now.

        Args:
            number: The number.
            mine: The number of this process.
            now: The time.
        """
        if self._first is None:
            self._first = now
        elapsed = int(1000 * max(0.0, now - self._first))
        return number <= mine + ((elapsed + PLAUSIBLE) << 20)

    def claimed(self, number: int, informant: str, now: float) -> int:
        """Note what a peer claims to know of this process, which nobody has accepted yet.

        Args:
            number: The number, which is far ahead.
            informant: The peer.
            now: The time.

        Returns:
            The number that this process has to go above, or 0 if it should wait for others.
        """
        if number > HIGHEST:
            return 0
        if not self._claims:
            self._since = now
        self._claims[informant] = number
        if now < self._since + PATIENCE:
            return 0
        lowest = min(self._claims.values())
        self._claims.clear()  # others may accept the next number, which takes a moment
        return lowest
