"""Which datagrams have arrived: for acks, and so that none counts twice.

The numbers are kept as ranges. A number that is in one of them is a duplicate or a replay.
A number below the lowest range that is kept counts as a duplicate as well; if it was not,
its sender considers it lost and sends its contents again under a new number. So the record
stays small however bad the network is.
"""

from __future__ import annotations

__all__ = ["Received"]

MOST = 32
"""The most ranges that are kept."""


class Received:
    """The numbers of the datagrams that arrived, in ascending ranges."""

    __slots__ = ("_floor", "largest", "ranges")

    def __init__(self) -> None:
        self.ranges: list[list[int]] = []
        self.largest = -1
        """The highest number that arrived, or -1."""
        self._floor = 0

    def __contains__(self, number: int) -> bool:
        """Return whether a datagram counts as a duplicate."""
        if number > self.largest:
            return False
        return number < self._floor or any(low <= number <= high for low, high in self.ranges)

    def add(self, number: int) -> None:
        """Record the arrival of a datagram that does not count as a duplicate."""
        ranges = self.ranges
        if ranges and number == self.largest + 1:
            ranges[-1][1] = self.largest = number
            return
        self.largest = max(self.largest, number)
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
