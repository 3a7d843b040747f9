"""The summary of a run: counts, and times in a fixed amount of space.

Counts, means and maxima are exact. Percentiles come from a histogram whose
buckets grow with the value, `Histogram.ERROR` wide relative to it: a percentile
is at most that much above the exact one, and never below. No run, however long,
takes more space than that.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from math import ceil
from typing import Any

__all__ = ["Histogram", "Summary", "Times", "Undelivered"]

_BITS = 7


class Histogram:
    """Nanoseconds, counted in buckets: exact below 256, then 128 for each doubling."""

    ERROR = 1 / 2**_BITS

    __slots__ = ("_counts", "_most", "_total", "count")

    def __init__(self) -> None:
        self._counts = [0] * ((64 - _BITS) << _BITS)
        self.count = 0
        self._total = 0
        self._most = 0

    def add(self, value: int) -> None:
        """Count a value."""
        shift = value.bit_length() - _BITS - 1
        self._counts[(shift << _BITS) + (value >> shift) if shift > 0 else value] += 1
        self.count += 1
        self._total += value
        if value > self._most:
            self._most = value

    def percentile(self, share: float) -> int:
        """Return a value that is not exceeded by at least that share of the values."""
        rank = max(1, ceil(share * self.count))
        for bucket, count in enumerate(self._counts):
            rank -= count
            if rank <= 0 and count:
                shift = (bucket >> _BITS) - 1
                if shift <= 0:
                    return min(bucket, self._most)
                low = (bucket - (shift << _BITS)) << shift
                return min(low + (1 << shift) - 1, self._most)
        return 0

    def times(self, number: int | None = None) -> Times:
        """Return the statistics, with zeros added to make `number` values."""
        if number is not None:
            self._counts[0] += number - self.count
            self.count = number
        return Times(
            count=self.count,
            mean_ns=self._total / self.count if self.count else 0.0,
            p50_ns=self.percentile(0.50),
            p99_ns=self.percentile(0.99),
            max_ns=self._most,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Statistics of durations; exact, except for the percentiles (`Histogram.ERROR`)."""

    count: int
    mean_ns: float
    p50_ns: int
    p99_ns: int
    max_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Undelivered:
    """Copies of messages that were never delivered, and the reason.

    `unavoidable`: no protocol of this kind could have delivered them, for the
    `reasons` given. Otherwise the protocol failed, and the reasons tell what it
    was waiting for.
    """

    copies: int
    unavoidable: bool
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One run in numbers.

    `copies` counts each destination of each message. Times held, latencies and
    buffers are about copies, too.
    """

    protocol: str
    workload: str
    processes: int
    seed: int
    fifo_channels: bool
    """Whether the network kept each link in order."""

    messages: int
    copies: int
    deliveries: int
    duplicates: int
    """Deliveries of what had been delivered there before."""
    undelivered: Undelivered | None
    """None if everything arrived."""

    simulated_ns: int
    """When the last packet arrived: all communication of the protocol is over."""
    execution_ns: int
    """When the application was done: its last send, delivery, handling or job."""
    events: int
    """Events of the event loop."""

    packets: dict[str, int]
    """Packets put on the network, by kind, repeated ones included."""
    retransmissions: int
    """Packets with messages that were sent once more."""
    lost: int
    duplicated: int
    """Packets that the network lost, and packets that it duplicated."""
    refused: int
    """Packets that an endpoint refused, on a network worse than it claims to tolerate."""
    payload_bytes: int
    metadata_bytes: int
    """Bytes of packets apart from payloads: heads, integers, identifiers and flags."""
    metadata_bits: int
    """Bits of integers, identifiers and flags alone, without heads and rounding."""
    control_per_message: float
    """Packets without a message, for each message."""

    latency: Times
    """From causal send to delivery."""
    held_at_sender: Times
    """From causal send to release."""
    held_at_receiver: Times
    """From arrival to delivery."""
    max_in_transit: int
    """The maximum number of copies of one sender that were released and had not arrived."""
    max_in_transit_per_pair: int
    max_send_buffer: int
    """The maximum number of copies at one process that were sent and not released."""
    max_receive_buffer: int
    """The maximum number of copies at one process that had arrived and were not delivered."""

    jobs: int
    job_start: Times
    """When jobs began, from the start of the run."""
    job_delay: Times
    """From the causal send of a message to the start of its job."""

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as plain values, ready for JSON."""
        return dataclasses.asdict(self)
