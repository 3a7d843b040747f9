"""Which datagrams are lost, how long a round trip takes, how much may be under way.

For one session. Datagrams are numbered and never repeated: what was in a lost one
travels again under a new number, so an ack always tells which sending it is about,
and every ack is a good measurement (Karn's problem does not arise).

**Round-trip time** as in RFC 6298: SRTT and RTTVAR with gains 1/8 and 1/4, timeout
RTO = SRTT + 4 RTTVAR, doubled at each expiry. Its lower bound of a second is for
an Internet of 1988 and too long for a local network: ours is a setting, as is the
upper bound. An expiry costs one datagram, however much is under way; a peer that
is gone costs one small datagram per `longest` timeout.

**Evidence of loss** as in RFC 9002, section 6: a later datagram was acknowledged,
and it was sent three numbers later, or 9/8 of a round trip ago. A network that
reorders, or a machine that is busy, makes us believe in losses that were none; the
ack that comes after all shows it: the distance of three doubles, and the window is
what it was before (RFC 4015).

**Congestion** as in RFC 9002, section 7 (NewReno): the window doubles each round
trip until something is lost, then halves, then grows by one datagram a round trip.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .varint import MalformedError

__all__ = ["Recovery", "RoundTrip", "Sent", "Window"]


GRANULARITY = 0.001
"""Shorter times than this are not told apart."""


class RoundTrip:
    """RFC 6298."""

    __slots__ = ("_least", "_most", "backoff", "latest", "smoothed", "variation")

    def __init__(self, initial: float, least: float, most: float) -> None:
        self.smoothed = initial / 2
        self.variation = initial / 8
        self.latest = 0.0
        """The last measurement; 0 if there is none."""
        self.backoff = 0
        """Expiries in a row."""
        self._least = least
        self._most = most

    def measured(self, seconds: float) -> None:
        if self.latest:
            self.variation += (abs(self.smoothed - seconds) - self.variation) / 4
            self.smoothed += (seconds - self.smoothed) / 8
        else:
            self.smoothed = seconds
            self.variation = seconds / 2
        self.latest = max(seconds, 1e-9)

    @property
    def timeout(self) -> float:
        least = self.smoothed + max(4 * self.variation, GRANULARITY)
        return min(max(least, self._least) * (1 << min(self.backoff, 16)), self._most)


class Window:
    """How many bytes may be under way: NewReno."""

    __slots__ = ("_before", "_least", "_recovering", "_threshold", "size", "unit")

    def __init__(self, unit: int) -> None:
        self.unit = unit
        """The size of a full datagram."""
        self._least = 4 * unit
        self.size = 16 * unit
        self._threshold = 1 << 60
        self._recovering = -1
        """Losses up to this number belong to an event that was dealt with."""
        self._before = (self.size, self._threshold)
        """What the window was before that event."""

    def acked(self, number: int, size: int) -> None:
        if number <= self._recovering:
            return
        if self.size < self._threshold:
            self.size += size
        else:
            self.size += max(1, self.unit * size // self.size)

    def lost(self, number: int, next_number: int) -> None:
        """A datagram was lost: halve the window, once for all that was under way."""
        if number > self._recovering:
            self._before = (self.size, self._threshold)
            self._recovering = next_number - 1
            self._threshold = self.size = max(self.size // 2, self._least)

    def expired(self, number: int, next_number: int) -> None:
        """Nothing came back: begin anew."""
        if number > self._recovering:
            self._before = (self.size, self._threshold)
        self._recovering = next_number - 1
        self._threshold = max(self.size // 2, self._least)
        self.size = self._least

    def undo(self) -> None:
        """It was a false alarm."""
        size, threshold = self._before
        self.size = max(self.size, size)
        self._threshold = max(self._threshold, threshold)
        self._recovering = -1


class Sent:
    """A datagram that is under way."""

    __slots__ = ("control", "eliciting", "items", "obituaries", "size", "time")

    def __init__(self, time: float) -> None:
        self.time = time
        self.size = 0
        self.eliciting = False
        """Whether it is to be acknowledged; only then it counts as under way."""
        self.items: list[Any] = []
        """Messages and fragments that were in it."""
        self.control = False
        """Whether it had an ack or a permit of the protocol, or a question."""
        self.obituaries: tuple[tuple[str, int], ...] = ()


class Recovery:
    """Keeps track of the datagrams of a session until they arrived or are lost."""

    __slots__ = (
        "_base",
        "_condemned",
        "_largest",
        "_loss_at",
        "_reordering",
        "in_flight",
        "next_number",
        "probes",
        "round_trip",
        "sent",
        "window",
    )

    def __init__(self, round_trip: RoundTrip, window: Window) -> None:
        self.round_trip = round_trip
        self.window = window
        self.next_number = 0
        self.sent: dict[int, Sent] = {}
        """Under way, by number, in the order of the numbers."""
        self.in_flight = 0
        """Bytes under way."""
        self.probes = 0
        """Datagrams that may be sent whatever the window says."""
        self._largest = -1
        """The highest number acknowledged."""
        self._base = 0.0
        """When the retransmission timer was last started."""
        self._loss_at: float | None = None
        """When more will have to be taken for lost."""
        self._reordering = 3
        self._condemned: dict[int, None] = {}
        """Numbers lately taken for lost."""

    def departs(self, sent: Sent) -> None:
        """A datagram, `next_number`, is sent that is to be acknowledged."""
        if not self.sent:
            self._base = sent.time
        self.sent[self.next_number] = sent
        self.next_number += 1
        self.in_flight += sent.size
        if self.probes:
            self.probes -= 1

    @property
    def open(self) -> bool:
        """Whether another datagram may leave."""
        return self.in_flight < self.window.size or self.probes > 0

    def acknowledged(
        self, ranges: Iterable[tuple[int, int]], now: float
    ) -> tuple[list[Sent], list[Sent]]:
        """An ack came: which datagrams have arrived, and which must be lost."""
        arrived: list[Sent] = []
        sent, window = self.sent, self.window
        in_use = 2 * self.in_flight >= window.size
        largest = self._largest
        for low, high in ranges:
            if high >= self.next_number:
                raise MalformedError("an ack of a datagram that was never sent")
            if self._condemned:
                self._acquit(low, high)
            if not sent:
                break
            for number in range(max(low, next(iter(sent))), high + 1):
                one = sent.pop(number, None)
                if one is None:
                    continue
                self.in_flight -= one.size
                if number > largest:
                    largest = number
                    self.round_trip.measured(now - one.time)
                if in_use:
                    window.acked(number, one.size)
                arrived.append(one)
                if not sent:
                    break
        if not arrived:
            return arrived, []
        self._largest = largest
        self._base = now
        self.round_trip.backoff = 0
        return arrived, self._missing(now)

    def _acquit(self, low: int, high: int) -> None:
        """Those taken for lost that arrived all the same were only late."""
        late = [number for number in self._condemned if low <= number <= high]
        for number in late:
            del self._condemned[number]
        if late:
            self.window.undo()
            self._reordering = min(2 * self._reordering, 256)

    def _missing(self, now: float) -> list[Sent]:
        """What is lost by the evidence."""
        trip = self.round_trip
        before = now - max(1.125 * max(trip.smoothed, trip.latest), GRANULARITY)
        self._loss_at = None
        lost: list[Sent] = []
        for number, one in list(self.sent.items()):
            if number > self._largest:
                break
            if self._largest - number < self._reordering and one.time - before > 1e-9:
                self._loss_at = one.time + (now - before)
                break
            self._take_for_lost(number, one, lost)
        return lost

    def _take_for_lost(self, number: int, one: Sent, lost: list[Sent]) -> None:
        del self.sent[number]
        self.in_flight -= one.size
        self.window.lost(number, self.next_number)
        self._condemned[number] = None
        if len(self._condemned) > 64:
            del self._condemned[next(iter(self._condemned))]
        lost.append(one)

    @property
    def deadline(self) -> float | None:
        """When to call `expired`."""
        if not self.sent:
            return None
        if self._loss_at is not None:
            return self._loss_at
        return self._base + self.round_trip.timeout

    def expired(self, now: float) -> list[Sent]:
        """The deadline is over: what is lost now? Nothing, if it is not over."""
        deadline = self.deadline
        if deadline is None or now < deadline:
            return []
        if self._loss_at is not None:
            return self._missing(now)
        self.round_trip.backoff += 1
        self._base = now
        self.probes = 1
        number, one = next(iter(self.sent.items()))
        self.window.expired(number, self.next_number)
        lost: list[Sent] = []
        self._take_for_lost(number, one, lost)
        return lost
