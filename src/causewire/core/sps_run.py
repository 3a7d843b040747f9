"""`SpsRun`: messages that `sps` keeps, releases and permits as one.

Both of the lines with which `sps` decides what may leave, and what is permitted, can be
decided for many messages at once (see `departure`). Messages that are causal-sent one after
the other, while the driver takes nothing and no flagged message is delivered, have the same
per(m). They form a *run*, and what the first line says of one message of a run to j, it says
of all: the run leaves entirely, or to j alone. So m1 and m2 are indexes of runs. A run
leaves to one process alone at most once: m2 passes it while some process has the oldest
missing permit; when another process has it, p.first has reached the p2 of before, and per(m)
with it, so that the run leaves entirely. Therefore a run needs to remember only that one
process (`left`).

A run in u stands for its messages as follows. They are acked by all if each receiver has
acked the last of them to it (`ends`), as acks are watermarks; so u.first passes the run as
a whole if nobody is left in `lacking`, the receivers that have not. They lack nobody but j
if nobody but j is in `lacking`, and u2 passes the run as a whole then. Only if this is not
so, the two indexes pass single messages of the run, and stop at the message that stops them.
Both stop in at most one run each, and `lacking` is maintained for these two. So it takes
one step for each message or less, and one for each receiver of a run and index.

A run is closed, that is, put into u, when it may have to be looked at: when the driver
takes what leaves, or before something is sent that is not part of it. What is not closed
has not left, so no ack of it can come, and a permit that comes in between is taken into
account when it is closed. A run that may leave at once and has few messages enters u as
single messages, which are looked at faster than a run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

from .departure import GONE, Departure, replace_gone
from .hybrid import HybridPeer

__all__ = ["SpsPeer", "SpsRun"]


class SpsPeer(HybridPeer):
    """A receiver; the last messages in its columns may not have left."""

    __slots__ = ("released",)

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.released = 0
        """All messages to it before this number have left."""

    def copy(self) -> Self:
        """Return an independent copy."""
        twin = super().copy()
        twin.released = self.released
        return twin


class SpsRun(Departure):
    """Messages in u that wait for the same permits, or left together; or one multicast."""

    __slots__ = ("held", "lacking", "left", "per", "whole")

    def __init__(
        self, mid: int, peers: list[Any], multicast: bool, ends: dict[Any, int], per: int
    ) -> None:
        super().__init__(mid, peers, multicast, ends)
        self.per = per
        """Index of the next permit when the messages were causal-sent."""
        self.held = False
        """Whether it has not left entirely."""
        self.left: SpsPeer | None = None
        """If it is held: the only receiver to which it has left."""
        self.lacking: dict[SpsPeer, int] | None = None
        """The receivers that have not acked their last message, if u.first or u2 is here."""
        self.whole = True
        """Whether no receiver was forgotten."""

    def unsent(self) -> list[SpsPeer]:
        """Return the receiver of each copy that has not left."""
        left = self.left
        return [peer for peer in self.peers if peer is not left and peer is not GONE]

    def unsent_messages(self) -> Iterator[tuple[int, tuple[str, ...]]]:
        """Yield the number of each message that has not left, and to whom it has not."""
        if self.multicast:
            names = tuple([peer.name for peer in self.unsent()])
            if names:
                yield self.mid, names
            return
        for mid, peer in enumerate(self.peers, self.mid):
            if peer is not self.left and peer is not GONE:
                yield mid, (peer.name,)

    def lack(self) -> dict[SpsPeer, int]:
        """Determine the receivers that have not acked the last message to them."""
        self.lacking = {peer: end for peer, end in self.ends.items() if peer.acked < end}
        return self.lacking

    def pass_inside(self, lacks: SpsPeer, mid: int) -> tuple[int, int]:
        """Move u2 on from message `mid`, to the first message that lacks another than `lacks`.

        Returns:
            The last message to `lacks` on the way, or 0; and where u2 stops.
        """
        own = 0
        if not self.multicast:
            peers = self.peers
            k = mid - self.mid
            peer = peers[k]
            while peer is lacks or peer.acked >= mid:
                if peer is lacks:
                    own = mid
                k += 1
                mid += 1
                peer = peers[k]
        return own, mid

    def forget(self, gone: SpsPeer) -> None:
        """Go on without a receiver."""
        replace_gone(self.peers, gone, self.multicast)
        self.ends.pop(gone, None)
        self.whole = False
        if self.lacking is not None:
            self.lacking.pop(gone, None)

    def copy(self, peers: dict[str, SpsPeer]) -> SpsRun:
        """Return an independent copy with the records of another endpoint."""
        names = [peers.get(peer.name, GONE) for peer in self.peers]
        ends = {peers[peer.name]: end for peer, end in self.ends.items()}
        twin = SpsRun(self.mid, names, self.multicast, ends, self.per)
        twin.held, twin.whole = self.held, self.whole
        twin.left = self.left and peers.get(self.left.name)
        if self.lacking is not None:
            twin.lacking = {peers[peer.name]: end for peer, end in self.lacking.items()}
        return twin
