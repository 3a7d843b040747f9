"""The network does to packets what its settings say: exact times, and true shares."""

from __future__ import annotations

from typing import Any

import pytest

from causewire.sim import Constant, Normal, Regions, SimulatedNetwork, Sizes
from causewire.sim.faults import Timeline
from causewire.sim.links import Deadlines, Links
from causewire.sim.process import Process
from causewire.sim.scheduler import ARRIVAL, Scheduler

from .simulated import MS, Judge, play


class Wire:
    """A network by itself: packets are numbers, and so are the times they take."""

    def __init__(self, n: int = 3, draws: Any = None, fifo: bool = False, **settings: Any) -> None:
        self.scheduler = Scheduler()
        names = [f"p{i}" for i in range(n)]
        self.processes = [Process(i, name, None) for i, name in enumerate(names)]  # type: ignore[arg-type]
        self.arrived: list[tuple[int, int]] = []
        self.links = Links(
            SimulatedNetwork(**settings),
            fifo,
            Timeline((), names),
            names,
            self.scheduler,
            draws or (lambda: 0.999),
        )

    def put(self, at: int, p: int, q: int, packet: int, size: int = 0) -> None:
        self.scheduler.at(at, "put", p, q, packet, size)

    @property
    def dropped(self) -> list[Any]:
        return [packet for _, _, packet in self.links.dropped]

    def run(self) -> list[tuple[int, int]]:
        for now, _, what, p, q, packet, size in self.scheduler:
            if what is ARRIVAL:
                self.arrived.append((now, packet))
            else:
                self.links.carry(self.processes[p], self.processes[q], packet, size, 0)
        return self.arrived


def test_an_uplink_is_held_for_the_bytes_of_each_packet() -> None:
    wire = Wire(latency=Constant(1000), bandwidth=10**6)  # a byte takes 1000 ns
    wire.put(0, 0, 1, 1, size=3)
    wire.put(0, 0, 2, 2, size=2)
    wire.put(0, 1, 2, 3, size=1)
    wire.put(100_000, 0, 1, 4, size=1)
    assert wire.run() == [(2000, 3), (4000, 1), (6000, 2), (102_000, 4)]


def test_a_link_is_held_by_itself() -> None:
    wire = Wire(latency=Constant(1000), bandwidth=10**6, shared="link")
    wire.put(0, 0, 1, 1, size=3)
    wire.put(0, 0, 2, 2, size=2)
    wire.put(0, 0, 1, 3, size=3)
    wire.put(0, 1, 0, 4, size=1)
    assert wire.run() == [(2000, 4), (3000, 2), (4000, 1), (7000, 3)]


