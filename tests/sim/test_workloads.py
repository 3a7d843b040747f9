"""Workloads: who sends to whom, how much in all, and because of what."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from causewire import protocols
from causewire.sim import Config, Processes, SimulationError, simulate, workloads
from causewire.trace import Event, trace_of, write_trace

from .simulated import DIAMOND, MS, WORKLOADS, Judge, play


def config(workload: workloads.Workload, **settings: Any) -> dict[str, Any]:
    own = isinstance(workload, workloads.Microservices)
    return {
        "protocol": "fifo",
        "workload": workload,
        "processes": Processes(count=None if own else 6),
    } | settings


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("messages", [0, 1, 7, 53])
def test_exactly_as_many_messages_as_asked_for(name: str, messages: int) -> None:
    summary, judge = play(**config(WORKLOADS[name], messages=messages))
    assert summary.messages == len(judge.of("send")) == messages
    assert summary.undelivered is None


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("work", [{"handling": "2ms"}, {"jobs": {"share": 0.5}}], ids=str)
def test_the_same_if_processes_are_busy(name: str, work: dict[str, Any]) -> None:
    own = name == "microservices"
    processes = {"count": None if own else 6} | work
    summary, _ = play(**config(WORKLOADS[name], messages=53) | {"processes": processes})
    assert summary.messages == 53
    assert summary.undelivered is None


@pytest.mark.parametrize("name", WORKLOADS)
def test_numbers_of_destinations_are_as_declared(name: str) -> None:
    workload = WORKLOADS[name]
    _, judge = play(**config(workload, messages=60))
    names = Config(**config(workload)).names()
    seen = {len(row.peers) for row in judge.of("send")}
    assert seen == set(workload.reach(names))
    assert all(row.process not in row.peers for row in judge.of("send"))


def pairs(judge: Judge) -> Counter[tuple[str, str]]:
    return Counter((row.process, peer) for row in judge.of("send") for peer in row.peers)


def test_uniform_reaches_everybody_alike() -> None:
    _, judge = play(**config(WORKLOADS["uniform"], messages=3000))
    seen = pairs(judge)
    assert len(seen) == 30
    assert all(60 < count < 140 for count in seen.values())
    assert set(Counter(row.process for row in judge.of("send")).values()) == {500}


def test_correspondents_are_neighbours() -> None:
    _, judge = play(**config(workloads.Uniform(correspondents=2), messages=300))
    expected = {(f"p{i}", f"p{(i + k) % 6}") for i in range(6) for k in (1, 2)}
    assert set(pairs(judge)) == expected


def test_fanout_draws_different_destinations() -> None:
    _, judge = play(**config(workloads.Uniform(fanout=3, correspondents=4), messages=600))
    sets = {row.peers for row in judge.of("send")}
    assert all(len(set(peers)) == 3 for peers in sets)
    chosen = {frozenset(row.peers) for row in judge.of("send") if row.process == "p0"}
    assert chosen == {
        frozenset(f"p{k}" for k in (1, 2, 3, 4) if k != left_out) for left_out in (1, 2, 3, 4)
    }


@pytest.mark.slow
def test_hotspots_get_their_share() -> None:
    hot = workloads.Hotspot(share=0.3, probability=0.8)
    _, judge = play(protocol="fifo", processes=10, messages=4000, workload=hot)
    into = Counter(peer for row in judge.of("send") for peer in row.peers)
    assert sum(into[f"p{i}"] for i in range(3)) / 4000 == pytest.approx(0.8, abs=0.03)
    assert into["p0"] / into["p1"] == pytest.approx(1, abs=0.15)
    assert into["p5"] / into["p6"] == pytest.approx(1, abs=0.35)
    cold = workloads.Hotspot(share=0)
    _, judge = play(protocol="fifo", processes=10, messages=2000, workload=cold)
    into = Counter(peer for row in judge.of("send") for peer in row.peers)
    assert max(into.values()) < 1.4 * min(into.values())


@pytest.mark.parametrize(("n", "share"), [(2, 0.1), (2, 1.0), (3, 0.3), (3, 1.0)])
def test_hotspots_in_small_systems(n: int, share: float) -> None:
    summary, judge = play(
        protocol="fifo",
        processes=n,
        messages=60,
        workload=workloads.Hotspot(share=share, probability=1),
    )
    assert summary.undelivered is None
    assert all(row.process not in row.peers for row in judge.of("send"))


def test_a_pipeline_flows_from_stage_to_stage() -> None:
    _, judge = play(protocol="fifo", processes=4, messages=30, workload="pipeline")
    assert pairs(judge) == {("p0", "p1"): 10, ("p1", "p2"): 10, ("p2", "p3"): 10}
    wide = workloads.Pipeline(stages=3)
    _, judge = play(protocol="fifo", processes=6, messages=40, workload=wide)
    assert set(pairs(judge)) == {
        (f"p{a}", f"p{b}") for s in (0, 2) for a in (s, s + 1) for b in (s + 2, s + 3)
    }


def test_every_request_has_its_reply() -> None:
    calls = workloads.RequestReply(servers=2, outstanding=3)
    _, judge = play(protocol="csps", processes=5, messages=200, workload=calls)
    seen = pairs(judge)
    for client in ("p2", "p3", "p4"):
        for server in ("p0", "p1"):
            assert seen[client, server] == seen[server, client] > 5
    opened: Counter[str] = Counter()
    most = 0
    for row in judge.rows:
        if row.kind == "send" and row.process > "p1":
            opened[row.process] += 1
            most = max(most, opened[row.process])
        elif row.kind == "deliver" and row.process > "p1":
            opened[row.process] -= 1
    assert most == 3


def test_relays_are_chains_of_so_many_hops() -> None:
    _, judge = play(protocol="fifo", processes=6, messages=60, workload=workloads.Relay(hops=5))
    delivered_first: set[tuple[str, int]] = set()
    for before, row in zip(judge.rows, judge.rows[1:], strict=False):
        if row.kind == "send" and before.kind == "deliver" and before.process == row.process:
            delivered_first.add((row.process, row.mid))
    assert len(delivered_first) == 48, "12 chains of 5, each started by one and relayed by four"


@pytest.mark.slow
def test_a_graph_of_services() -> None:
    graph = workloads.Microservices(services=DIAMOND)
    _, judge = play(protocol="fifo", messages=600, workload=graph)
    calls: Counter[tuple[str, str]] = Counter()
    for (source, destination), count in pairs(judge).items():
        calls[source.split(".")[0], destination.split(".")[0]] += count
    assert set(calls) == {
        ("gateway", "cart"),
        ("gateway", "stock"),
        ("cart", "stock"),
        ("cart", "price"),
    }
    assert calls["cart", "price"] == pytest.approx(2 * calls["cart", "stock"], abs=8)
    both = Counter(peer for row in judge.of("send") for peer in row.peers)
    assert both["cart.0"] / both["cart.1"] == pytest.approx(1, abs=0.5)


@pytest.mark.parametrize("balance", ["random", "round-robin", "sticky"])
def test_load_balancing(balance: str) -> None:
    services: dict[str, Any] = {
        "front": {"replicas": 2, "calls": ["back"]},
        "back": {"replicas": 3, "balance": balance},
    }
    graph = workloads.Microservices(services=services)
    _, judge = play(protocol="fifo", messages=120, workload=graph)
    for replica in ("front.0", "front.1"):
        order = [row.peers[0] for row in judge.of("send") if row.process == replica]
        if balance == "sticky":
            assert len(set(order)) == 1
        elif balance == "round-robin":
            assert all(a == b for a, b in zip(order, order[3:], strict=False))
            assert len(set(order)) == 3
        else:
            assert len(set(order)) == 3
            assert any(a != b for a, b in zip(order, order[3:], strict=False))


def test_calls_with_a_probability() -> None:
    services: dict[str, Any] = {
        "a": {"calls": ["b", {"to": "c", "probability": 0.25}]},
        "b": {},
        "c": {},
    }
    graph = workloads.Microservices(services=services)
    _, judge = play(protocol="fifo", messages=1000, workload=graph)
    seen = pairs(judge)
    assert seen["a.0", "c.0"] / seen["a.0", "b.0"] == pytest.approx(0.25, abs=0.06)


def test_rounds_keep_step() -> None:
    _, judge = play(protocol="csps", processes=4, messages=22, workload="broadcast")
    rounds = dict.fromkeys(("p0", "p1", "p2", "p3"), 0)
    got: Counter[tuple[str, int]] = Counter()
    for row in judge.rows:
        if row.kind == "send":
            if row.mid > 1:
                assert got[row.process, row.mid - 1] == 3, "all of the last round were there"
            rounds[row.process] += 1
        elif row.kind == "deliver":
            got[row.process, row.mid] += 1
    assert rounds == {"p0": 6, "p1": 6, "p2": 5, "p3": 5}


def test_groups_overlap() -> None:
    assert workloads.Groups(size=3, groups=2).of("abcdef") == [("a", "b", "c"), ("d", "e", "f")]
    ring = workloads.Groups(size=2).of("abc")
    assert ring == [("a", "b"), ("b", "c"), ("c", "a")]
    given = workloads.Groups(members=(("p0", "p1", "p2"), ("p2", "p3")))
    _, judge = play(protocol="fifo", processes=5, messages=100, workload=given)
    sets = {(row.process, frozenset(row.peers)) for row in judge.of("send")}
    assert sets == {
        ("p0", frozenset({"p1", "p2"})),
        ("p1", frozenset({"p0", "p2"})),
        ("p2", frozenset({"p0", "p1"})),
        ("p2", frozenset({"p3"})),
        ("p3", frozenset({"p2"})),
    }


# -- what a protocol cannot carry ----------------------------------------------


@pytest.mark.parametrize("protocol", protocols.names())
@pytest.mark.parametrize("name", WORKLOADS)
def test_what_cannot_be_carried_is_refused_before_anything_happens(
    protocol: str, name: str
) -> None:
    described = protocols.describe(protocol)
    settings = config(WORKLOADS[name], messages=3, protocol=protocol)
    reach = WORKLOADS[name].reach(Config(**config(WORKLOADS[name])).names())
    possible = all(
        (k == 5 and described.broadcast)
        or (k == 1 and described.unicast)
        or (k > 1 and described.multicast)
        for k in reach
    )
    if possible:
        play(**settings)
    else:
        with pytest.raises(SimulationError, match=f"cannot carry the {WORKLOADS[name].kind} ") as e:
            Config(**settings)
        assert "\n" not in str(e.value)


def test_between_two_processes_everything_is_a_broadcast() -> None:
    summary, judge = play(protocol="bss", processes=2, messages=20, workload="relay")
    assert summary.deliveries == 20
    assert not judge.violations


@pytest.mark.parametrize(
    ("protocol", "settings", "says"),
    [
        ("rst", {"network": {"loss": 0.1}}, "rst tolerates no loss"),
        ("rst", {"faults": [{"kind": "crash", "at": "5ns"}]}, "rst tolerates no loss .a crash"),
        ("unordered", {"network": {"duplicate": 0.1}}, "unordered tolerates no duplication"),
        ("pak", {"network": {"fifo": False}, "workload": "broadcast"}, "pak needs FIFO channels"),
    ],
)
def test_a_network_that_is_too_bad_is_refused(
    protocol: str, settings: dict[str, Any], says: str
) -> None:
    with pytest.raises(SimulationError, match=says):
        Config.from_dict({"protocol": protocol} | settings)
    Config.from_dict({"protocol": protocol, "allow_worse_network": True} | settings)


def test_channels_are_fifo_if_the_protocol_needs_it_and_nothing_else_is_said() -> None:
    assert Config(protocol="pak", workload=workloads.Broadcast()).fifo()
    assert not Config(protocol="csps").fifo()


# -- replay --------------------------------------------------------------------


def past(rows: list[Any]) -> dict[tuple[str, int], set[tuple[str, int]]]:
    """For each message, all that happened before it."""
    known: dict[str, set[tuple[str, int]]] = {}
    before: dict[tuple[str, int], set[tuple[str, int]]] = {}
    for row in rows:
        mine = known.setdefault(row.process, set())
        if row.kind == "send":
            before[row.origin, row.mid] = set(mine)
            mine.add((row.origin, row.mid))
        elif row.kind == "deliver":
            mine |= before[row.origin, row.mid] | {(row.origin, row.mid)}
    return before


@pytest.mark.parametrize("pace", [True, False])
@pytest.mark.parametrize("name", ["relay", "request-reply", "broadcast", "groups"])
def test_a_replay_keeps_what_each_send_depended_on(name: str, pace: bool) -> None:
    _, original = play(**config(WORKLOADS[name], messages=60, seed=9))
    replay = workloads.Replay(trace=trace_of(original.rows), pace=pace)
    summary, again = play(protocol="csps", workload=replay, seed=10)
    assert summary.undelivered is None
    assert not again.violations
    sends = {(row.origin, row.mid): row.peers for row in original.of("send")}
    assert {(row.origin, row.mid): row.peers for row in again.of("send")} == sends
    was, now = past(original.rows), past(again.rows)
    assert all(was[message] <= now[message] for message in was)
    assert any(was.values())


@pytest.mark.parametrize("protocol", [n for n in protocols.names() if protocols.describe(n).causal])
def test_a_replay_under_every_protocol(protocol: str) -> None:
    described = protocols.describe(protocol)
    name = "relay" if described.unicast else "broadcast"
    _, original = play(**config(WORKLOADS[name], messages=60, seed=9))
    summary, again = play(
        protocol=protocol, workload=workloads.Replay(trace=trace_of(original.rows))
    )
    assert summary.messages == 60
    assert summary.undelivered is None
    assert not again.violations


def test_a_replay_keeps_the_pauses() -> None:
    _, original = play(
        protocol="unordered",
        processes={"count": 2, "think": "10ms"},
        messages=20,
        workload="pipeline",
        network={"latency": "1ms"},
    )
    replay = workloads.Replay(trace=trace_of(original.rows))
    _, again = play(protocol="unordered", workload=replay, network={"latency": "7ms"})
    start = original.rows[0].time_ns
    assert [row.time_ns for row in again.of("send")] == [
        row.time_ns - start for row in original.of("send")
    ]
    assert {row.time_ns for row in again.of("deliver")} == {
        row.time_ns + 7 * MS for row in again.of("send")
    }


def rows(*events: tuple[str, str, str, int, tuple[str, ...]]) -> list[Event]:
    counts: Counter[str] = Counter()
    made = []
    for process, kind, origin, mid, peers in events:
        made.append(Event("r", process, counts[process], None, None, kind, origin, mid, peers))
        counts[process] += 1
    return made


def test_a_replay_of_a_foreign_trace() -> None:
    foreign = rows(
        ("x", "send", "x", 70, ("y", "z")),
        ("x", "send", "x", 3, ("x",)),
        ("x", "deliver", "x", 3, ("x",)),
        ("y", "deliver", "x", 70, ("x",)),
        ("y", "send", "y", 8, ("z",)),
        ("x", "send", "x", 9, ("y",)),
    )
    replay = workloads.Replay(trace=trace_of(foreign))
    summary, judge = play(protocol="csps", workload=replay)
    assert summary.messages == 4
    assert summary.copies == summary.deliveries == 5
    assert Config(protocol="csps", workload=replay).names() == ("x", "y", "z")
    order = [(row.kind, row.mid) for row in judge.rows if row.process == "x"]
    assert [x for x in order if x[0] in ("send", "deliver")] == [
        ("send", 1),
        ("send", 2),
        ("deliver", 2),
        ("send", 3),
    ]


def test_a_replay_of_a_file(tmp_path: Path) -> None:
    judge = Judge()
    simulate(Config(protocol="fifo", messages=20, workload=workloads.Relay()), judge, run="one")
    path = tmp_path / "old.jsonl"
    write_trace(path, judge.rows)
    summary, _ = play(protocol="csps", workload={"kind": "replay", "trace": str(path)})
    assert summary.messages == 20
    other = Judge()
    simulate(Config(protocol="fifo", messages=30), other, run="two")
    write_trace(path, judge.rows + other.rows)
    with pytest.raises(SimulationError, match="has several runs"):
        workloads.Replay(trace=str(path))
    assert workloads.Replay(trace=str(path), run="two").own_messages() == 30
    with pytest.raises(SimulationError, match="nothing is sent in run 'three'"):
        workloads.Replay(trace=str(path), run="three")
    with pytest.raises(SimulationError, match="no such file"):
        workloads.Replay(trace=str(tmp_path / "none.jsonl"))


@pytest.mark.parametrize(
    ("events", "says"),
    [
        ([("y", "deliver", "x", 1, ("x",)), ("y", "send", "y", 1, ("x",))], "does not send"),
        ([("x", "send", "x", 1, ("y",)), ("x", "send", "x", 1, ("y",))], "message 1 twice"),
        ([("x", "send", "x", 1, ())], "to nobody"),
        ([], "nothing is sent"),
    ],
)
def test_traces_that_cannot_be_replayed(events: Any, says: str) -> None:
    with pytest.raises(SimulationError, match=says):
        workloads.Replay(trace=trace_of(rows(*events)))


def test_a_replay_that_a_protocol_cannot_carry() -> None:
    foreign = rows(("x", "send", "x", 1, ("y",)), ("z", "send", "z", 1, ("x", "y")))
    replay = workloads.Replay(trace=trace_of(foreign))
    with pytest.raises(SimulationError, match="bss only broadcasts, and cannot carry the replay"):
        Config(protocol="bss", workload=replay)
