"""NewReno (RFC 9002, section 7): after a loss half, then one datagram more each round trip."""

from __future__ import annotations

from .congestion import CongestionWindow

__all__ = ["NewReno"]


class NewReno(CongestionWindow):
    """Halves the window at a loss, and grows by one datagram a round trip."""

    def _grow(self, size: int, now: float, round_trip: float) -> None:
        self.size += max(1, self.unit * size // self.size)

    def _shrunk(self) -> int:
        return self.size // 2
