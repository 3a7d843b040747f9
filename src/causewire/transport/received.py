"""Which datagrams have arrived: for acks, and so that none counts twice.

The numbers are kept as ranges. A number that is in one of them is a copy or a
replay; one that is below the lowest range kept is too old to tell, and counts as
a copy too (if it was none, its sender takes it for lost and repeats what was in
it under a new number). So the record stays small however bad the network is.
"""

from __future__ import annotations

__all__ = ["Received"]

MOST = 32
"""Ranges that are kept."""


class Received:
    """The numbers of the datagrams that arrived, in ascending ranges."""

    __slots__ = ("_floor", "ranges")

    def __init__(self) -> None:
        self.ranges: list[list[int]] = []
        self._floor = 0

    @property
    def largest(self) -> int:
        """The highest number so far, or -1."""
        return self.ranges[-1][1] if self.ranges else -1

    def __contains__(self, number: int) -> bool:
        """Whether a datagram is to be taken for a copy."""
        ranges = self.ranges
        if not ranges or number > ranges[-1][1]:
            return number < self._floor
        return number < self._floor or any(low <= number <= high for low, high in ranges)

    def add(self, number: int) -> None:
        """Note the arrival of a number that is not in here."""
        ranges = self.ranges
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
            return
        k = len(ranges)
        while k and ranges[k - 1][0] > number:
            k -= 1
        joins_left = k > 0 and ranges[k - 1][1] == number - 1
        joins_right = k < len(ranges) and ranges[k][0] == number + 1
        if joins_left and joins_right:
            ranges[k - 1][1] = ranges[k][1]
            del ranges[k]
        elif joins_left:
            ranges[k - 1][1] = number
        elif joins_right:
            ranges[k][0] = number
        else:
            ranges.insert(k, [number, number])
            if len(ranges) > MOST:
                del ranges[0]
                self._floor = ranges[0][0]
