"""What is counted during a run, in a space that does not grow with its length.

A copy of a message goes through four states: sent, released, received, delivered.
The tally is called at each step. For each process it keeps the number of copies
between two steps, the maximum of that number, and how long copies stayed there.
"""

from __future__ import annotations

from .process import DELIVERED, RECEIVED, RELEASED, Copy, Process, SimMessage
from .summary import Histogram

__all__ = ["Tally"]


class Tally:
    """Counts and times of one run."""

    __slots__ = (
        "copies",
        "deliveries",
        "duplicates",
        "held_at_receiver",
        "held_at_sender",
        "job_delay",
        "job_start",
        "last_arrival",
        "last_progress",
        "last_work",
        "latency",
        "metadata_bits",
        "metadata_bytes",
        "payload_bytes",
        "refused",
        "retransmissions",
        "to_self",
        "undelivered",
    )

    def __init__(self, by_pair: bool) -> None:
        self.copies = 0
        self.deliveries = 0
        self.duplicates = 0
        self.to_self = 0
        self.retransmissions = 0
        self.refused = 0
        self.payload_bytes = 0
        self.metadata_bytes = 0
        self.metadata_bits = 0
        """Of packets whose metadata varies in size; the others are counted at the end."""
        self.latency = Histogram()
        self.held_at_sender = Histogram()
        self.held_at_receiver = Histogram()
        """Both without those that were not held at all."""
        self.job_start = Histogram()
        self.job_delay = Histogram()
        self.last_arrival = 0
        self.last_progress = 0
        """When something was last sent or delivered."""
        self.last_work = 0
        """When the application last finished something that took time."""
        self.undelivered: dict[tuple[str, str], int] | None = {} if by_pair else None
        """Copies by sender and destination, where faults may strand them."""

    def sent(self, p: Process, to: tuple[str, ...]) -> None:
        """Count a message that p sends to these processes."""
        self.copies += len(to)
        p.waiting += len(to) - (p.name in to)
        if self.undelivered is not None:
            for name in to:
                pair = (p.name, name)
                self.undelivered[pair] = self.undelivered.get(pair, 0) + 1

    def released(self, p: Process, name: str, message: SimMessage, copy: Copy, now: int) -> None:
        """Count a copy that leaves p for the first time."""
        copy.state = RELEASED
        p.waiting -= 1
        if message.sent != now:
            self.held_at_sender.add(now - message.sent)
        p.transit += 1
        if p.transit > p.max_transit:
            p.max_transit = p.transit
        pair = p.pairs[name] = p.pairs.get(name, 0) + 1
        if pair > p.max_pair:
            p.max_pair = pair

    def received(self, p: Process, q: Process, copy: Copy, now: int) -> None:
        """Count a copy from p that arrives at q for the first time."""
        copy.state = RECEIVED
        copy.at = now
        q.buffer += 1
        p.transit -= 1
        pair = p.pairs[q.name] - 1
        if pair:
            p.pairs[q.name] = pair
        else:
            del p.pairs[q.name]

    def delivered(self, p: Process, message: SimMessage, copy: Copy, now: int) -> bool:
        """Count a copy that is delivered at p, and return whether it is the first time."""
        state = copy.state
        if state == DELIVERED:
            self.duplicates += 1
            return False
        copy.state = DELIVERED
        self.last_progress = now
        self.deliveries += 1
        self.latency.add(now - message.sent)
        if state == RECEIVED:
            p.buffer -= 1
            if copy.at != now:
                self.held_at_receiver.add(now - copy.at)
        else:
            self.to_self += 1
        if self.undelivered is not None:
            pair = (message.origin.name, p.name)
            self.undelivered[pair] -= 1
            if not self.undelivered[pair]:
                del self.undelivered[pair]
        return True
