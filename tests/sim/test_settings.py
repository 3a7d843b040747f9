"""Settings: both ways to write them, and one clear line for each that is wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest

from causewire.sim import (
    Config,
    Constant,
    Crash,
    Exponential,
    Heal,
    Hold,
    Jobs,
    LogNormal,
    Normal,
    Partition,
    Processes,
    Regions,
    Release,
    SimulatedNetwork,
    SimulationError,
    Sizes,
    Slow,
    Uniform,
    workloads,
)
from causewire.sim.settings import data_rate, data_size, duration

from .simulated import DIAMOND, MS, WORKLOADS


@pytest.mark.parametrize(
    ("written", "nanoseconds"),
    [
        (17, 17),
        ("10ns", 10),
        ("250us", 250_000),
        ("5ms", 5_000_000),
        ("1.5s", 1_500_000_000),
        ("0.000000001 s", 1),
        ("2min", 120 * 10**9),
    ],
)
def test_durations(written: int | str, nanoseconds: int) -> None:
    assert duration(written, "x") == nanoseconds


@pytest.mark.parametrize("written", [-1, 1.5, True, None, "5", "ms", "-5ms", "5 parsecs", "0.1ns"])
def test_what_is_no_duration(written: object) -> None:
    with pytest.raises(SimulationError, match=r"^latency: "):
        duration(written, "latency")


def test_sizes_and_rates() -> None:
    assert data_size("4kB", "x") == 4000
    assert data_size("64KiB", "x") == 65536
    assert data_rate("50kB/s", "x") == 50_000
    assert data_rate("10Mbit/s", "x") == 1_250_000
    with pytest.raises(SimulationError, match="at least one byte a second"):
        data_rate(0, "bandwidth")


FULL = Config(
    protocol="csps",
    workload=workloads.Microservices(services=DIAMOND),
    processes=Processes(
        think=Exponential(3 * MS),
        handling=Uniform(0, MS),
        jobs=Jobs(share=0.2, length=Normal(25 * MS, 5 * MS), blocking=False),
    ),
    messages=70,
    network=SimulatedNetwork(
        latency=Regions(
            names=("eu", "us"),
            matrix=((Constant(MS), LogNormal(40 * MS, 0.2)), (Constant(40 * MS), Constant(MS))),
            place={"stock.0": "us"},
        ),
        bandwidth=100_000,
        shared="link",
        loss=0.01,
        duplicate=0.02,
        reorder=0.03,
        reorder_by=Constant(MS),
        fifo=False,
    ),
    sizes=Sizes(payload=10, integer=8, identifier=2, message=1, ack=2, permit=3, control=4),
    faults=(
        Partition(at=5 * MS, sides=(("gateway.0",), ("stock.0", "price.0")), name="split"),
        Crash(at=6 * MS, links=((0, "stock.0"),), oneway=True),
        Hold(at=7 * MS, processes=("price.0",)),
        Slow(at=8 * MS, factor=2.5),
        Heal(at=20 * MS, name="split"),
        Heal(at=30 * MS),
        Release(at=30 * MS),
    ),
    retransmission=100 * MS,
    patience=10,
    until=10**12,
    seed=42,
)


def test_a_plain_dict_says_all_that_python_can() -> None:
    plain = json.loads(json.dumps(FULL.to_dict()))
    assert Config.from_dict(plain) == FULL


def test_short_forms() -> None:
    short = Config.from_dict(
        {
            "protocol": "fifo",
            "processes": 7,
            "workload": "relay",
            "network": {"latency": "5ms", "bandwidth": "1MB/s"},
            "faults": [{"kind": "hold", "at": "1s"}],
        }
    )
    assert short.processes == Processes(count=7)
    assert short.workload == workloads.Relay()
    assert short.network == SimulatedNetwork(latency=Constant(5 * MS), bandwidth=10**6)
    assert short.faults == (Hold(at=10**9),)
    assert short.names() == ("p0", "p1", "p2", "p3", "p4", "p5", "p6")


def test_names_sort_as_they_are_numbered() -> None:
    names = Config(protocol="fifo", processes=Processes(count=101)).names()
    assert names[7] == "p007"
    assert list(names) == sorted(names)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "run needs 'protocol'"),
    ({"protocol": "tcp"}, "run.protocol: there is no protocol 'tcp'"),
    ({"protocl": "fifo"}, "run has no setting 'protocl'; it has protocol, "),
    ({"protocol": "fifo", "options": {"x": 1}}, "run.options: fifo has no option x"),
    ({"protocol": "fifo", "messages": -1}, "run.messages must be an integer from 0 upward"),
    ({"protocol": "fifo", "messages": 1.5}, "run.messages must be an integer"),
    ({"protocol": "fifo", "seed": "x"}, "run.seed must be an integer"),
    ({"protocol": "fifo", "processes": 0}, "processes.count must be an integer from 1"),
    ({"protocol": "fifo", "processes": 1}, "uniform needs at least 2 processes"),
    ({"protocol": "fifo", "processes": "many"}, "run.processes must be a table"),
    ({"protocol": "fifo", "processes": {"names": ["a", "a"]}}, "must all be different"),
    ({"protocol": "fifo", "processes": {"count": 3, "names": ["a", "b"]}}, "processes.count is 3"),
    ({"protocol": "fifo", "processes": {"think": "-1ms"}}, "processes.think: .* not a duration"),
    ({"protocol": "fifo", "processes": {"jobs": {"share": 2}}}, "processes.jobs.share must be"),
    ({"protocol": "fifo", "sizes": {"payload": -5}}, "sizes.payload must be bytes from 0"),
    ({"protocol": "fifo", "sizes": {"header": 5}}, "sizes has no setting 'header'; it has"),
    ({"protocol": "fifo", "network": {"loss": 1.5}}, "network.loss must be a number from 0 to 1"),
    ({"protocol": "fifo", "network": {"loss": 1}}, "network.loss must be below 1"),
    ({"protocol": "fifo", "network": {"loss": float("nan")}}, "network.loss must be a number"),
    ({"protocol": "fifo", "network": {"latency": {"kind": "gamma"}}}, "a kind out of constant,"),
    ({"protocol": "fifo", "network": {"latency": {"kind": "uniform"}}}, "uniform needs 'low'"),
    (
        {
            "protocol": "fifo",
            "network": {"latency": {"kind": "uniform", "low": "9ns", "high": "3ns"}},
        },
        "uniform.high must be at least low",
    ),
    ({"protocol": "fifo", "network": {"shared": "both"}}, "one of uplink, link"),
    ({"protocol": "fifo", "network": {"fifo": True, "reorder": 0.1}}, "exclude each other"),
    (
        {
            "protocol": "fifo",
            "network": {"latency": {"kind": "regions", "names": ["a", "b"], "matrix": [["1ms"]]}},
        },
        "regions.matrix must be 2 rows of 2",
    ),
    (
        {
            "protocol": "fifo",
            "network": {
                "latency": {
                    "kind": "regions",
                    "names": ["a"],
                    "matrix": [["1ms"]],
                    "place": {"p0": "mars"},
                }
            },
        },
        "there is no region 'mars'",
    ),
    ({"protocol": "fifo", "workload": "gossip"}, "run.workload needs a kind out of uniform,"),
    ({"protocol": "fifo", "workload": {"kind": "relay", "hops": 0}}, "relay workload.hops must"),
    ({"protocol": "fifo", "workload": "microservices"}, "microservices workload needs 'services'"),
    ({"protocol": "fifo", "workload": {"kind": "uniform", "fanout": 10}}, "cannot be had among 9"),
    (
        {"protocol": "fifo", "processes": 2, "workload": {"kind": "request-reply", "servers": 2}},
        "request-reply needs a client",
    ),
    (
        {"protocol": "fifo", "workload": {"kind": "groups", "members": [["p0", "x"]]}},
        "group 0 must be two or more different processes",
    ),
    (
        {"protocol": "fifo", "faults": [{"kind": "flood", "at": "1s"}]},
        r"run.faults\[0\] needs a kind",
    ),
    ({"protocol": "fifo", "faults": [{"kind": "hold"}]}, "hold needs 'at'"),
    ({"protocol": "fifo", "faults": [{"kind": "partition", "at": "1ns"}]}, "partition needs sides"),
    (
        {"protocol": "fifo", "faults": [{"kind": "hold", "at": "1ns", "processes": ["p99"]}]},
        "hold: there is no process 'p99'",
    ),
    (
        {"protocol": "fifo", "faults": [{"kind": "crash", "at": "1ns", "links": [[0, 10]]}]},
        "crash: there is no process 10",
    ),
    (
        {"protocol": "fifo", "faults": [{"kind": "hold", "at": "1ns", "links": [["p0"]]}]},
        "must be a pair of processes",
    ),
    (
        {
            "protocol": "fifo",
            "faults": [{"kind": "partition", "at": "1s", "sides": [[0, 1], [1]]}],
        },
        "1 is on two sides",
    ),
    (
        {"protocol": "fifo", "faults": [{"kind": "heal", "at": "1ns", "name": "x"}]},
        "heal: no fault is called 'x'",
    ),
    ({"protocol": "fifo", "retransmission": "0ns"}, "retransmission must be more than 0"),
]


@pytest.mark.parametrize(("settings", "says"), WRONG, ids=lambda value: str(value)[:60])
def test_what_is_wrong_is_said_in_one_line(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(SimulationError, match=says) as caught:
        Config.from_dict(settings)
    assert "\n" not in str(caught.value)


def graph(**services: Any) -> dict[str, Any]:
    return {"protocol": "fifo", "workload": {"kind": "microservices", "services": services}}


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (graph(), "services must be a table of services"),
        (graph(a={"calls": ["b"]}), "service 'a' calls 'b', which is not there"),
        (graph(a={"cals": ["b"]}), "services.a: service has no setting 'cals'"),
        (
            graph(a={"calls": ["b"]}, b={"calls": ["c"]}, c={"calls": ["b"]}),
            "in a cycle: b -> c -> b",
        ),
        (graph(a={}, b={}), "no service that starts requests calls another one"),
        (
            graph(a={"calls": ["b"]}, b={}) | {"processes": 5},
            "the microservices workload has 2 processes, not 5",
        ),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_is_wrong_with_a_graph(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(SimulationError, match=says):
        Config.from_dict(settings)


def test_every_kind_of_workload_is_known_by_its_name() -> None:
    own = {"deployment", "replay"}  # these have files of their own
    assert set(workloads.KINDS) == {workload.kind for workload in WORKLOADS.values()} | own
    for kind, cls in workloads.KINDS.items():
        assert cls.kind == kind
