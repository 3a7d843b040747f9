"""What one datagram says, as values: `frames` reads and writes them."""

from __future__ import annotations

from typing import NamedTuple

from ..core.run import MessageRun

__all__ = ["Contents", "Piece"]


class Piece(NamedTuple):
    """Part `part` of the `parts` of a message that is too long for a datagram, or withdrawn."""

    mid: int
    pid: int
    per: bool
    part: int
    parts: int
    data: bytes | memoryview
    withdrawn: bool = False


class Contents:
    """All that one datagram says; an attribute that it does not mention has its default."""

    acked: list[tuple[int, int]] | None = None
    """Ranges of datagrams that arrived, the highest first."""
    delivered: int = 0
    """Your messages up to this one have been delivered (an ack of the protocol)."""
    patient: bool = False
    """Whether your permits may wait for a message to travel with (`patience`)."""
    permit: int = 0
    """My messages up to this one are permitted."""
    runs: list[MessageRun]
    pieces: list[Piece]
    eliciting: bool = False
    """Whether the arrival of this datagram is to be acknowledged."""
    rare: bool = False
    """Whether any of the following is set."""
    clock: int = 0
    """The sender's Lamport time, if it writes a trace."""
    obituaries: list[tuple[str, int]] = []
    """Processes of which all incarnations below a number are gone (see `peers.LEFT`)."""
    why: bool = False
    """The sender misses permits, and asks which processes they wait for."""
    because: list[str] | None = None
    """The answer to that."""
    bye: bool = False
    """The sender closes down."""
    challenge: bytes = b""
    """Bytes to be sent back to where they came from."""
    response: bytes = b""
    """The answer to that."""
    handled: list[tuple[int, int]] = []
    """Ranges of your messages that the application here has handled."""
    control: list[tuple[int, bytes]] = []
    """Parts of the stream of control packets: their offsets and bytes."""
