"""Spans of other systems are replayed: calls, replies and queues, with their dependencies."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from causewire import protocols
from causewire.sim import Config, SimulationError, workloads

from ..trace import shop
from .simulated import MS, play

FORMATS: dict[str, Callable[[list[shop.Op]], bytes]] = {
    "otlp": shop.otlp,
    "otlp lines": lambda ops: shop.otlp(ops, lines=True),
    "otlp protobuf": shop.otlp_protobuf,
    "tempo": lambda ops: shop.otlp(ops, key="batches", in_base64=True),
    "jaeger": shop.jaeger,
    "jaeger lines": shop.jaeger_lines,
    "zipkin": shop.zipkin,
    "zipkin shared": lambda ops: shop.zipkin(ops, shared=True),
}


def requests(number: int) -> list[shop.Op]:
    return [op for k in range(1, number + 1) for op in shop.in_order(k)]


def written(path: Path, content: bytes) -> str:
    path.write_bytes(gzip.compress(content, 1))
    return str(path)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_becomes_the_same_program(name: str, tmp_path: Path) -> None:
    path = written(tmp_path / "spans", FORMATS[name](requests(3)))
    workload = workloads.Replay(trace=path)
    # Two calls and their replies, and two messages through the queue.
    assert workload.own_messages() == 3 * 6
    services = [process.partition("/")[0] for process in workload.own_names()]
    assert services == ["audit", "cart", "mail", "web"]
    _, judge = play(protocol="ks", workload=workload)
    ways = {(row.process.split("/")[0], row.peers[0].split("/")[0]) for row in judge.of("send")}
    assert ways == {
        ("web", "cart"),
        ("cart", "web"),
        ("web", "mail"),
        ("web", "audit"),
        ("audit", "web"),
        ("audit", "mail"),
    }


@pytest.mark.parametrize(
    "protocol",
    [n for n in protocols.names() if protocols.describe(n).live and protocols.describe(n).unicast],
)
def test_spans_under_every_protocol(protocol: str, tmp_path: Path) -> None:
    path = written(tmp_path / "spans", shop.otlp(requests(5)))
    summary, judge = play(protocol=protocol, workload={"kind": "replay", "trace": path})
    assert summary.undelivered is None
    assert summary.deliveries == 5 * 6
    if protocols.describe(protocol).causal:
        assert not judge.violations


def test_a_request_waits_for_its_replies_and_not_for_other_requests(tmp_path: Path) -> None:
    path = written(tmp_path / "spans", shop.otlp(requests(4)))
    replay = workloads.Replay(trace=path, pace=False)
    _, judge = play(protocol="unordered", workload=replay, network={"latency": "5ms"})
    web = [row for row in judge.rows if row.process.startswith("web")]
    sends = [(row.time_ns // MS, row.peers[0].split("/")[0]) for row in web if row.kind == "send"]
    # All requests call the cart at once; a reply takes two trips.
    assert sends[:4] == [(0, "cart")] * 4
    assert sorted(sends[4:]) == [(10, "audit")] * 4 + [(10, "mail")] * 4


def test_pauses_are_those_of_the_instance_that_made_them(tmp_path: Path) -> None:
    path = written(tmp_path / "spans", shop.otlp(shop.in_order()))
    _, judge = play(
        protocol="unordered",
        workload={"kind": "replay", "trace": path},
        network={"latency": "1ms"},
    )
    times = {
        (row.process.split("/")[0], row.peers[0].split("/")[0]): row.time_ns // 1000
        for row in judge.of("send")
    }
    call = times["web", "cart"]
    assert times["cart", "web"] == call + 1000 + 6  # its span takes 6 us, on its own clock
    assert times["web", "mail"] == call + 2006 + 10
    assert times["web", "audit"] == call + 2006 + 20


def test_one_request_can_be_chosen(tmp_path: Path) -> None:
    path = written(tmp_path / "spans", shop.otlp(requests(3)))
    assert workloads.Replay(trace=path, run=f"{2:032x}").own_messages() == 6
    with pytest.raises(SimulationError, match="nothing is sent in run 'none'"):
        workloads.Replay(trace=path, run="none")


def test_spans_without_calls_are_refused(tmp_path: Path) -> None:
    alone = [op for op in shop.in_order() if op.span == 1]
    with pytest.raises(SimulationError, match="nothing is sent"):
        workloads.Replay(trace=written(tmp_path / "spans", shop.otlp(alone)))


def test_a_call_whose_server_left_no_span_is_not_sent(tmp_path: Path) -> None:
    ops = [op for op in shop.in_order() if op.service != "cart"]
    path = written(tmp_path / "spans", shop.otlp(ops))
    assert Config.from_dict({"protocol": "csps", "workload": {"kind": "replay", "trace": path}})
    assert workloads.Replay(trace=path).own_messages() == 4
    lonely = [op for op in shop.in_order() if op.span in (1, 2)]
    with pytest.raises(SimulationError, match="no span calls another service"):
        workloads.Replay(trace=written(tmp_path / "spans", shop.otlp(lonely)))
