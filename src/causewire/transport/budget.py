"""The size budget of a datagram.

Every frame enters a datagram through a `Budget`, which knows how much room is left and
lets nothing in that would make the datagram longer than its receiver accepts. No other
module adds up sizes of frames.
"""

from __future__ import annotations

__all__ = ["Budget"]


class Budget:
    """The frames of one datagram, and the bytes that are left for more."""

    __slots__ = ("frames", "left")

    def __init__(self, size: int) -> None:
        self.frames: list[bytes] = []
        self.left = size
        """Bytes that may still be added."""

    def put(self, frame: bytes) -> None:
        """Add a frame.

        Raises:
            OverflowError: The frame does not fit; the caller did not look at `left`.
        """
        left = self.left - len(frame)
        if left < 0:
            raise OverflowError(f"a frame of {len(frame)} bytes, but {self.left} are left")
        self.left = left
        self.frames.append(frame)

    def offer(self, frame: bytes) -> bool:
        """Add a frame if it fits, and return whether it did."""
        left = self.left - len(frame)
        if left < 0:
            return False
        self.left = left
        self.frames.append(frame)
        return True
