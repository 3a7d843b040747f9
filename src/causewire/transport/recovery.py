"""Loss detection and round-trip times of one session.

Datagrams are numbered and never repeated: what was in a lost datagram is sent again
under a new number. An ack therefore always tells which transmission it is about, and
every ack is a valid measurement (Karn's problem does not arise).

**Round-trip time** as in RFC 6298: SRTT and RTTVAR with gains 1/8 and 1/4, timeout
RTO = SRTT + 4 RTTVAR, doubled at each expiry. The lower bound of one second in the RFC
is too long for a local network, so both bounds are settings. The ack of a datagram without
messages may come late, by `ack_delay`: it is waited for that much longer, and is a measurement
only if it shows that the round trip is shorter than was thought. An expiry costs one
datagram, however many are in flight; a peer that is gone costs one small datagram per
`longest` timeout. A probe that is lost (`path_size`) is no expiry and no sign of congestion.

**Evidence of loss** as in RFC 9002, section 6: a later datagram was acknowledged,
and it was sent three numbers later, or 9/8 of a round trip ago. A network that
reorders, or a busy machine, causes false alarms. The late ack reveals them: then the
distance of three doubles, and the window returns to its former size (RFC 4015).

**Congestion**: see `congestion`, and the algorithms, `cubic` and `newreno`.

**Cost.** Every datagram is looked at once when it is acknowledged or lost, and an ack looks
at no others except the oldest in flight. `OrderedDict` is used because its first item is
found in constant time, however many items were deleted before it; a `dict` is not like that.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from .congestion import CongestionWindow
from .varint import MalformedError

__all__ = ["Probe", "Recovery", "RoundTrip", "Sent"]


GRANULARITY = 0.001
"""Differences in time below this are ignored, in seconds."""


class RoundTrip:
    """An estimate of the round-trip time (RFC 6298)."""

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
        """Take a measurement into account."""
        if self.latest:
            self.variation += (abs(self.smoothed - seconds) - self.variation) / 4
            self.smoothed += (seconds - self.smoothed) / 8
        else:
            self.smoothed = seconds
            self.variation = seconds / 2
        self.latest = max(seconds, 1e-9)

    @property
    def timeout(self) -> float:
        """How long to wait for an ack, in seconds."""
        least = self.smoothed + max(4 * self.variation, GRANULARITY)
        return min(max(least, self._least) * (1 << min(self.backoff, 16)), self._most)


class Sent:
    """A datagram in flight, and what has to be sent again if it is lost."""

    __slots__ = (
        *("bye", "control", "eliciting", "handled", "items", "obituaries", "patient", "size"),
        *("stream", "time"),
    )

    def __init__(self, time: float, size: int = 0, control: bool = False, item: Any = None) -> None:
        self.time = time
        self.size = size
        self.control = control
        """Whether it had an ack or a permit of the protocol, or a question."""
        self.items: list[Any] = [] if item is None else [item]
        """Messages and parts of messages in it."""
        self.bye = False
        self.eliciting = False
        """Whether it asks for an ack; only then it counts as in flight."""
        self.obituaries: Sequence[tuple[str, int]] = ()
        self.patient = False
        """Whether its arrival may be acknowledged late, by `ack_delay`."""
        self.handled: Sequence[tuple[int, int]] = ()
        """Ranges of messages that it reports as handled."""
        self.stream: Sequence[tuple[int, bytes]] = ()
        """Parts of the stream of control packets."""


class Probe(Sent):
    """A datagram that only tries whether one of its length arrives (`path_size`).

    Its size is 0, as the window does not count it: it must not keep messages waiting until it
    counts as lost, and there is never more than one in a round trip, as RFC 8899, section 8, asks.
    """

    __slots__ = ("length",)

    def __init__(self, time: float, length: int) -> None:
        super().__init__(time)
        self.length = length


class Recovery:
    """Tracks the datagrams of a session until they have arrived or are lost."""

    __slots__ = (
        "_ack_delay",
        "_base",
        "_condemned",
        "_largest",
        "_reordering",
        "in_flight",
        "loss_at",
        "next_number",
        "probes",
        "round_trip",
        "sent",
        "window",
    )

    def __init__(
        self, round_trip: RoundTrip, window: CongestionWindow, ack_delay: float = 0.0
    ) -> None:
        self._ack_delay = ack_delay
        """How late the ack of a datagram without messages may be."""
        self.round_trip = round_trip
        self.window = window
        self.next_number = 0
        self.sent: OrderedDict[int, Sent] = OrderedDict()
        """Datagrams in flight, by number, in the order of the numbers."""
        self.in_flight = 0
        """Bytes in flight."""
        self.probes = 0
        """Datagrams that may be sent whatever the window says."""
        self._largest = -1
        """The highest number acknowledged."""
        self._base = 0.0
        """When the retransmission timer was last started."""
        self.loss_at: float | None = None
        """When more datagrams will count as lost, before the retransmission timeout."""
        self._reordering = 3
        self._condemned: dict[int, None] = {}
        """Numbers that lately counted as lost."""

    def fresh(self) -> Recovery:
        """Return the record of a new connection, with what is known of the path."""
        self.round_trip.backoff = 0
        window = type(self.window)(self.window.unit)
        return Recovery(self.round_trip, window, self._ack_delay)

    def departs(self, sent: Sent) -> None:
        """Record that a datagram that asks for an ack is sent as `next_number`."""
        if not self.sent:
            self._base = sent.time
        self.sent[self.next_number] = sent
        self.next_number += 1
        self.in_flight += sent.size
        if self.probes:
            self.probes -= 1

    @property
    def open(self) -> bool:
        """Whether another datagram may be sent."""
        return self.in_flight < self.window.size or self.probes > 0

    def acknowledged(
        self, ranges: Sequence[tuple[int, int]], now: float
    ) -> tuple[list[Sent], list[Sent]]:
        """Process an ack; return the datagrams that have arrived, and those that are lost.

        Raises:
            MalformedError: The ack is about a datagram that was never sent.
        """
        sent, window = self.sent, self.window
        in_use = 2 * self.in_flight >= window.size
        largest = self.next_number - 1
        if (
            len(sent) == 1
            and largest in sent
            and ranges[0][1] == largest
            and not in_use
            and not self._condemned
        ):
            return self._all_arrived(largest, now)
        arrived: list[Sent] = []
        largest = self._largest
        for low, high in ranges:
            if high >= self.next_number:
                raise MalformedError("an ACK of a datagram that was never sent")
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
                    seconds = now - one.time
                    if not one.patient or seconds < self.round_trip.smoothed:
                        self.round_trip.measured(seconds)
                if in_use:
                    window.acked(number, one.size, now, self.round_trip.smoothed)
                arrived.append(one)
                if not sent:
                    break
        if not arrived:
            return arrived, []
        self._largest = largest
        self._base = now
        self.round_trip.backoff = 0
        return arrived, self._missing(now)

    def _all_arrived(self, number: int, now: float) -> tuple[list[Sent], list[Sent]]:
        """Process the ack of the last datagram, while it is the only one in flight."""
        one = self.sent.pop(number)
        self.in_flight = 0
        trip = self.round_trip
        seconds = now - one.time
        if not one.patient or seconds < trip.smoothed:
            trip.measured(seconds)
        trip.backoff = 0
        self._largest = number
        self._base = now
        self.loss_at = None
        return [one], []

    def _acquit(self, low: int, high: int) -> None:
        """Undo the consequences of losses that were false alarms."""
        late = [number for number in self._condemned if low <= number <= high]
        for number in late:
            del self._condemned[number]
        if late:
            self.window.undo()
            self._reordering = min(2 * self._reordering, 256)

    def _missing(self, now: float) -> list[Sent]:
        """Remove and return the datagrams that are lost by the evidence."""
        trip = self.round_trip
        before = now - max(1.125 * max(trip.smoothed, trip.latest), GRANULARITY)
        self.loss_at = None
        lost: list[Sent] = []
        while self.sent:
            number, one = next(iter(self.sent.items()))
            if number > self._largest:
                break
            if self._largest - number < self._reordering and one.time - before > 1e-9:
                self.loss_at = one.time + (now - before)
                break
            self._take_for_lost(number, one, lost)
        return lost

    def _take_for_lost(self, number: int, one: Sent, lost: list[Sent]) -> None:
        del self.sent[number]
        self.in_flight -= one.size
        lost.append(one)
        if one.__class__ is Probe:
            return
        self.window.lost(number, self.next_number)
        self._condemned[number] = None
        if len(self._condemned) > 64:
            del self._condemned[next(iter(self._condemned))]

    @property
    def deadline(self) -> float | None:
        """When to call `expired`."""
        if not self.sent:
            return None
        if self.loss_at is not None:
            return self.loss_at
        oldest = next(iter(self.sent.values()))
        wait = self.round_trip.timeout
        return self._base + (wait + self._ack_delay if oldest.patient else wait)

    def expired(self, now: float) -> list[Sent]:
        """Return the datagrams that are lost if the deadline has passed."""
        deadline = self.deadline
        if deadline is None or now < deadline:
            return []
        if self.loss_at is not None:
            return self._missing(now)
        lost: list[Sent] = []
        number, one = next(iter(self.sent.items()))
        if one.__class__ is not Probe:
            self.round_trip.backoff += 1
            self._base = now
            self.probes = 1
            self.window.expired(number, self.next_number)
        self._take_for_lost(number, one, lost)
        if one.__class__ is Probe and self.sent:  # the timer is that of what was sent after it
            self._base = max(self._base, next(iter(self.sent.values())).time)
        return lost
