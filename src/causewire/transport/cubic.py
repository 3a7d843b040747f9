"""CUBIC (RFC 9438): how fast a window grows again depends on time, not on round trips.

After a loss the window is 0.7 of what it was. It then follows a cubic function of the time
since the loss, which is steep at first, flat around the size at which the loss happened
(`_most`), and steep again beyond it. So a lost datagram costs little over a long distance,
where NewReno takes half a minute to be as fast as before. Where NewReno would be faster, over
short distances, the window is what NewReno's would be (`_reno`, section 4.3 of the RFC).

Sizes in the formulas are in datagrams, as in the RFC.
"""

from __future__ import annotations

from .congestion import CongestionWindow

__all__ = ["Cubic"]

C = 0.4
"""How steep the function is, in datagrams per second cubed."""
BETA = 0.7
"""What is left of the window after a loss."""
ALPHA = 3 * (1 - BETA) / (1 + BETA)
"""By how many datagrams NewReno would have to grow each round trip, with this `BETA`."""


class Cubic(CongestionWindow):
    """Shrinks the window to 0.7 at a loss, and grows by a cubic function of time."""

    def __init__(self, unit: int) -> None:
        super().__init__(unit)
        self._most = 0.0
        """The size at which the last loss happened."""
        self._began: float | None = None
        """When the window began to grow again after the last loss."""
        self._until_most = 0.0
        """After how many seconds it reaches `_most` again."""
        self._reno = 0.0
        """How large the window of NewReno would be."""

    def use(self, unit: int) -> None:
        """Note that full datagrams have another size now; growth begins anew."""
        self._most *= self.unit / unit
        self._began = None
        super().use(unit)

    def _grow(self, size: int, now: float, round_trip: float) -> None:
        window = self.size / self.unit
        if self._began is None:
            self._began = now
            self._reno = window
            self._most = max(self._most, window)
            self._until_most = ((self._most - window) / C) ** (1 / 3)
        arrived = size / self.unit
        self._reno += ALPHA * arrived / window
        when = now - self._began - self._until_most
        if C * when**3 + self._most < self._reno:
            window = max(window, self._reno)
        else:
            target = C * (when + round_trip) ** 3 + self._most
            target = min(max(target, window), 1.5 * window)
            window += arrived * (target - window) / window
        self.size = max(self.size, int(window * self.unit))

    def _shrunk(self) -> int:
        window = self.size / self.unit
        # Others need room if it shrinks before it has reached its former size (section 4.7).
        self._most = window * (1 + BETA) / 2 if window < self._most else window
        self._began = None
        return int(BETA * self.size)