def test_rounding_never_adds_up() -> None:
    wire = Wire(latency=Constant(0), bandwidth=3)  # a byte takes a third of a second
    for k in range(1, 3001):
        wire.put(0, 0, 1, k, size=1)
    for time, k in wire.run():
        assert time == -(-k * 10**9 // 3)


def test_a_free_uplink_does_not_save_up() -> None:
    wire = Wire(latency=Constant(0), bandwidth=10**9)
    wire.put(0, 0, 1, 1, size=10)
    wire.put(50, 0, 1, 2, size=10)
    assert wire.run() == [(10, 1), (60, 2)]


def test_a_lost_packet_has_used_the_uplink() -> None:
    draws = iter([0.0, 0.9])
    wire = Wire(draws=lambda: next(draws), latency=Constant(5), bandwidth=10**9, loss=0.5)
    wire.put(0, 0, 1, 1, size=10)
    wire.put(0, 0, 1, 2, size=10)
    assert wire.run() == [(25, 2)]
    assert wire.dropped == [1]
    assert wire.links.lost == 1


def test_a_copy_travels_by_itself() -> None:
    draws = iter([0.0, 0.1, 0.5])
    latency = {"kind": "uniform", "low": "0ns", "high": "9ns"}
    wire = Wire(draws=lambda: next(draws), latency=latency, duplicate=0.2)
    wire.put(0, 0, 1, 1)
    assert wire.run() == [(0, 1), (5, 1)]
    assert wire.links.duplicated == 1


def test_packets_overtake_each_other_unless_channels_are_fifo() -> None:
    latency = {"kind": "uniform", "low": "0ns", "high": "99ns"}
    for fifo, order in ((False, [(10, 2), (90, 1)]), (True, [(90, 1), (90, 2)])):
        draws = iter([0.9, 0.1])
        wire = Wire(draws=lambda draws=draws: next(draws), fifo=fifo, latency=latency)
        wire.put(0, 0, 1, 1)
        wire.put(0, 0, 1, 2)
        assert wire.run() == order


def test_fifo_is_about_one_link_at_a_time() -> None:
    latency = {"kind": "uniform", "low": "0ns", "high": "99ns"}
    draws = iter([0.9, 0.1, 0.2])
    wire = Wire(draws=lambda: next(draws), fifo=True, latency=latency)
    wire.put(0, 0, 1, 1)
    wire.put(0, 0, 2, 2)
    wire.put(0, 1, 0, 3)
    assert wire.run() == [(10, 2), (20, 3), (90, 1)]


def test_reordering_delays_a_share_of_the_packets() -> None:
    draws = iter([0.05, 0.5])
    wire = Wire(draws=lambda: next(draws), latency=Constant(10), reorder=0.1, reorder_by="100ns")
    wire.put(0, 0, 1, 1)
    wire.put(0, 0, 1, 2)
    assert wire.run() == [(10, 2), (110, 1)]


def test_regions() -> None:
    matrix = tuple(tuple(map(Constant, row)) for row in ((1, 50), (70, 2)))
    regions = Regions(names=("eu", "us"), matrix=matrix, place={"p0": "us"})
    assert regions.places(["p0", "p1", "p2", "p3"]) == [1, 1, 0, 1]
    wire = Wire(latency=regions)
    wire.put(0, 0, 1, 1)
    wire.put(0, 0, 2, 2)
    wire.put(0, 2, 0, 3)
    assert wire.run() == [(2, 1), (50, 3), (70, 2)]


def test_times_that_are_past_are_forgotten() -> None:
    times = Deadlines()
    for k in range(100_000):
        times[k] = k + 100
        times.forget(k)
    assert len(times) < 2000
    assert times[99_999] == 100_099


@pytest.mark.parametrize(("loss", "duplicate"), [(0.2, 0.0), (0.0, 0.3), (0.1, 0.1)])
def test_shares_are_true(loss: float, duplicate: float) -> None:
    network = {"loss": loss, "duplicate": duplicate}
    summary, judge = play(protocol="fifo", messages=1500, network=network, seed=3)
    packets = sum(summary.packets.values())
    assert summary.lost / packets == pytest.approx(loss, abs=0.025)
    assert summary.duplicated / packets == pytest.approx(duplicate * (1 - loss), abs=0.025)
    assert len(judge.of("drop")) == summary.lost
    assert summary.undelivered is None
    assert (summary.retransmissions > 0) == (loss > 0)


def test_metadata_comes_from_the_packets_and_is_part_of_what_is_sent() -> None:
    sizes = {"payload": 100, "integer": 8, "identifier": 3, "message": 5, "ack": 7}
    summary, judge = play(
        protocol="fifo",
        processes={"count": 2, "think": "1s"},
        messages=2,
        sizes=sizes,
        network={"latency": "1ms", "bandwidth": "1MB/s"},
    )
    release, arrival = judge.of("release")[0], judge.of("receive")[0]
    assert (release.payload_bytes, release.metadata_bytes) == (100, 5 + 2 * 8)
    assert arrival.time_ns - release.time_ns == 121 * 1000 + MS
    acks = judge.of("ack")
    assert [ack.metadata_bytes for ack in acks] == [7 + 8] * len(acks)
    assert summary.payload_bytes == 200
    assert summary.metadata_bytes == 2 * 21 + len(acks) * 15


def test_metadata_that_grows_is_weighed_packet_by_packet() -> None:
    summary, judge = play(protocol="ks", processes=6, messages=80, workload="relay")
    carried = [row.metadata_bytes for row in judge.of("release")]
    assert len(set(carried)) > 5
    assert summary.metadata_bytes == sum(carried)


def test_weighing_does_not_depend_on_a_trace() -> None:
    from causewire.sim import Config, simulate

    for protocol in ("ks", "rst", "csps"):
        config = Config.from_dict({"protocol": protocol, "processes": 5, "messages": 60})
        assert simulate(config) == simulate(config, Judge())


def test_a_slow_uplink_is_not_flooded_with_retransmissions() -> None:
    summary, _ = play(
        protocol="csps",
        processes={"count": 4, "think": "0ns"},
        messages=200,
        network={"latency": "1ms", "bandwidth": "20kB/s", "loss": 0.02},
    )
    assert summary.undelivered is None
    assert summary.retransmissions < 60


def test_default_sizes_are_those_of_the_documentation() -> None:
    sizes = Sizes()
    assert (sizes.payload, sizes.integer, sizes.identifier) == (100, 4, 4)
    assert (sizes.message, sizes.ack, sizes.permit, sizes.control) == (16, 16, 16, 16)
    assert SimulatedNetwork().latency.longest() == 9 * MS
    assert Normal(1, 1).fixed() is None
