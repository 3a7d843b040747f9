"""Congestion control over a long distance, and through a bottleneck that is shared.

The network is a model: rounds of one round trip, in which each window is sent once.
"""

from __future__ import annotations

import pytest

from causewire.transport import TransportConfig
from causewire.transport.congestion import CongestionWindow
from causewire.transport.cubic import Cubic
from causewire.transport.newreno import NewReno

UNIT = 1000
TRIP = 0.1


class Flow:
    """A sender that always has something to send."""

    def __init__(self, window: CongestionWindow) -> None:
        self.window = window
        self.number = 0
        self.arrived = 0

    @property
    def datagrams(self) -> int:
        """How many datagrams the window allows."""
        return self.window.size // UNIT

    def round(self, count: int, now: float, lost: set[int]) -> None:
        """Send `count` datagrams, of which those with the numbers in `lost` do not arrive."""
        first, self.number = self.number, self.number + count
        for number in range(first, self.number):
            if number in lost:
                self.window.lost(number, self.number)
            else:
                self.window.acked(number, UNIT, now, TRIP)
                self.arrived += 1


def rate(window: CongestionWindow, capacity: int, every: int | None) -> float:
    """Return datagrams per round over a path for `capacity` of them, each n-th being lost."""
    flow = Flow(window)
    rounds = 1500
    for k in range(rounds):
        count = min(flow.datagrams, capacity)
        numbers = range(flow.number, flow.number + count)
        lost = set() if every is None else {n for n in numbers if n % every == every - 1}
        flow.round(count, k * TRIP, lost)
    return flow.arrived / rounds


@pytest.mark.slow
def test_one_loss_in_ten_thousand_over_100_ms_costs_little() -> None:
    """160 datagrams of 32 KiB in 100 ms: what a node sends at full speed."""
    lossless = rate(Cubic(UNIT), 160, None)
    assert rate(Cubic(UNIT), 160, 10_000) > 0.8 * lossless
    assert rate(Cubic(UNIT), 160, 10_000) > rate(NewReno(UNIT), 160, 10_000)


def share(windows: list[CongestionWindow], capacity: int, rounds: int) -> list[int]:
    """Return what flows get of a bottleneck that drops what exceeds its queue.

    The losses are those of the flows in proportion to what they send; the first flow has had
    the bottleneck for itself before.
    """
    flows = [Flow(window) for window in windows]
    for k in range(rounds):
        sending = flows if k > rounds // 4 else flows[:1]
        counts = [flow.datagrams for flow in sending]
        excess = max(0, sum(counts) - capacity)
        if k == rounds // 2:
            for flow in flows:
                flow.arrived = 0
        for flow, count in zip(sending, counts, strict=True):
            dropped = -(-excess * count // sum(counts))
            flow.round(count, k * TRIP, set(range(flow.number, flow.number + dropped)))
    return [flow.arrived for flow in flows]


@pytest.mark.slow
@pytest.mark.parametrize(
    "kinds", [[Cubic, Cubic], [Cubic, Cubic, Cubic, Cubic], [NewReno, NewReno], [Cubic, NewReno]]
)
def test_no_flow_starves_another(kinds: list[type[CongestionWindow]]) -> None:
    got = share([kind(UNIT) for kind in kinds], 200, 1600)
    assert max(got) < 2 * min(got)
    assert sum(got) > 0.7 * 200 * 800


def test_after_a_loss_it_is_slow_around_the_former_size_and_fast_beyond() -> None:
    window = Cubic(UNIT)
    window.lost(1, 2)
    window.size = window.threshold = 1000 * UNIT
    window.lost(3, 4)
    assert window.size == 700 * UNIT
    sizes, number = [], 4
    for k in range(200):
        for _ in range(window.size // UNIT):
            window.acked(number, UNIT, k * TRIP, TRIP)
            number += 1
        sizes.append(window.size // UNIT)
    at = next(k for k, size in enumerate(sizes) if size >= 999)
    assert at * TRIP == pytest.approx((300 / 0.4) ** (1 / 3), rel=0.2)  # K, RFC 9438
    assert sizes[at] - sizes[at - 5] < sizes[5] - sizes[0]
    assert sizes[-1] - sizes[-6] > sizes[at] - sizes[at - 5]


def test_a_timeout_and_a_false_alarm() -> None:
    window = Cubic(UNIT)
    window.size = 100 * UNIT
    window.expired(1, 2)
    assert window.size == 4 * UNIT
    assert window.threshold == 70 * UNIT
    window.undo()
    assert window.size == 100 * UNIT


@pytest.mark.parametrize("algorithm", [Cubic, NewReno])
def test_longer_datagrams_do_not_make_a_flow_faster_at_once(
    algorithm: type[CongestionWindow],
) -> None:
    """The bytes in flight stay; only growth is in datagrams."""
    window = algorithm(UNIT)
    window.size = window.threshold = 100 * UNIT
    window.lost(1, 2)
    window.acked(5, UNIT, 0.0, TRIP)
    window.use(8 * UNIT)
    for k in range(1, 4):
        for _ in range(window.size // window.unit):
            window.acked(6, window.unit, k * TRIP, TRIP)
    assert window.size < 105 * UNIT


def test_the_algorithm_is_a_setting() -> None:
    assert TransportConfig().congestion == "cubic"
    assert TransportConfig(congestion="newreno").congestion == "newreno"
    with pytest.raises(ValueError, match="congestion"):
        TransportConfig(congestion="bbr")
