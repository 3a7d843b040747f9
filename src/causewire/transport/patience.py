"""Whose permits may wait for a message to travel with, and who says so.

A permit lets its receiver pass on what it has learned. Whether it has anything to pass on,
the sender of the permit cannot know; only the receiver can. So the receiver says it, with
each ack of the protocol (DELIVERED or PATIENT):

    a process is patient with a peer    if its last `CALM` runs of messages went to that peer,
                                        and no message of it is held back

What such a process sends does not wait for permits of that peer: FIFO has them before it
(`replies_early` of `csps`, and `sps`). A client of one server is patient, and whoever passes
messages on is not, because it sends to somebody else.

    the permit for a patient process    leaves with the next datagram to it, or after `ack_delay`
    any other permit                    leaves at the end of the turn

*Safe*: a permit states what stays true, so it may be late. *Live*: it leaves after
`ack_delay` at the latest, and again if it is lost. *Latency*: a process that ceases to be
patient says so in the same turn, and gets the permit in answer. So a message waits for one
round trip to that peer more at most, once in more than `CALM` runs; processes in a chain do
not wait at all, as they are never patient.
"""

from __future__ import annotations

from .session import Session

__all__ = ["CALM", "Patience"]

CALM = 16
"""Runs of messages to one process, in a row, after which its permits may wait."""


class Patience:
    """Decides with which peer this process is patient, if with any."""

    __slots__ = ("_active", "_peer", "_runs")

    def __init__(self, active: dict[Session, None]) -> None:
        self._active = active
        self._peer: Session | None = None
        """To whom the last messages were released."""
        self._runs = 0
        """How many runs of messages in a row were released to it."""

    def released(self, session: Session) -> None:
        """Note that messages were released to a peer with which this process is not patient."""
        if session is not self._peer:
            self.end()
            self._peer = session
        self._runs += 1
        session.patient = self._runs >= CALM

    def end(self) -> None:
        """Note that permits are needed now, or may be needed soon."""
        peer = self._peer
        self._peer, self._runs = None, 0
        if peer is not None and peer.patient:
            peer.patient = False
            if not peer.over:
                peer.control_due = True
                self._active[peer] = None
