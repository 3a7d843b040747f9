"""The summary: what it counts is what the trace shows, and its space is fixed."""

from __future__ import annotations

import json
import tracemalloc
from collections import Counter
from random import Random
from typing import Any

import pytest

from causewire import protocols
from causewire.sim import Config, Processes, Sizes, simulate, workloads
from causewire.sim.summary import Histogram

from .simulated import WORKLOADS, Judge, play

RUNS: list[tuple[str, str, dict[str, Any]]] = [
    ("csps", "uniform", {}),
    ("sps", "relay", {"loss": 0.1, "duplicate": 0.1}),
    ("mf", "hotspot", {"loss": 0.05}),
    ("fifo", "groups", {"bandwidth": "50kB/s"}),
    ("rst", "multicast", {}),
    ("newtop", "broadcast", {}),
    ("pak", "broadcast", {}),
]


class Recount:
    """The figures of a summary, counted again from the rows of the trace."""

    def __init__(self, judge: Judge) -> None:
        self.sent: dict[tuple[str, int], int] = {}
        self.latency: list[int] = []
        self.at_sender: list[int] = []
        self.at_receiver: list[int] = []
        self.packets: Counter[str] = Counter()
        waiting: Counter[str] = Counter()
        transit: Counter[str] = Counter()
        pairs: Counter[tuple[str, str]] = Counter()
        buffer: Counter[str] = Counter()
        arrived: dict[tuple[str, str, int], int] = {}
        self.max_transit = self.max_pair = self.max_waiting = self.max_buffer = 0
        for i, row in enumerate(judge.rows):
            key = (row.origin, row.mid)
            if row.kind == "send":
                self.sent[key] = row.time_ns
                waiting[row.process] += len(row.peers)
            elif row.kind == "release":
                self.at_sender.append(row.time_ns - self.sent[key])
                waiting[row.process] -= 1
                transit[row.process] += 1
                pairs[row.process, row.peers[0]] += 1
                self.max_transit = max(self.max_transit, transit[row.process])
                self.max_pair = max(self.max_pair, pairs[row.process, row.peers[0]])
            elif row.kind == "receive":
                arrived[(row.process, *key)] = row.time_ns
                transit[row.origin] -= 1
                pairs[row.origin, row.process] -= 1
                buffer[row.process] += 1
            elif row.kind == "deliver":
                self.latency.append(row.time_ns - self.sent[key])
                self.at_receiver.append(row.time_ns - arrived[(row.process, *key)])
                buffer[row.process] -= 1
            if row.kind in ("release", "retransmit", "ack", "permit", "control"):
                self.packets[row.kind] += 1
            last = i + 1 == len(judge.rows) or judge.rows[i + 1].time_ns != row.time_ns
            if last:
                self.max_waiting = max([self.max_waiting, *waiting.values()])
                self.max_buffer = max([self.max_buffer, *buffer.values()])


@pytest.mark.parametrize(("protocol", "workload", "network"), RUNS)
def test_the_summary_is_what_the_trace_shows(
    protocol: str, workload: str, network: dict[str, Any]
) -> None:
    summary, judge = play(
        protocol=protocol,
        workload=WORKLOADS[workload],
        processes=Processes(count=6),
        messages=120,
        network=network,
        seed=8,
    )
    again = Recount(judge)
    assert summary.messages == len(again.sent) == 120
    assert summary.deliveries == summary.copies == len(again.latency)
    for times, values in (
        (summary.latency, again.latency),
        (summary.held_at_sender, again.at_sender),
        (summary.held_at_receiver, again.at_receiver),
    ):
        assert times.count == len(values)
        assert times.mean_ns == pytest.approx(sum(values) / len(values))
        assert times.max_ns == max(values)
        for share, told in ((0.5, times.p50_ns), (0.99, times.p99_ns)):
            exact = sorted(values)[max(0, -(-int(share * 100) * len(values) // 100) - 1)]
            assert exact <= told <= exact * (1 + Histogram.ERROR)
    assert summary.max_in_transit == again.max_transit
    assert summary.max_in_transit_per_pair == again.max_pair
    assert summary.max_send_buffer == again.max_waiting
    assert summary.max_receive_buffer == again.max_buffer
    control = sum(again.packets[kind] for kind in ("ack", "permit", "control"))
    assert sum(summary.packets.values()) == sum(again.packets.values())
    assert summary.control_per_message == control / 120
    assert summary.retransmissions == again.packets["retransmit"]
    out = [r for r in judge.rows if r.kind in again.packets]
    assert summary.payload_bytes == sum(row.payload_bytes or 0 for row in out)
    assert summary.metadata_bytes == sum(row.metadata_bytes or 0 for row in out)
    happened = [row.time_ns for row in judge.rows if row.kind not in ("drop", *again.packets)]
    assert summary.simulated_ns == max(happened)


def test_duplicates_are_counted_and_shown() -> None:
    summary, judge = play(
        protocol="unordered",
        messages=200,
        network={"duplicate": 0.2},
        allow_worse_network=True,
    )
    assert summary.duplicates == judge.violations["duplicate"] > 20
    assert summary.deliveries == 200
    assert len(judge.of("deliver")) == 200 + summary.duplicates


def test_in_transit_limits_are_those_of_the_protocols() -> None:
    busy = {"processes": {"count": 6, "think": "1ms"}, "messages": 300}
    assert play(protocol="mf", **busy)[0].max_in_transit == 1
    assert play(protocol="cykas", **busy)[0].max_in_transit_per_pair == 1
    assert play(protocol="cykas", **busy)[0].max_in_transit > 1
    assert play(protocol="csps", **busy)[0].max_in_transit_per_pair > 1


def test_a_summary_is_ready_for_json() -> None:
    summary, _ = play(protocol="csps", messages=20, until="20ms")
    plain = json.loads(json.dumps(summary.to_dict()))
    assert plain["messages"] == summary.messages
    assert plain["latency"]["p99_ns"] == summary.latency.p99_ns
    assert plain["undelivered"]["unavoidable"] is True


# -- the histogram -------------------------------------------------------------


def test_percentiles_are_within_the_error_stated() -> None:
    random = Random(3).random
    for scale in (10, 300, 10**6, 10**12, 2**62):
        values = sorted(int(random() ** 3 * scale) for _ in range(500))
        histogram = Histogram()
        for value in values:
            histogram.add(value)
        for share in (0.001, 0.25, 0.5, 0.9, 0.99, 1.0):
            exact = values[max(0, -(-int(share * 1000) * 500 // 1000) - 1)]
            assert exact <= histogram.percentile(share) <= exact * (1 + Histogram.ERROR)
        times = histogram.times()
        assert times.mean_ns == pytest.approx(sum(values) / 500)
        assert times.max_ns == values[-1]


def test_small_values_are_exact() -> None:
    histogram = Histogram()
    for value in range(256):
        histogram.add(value)
    assert [histogram.percentile((k + 1) / 256) for k in range(256)] == list(range(256))


def test_an_empty_histogram_is_all_zeros() -> None:
    times = Histogram().times()
    assert (times.count, times.mean_ns, times.p50_ns, times.p99_ns, times.max_ns) == (0, 0, 0, 0, 0)


def test_zeros_that_were_not_added() -> None:
    histogram = Histogram()
    histogram.add(100)
    times = histogram.times(4)
    assert (times.count, times.mean_ns, times.p50_ns, times.p99_ns) == (4, 25, 0, 100)


def peak(messages: int) -> int:
    config = Config(
        protocol="sps",
        processes=Processes(count=8, think={"kind": "uniform", "low": "0ms", "high": "60ms"}),  # type: ignore[arg-type]
        workload=workloads.Uniform(correspondents=3),
        messages=messages,
    )
    tracemalloc.start()
    try:
        simulate(config)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_a_longer_run_takes_no_more_memory() -> None:
    peak(100)
    assert peak(4000) < 1.1 * peak(1000)


def test_every_protocol_has_been_tallied() -> None:
    known = {name for name, _, _ in RUNS}
    assert known <= set(protocols.names())


def test_bits_count_flags_and_integers_modulo_k() -> None:
    """Baldoni's measure: n⌈log k⌉ bits, where a vector clock takes n integers."""
    bits = {}
    for protocol in ("bss", "pak", "pak-credit"):
        summary = simulate(
            Config(
                protocol=protocol,
                processes=Processes(count=8),
                messages=80,
                workload=workloads.Broadcast(),
                sizes=Sizes(message=0, ack=0),
            )
        )
        bits[protocol] = summary.metadata_bits / summary.copies
        assert summary.metadata_bits <= 8 * summary.metadata_bytes
    assert bits["bss"] == 8 * 32
    assert bits["pak"] == 8 * 2 + 2  # modulo 3, and an ack with one of them
    assert bits["pak"] < bits["pak-credit"] < bits["bss"]
    csps = simulate(Config(protocol="csps", messages=100, sizes=Sizes(message=0, ack=0, permit=0)))
    control = csps.packets["ack"] + csps.packets.get("permit", 0)
    assert csps.metadata_bits == 100 * (2 * 32 + 1) + control * 32
