"""Faults do what they say, to the links they name, for as long as they last."""

from __future__ import annotations

from typing import Any

import pytest

from causewire.sim import Config, Crash, Hold, Partition, SimulationError, Slow
from causewire.sim.faults import LinkFault

from .simulated import MS, Judge, play

NAMES = ("a", "b", "c", "d")


def links(fault: LinkFault) -> set[str]:
    """The links that a fault concerns, as 'ab' for a to b."""
    concerns = fault.rule(NAMES).concerns
    n = range(len(NAMES))
    return {NAMES[p] + NAMES[q] for p in n for q in n if p != q and concerns(p, q)}


def test_which_links_are_meant() -> None:
    everything = {p + q for p in NAMES for q in NAMES if p != q}
    assert links(Hold(at=0)) == everything
    assert links(Hold(at=0, processes=("b",))) == {"ab", "ba", "bc", "cb", "bd", "db"}
    assert links(Crash(at=0, links=(("a", "b"), (2, "d")))) == {"ab", "ba", "cd", "dc"}
    assert links(Slow(at=0, factor=2, links=(("a", "b"),), oneway=True)) == {"ab"}
    halves = {"ac", "ca", "ad", "da", "bc", "cb", "bd", "db"}
    assert links(Partition(at=0, sides=2)) == halves
    assert links(Partition(at=0, sides=(("a", "b"), (2, 3)))) == halves
    assert links(Partition(at=0, sides=(("a",), ("b",), ("c",)))) == everything - {
        p + q for p, q in (*("da", "db", "dc"), *("ad", "bd", "cd"))
    }


def stream(faults: list[Any], **settings: Any) -> tuple[Any, Judge]:
    """p0 sends to p1 every 10 ms, from somewhere in the first 10 ms on; latency 3 ms."""
    settings = {
        "protocol": "unordered",
        "processes": {"count": 2, "think": "10ms"},
        "messages": 20,
        "workload": {"kind": "pipeline"},
        "network": {"latency": "3ms"},
        "faults": faults,
        "allow_worse_network": True,
    } | settings
    return play(**settings)


def delivered(judge: Judge) -> dict[int, int]:
    """When each message was delivered, after it was sent."""
    sent = {row.mid: row.time_ns for row in judge.of("send")}
    return {row.mid: row.time_ns - sent[row.mid] for row in judge.of("deliver")}


def sent_within(judge: Judge, start: int, end: int) -> set[int]:
    return {row.mid for row in judge.of("send") if start <= row.time_ns < end}


def test_without_faults_everything_takes_its_latency() -> None:
    _, judge = stream([])
    assert delivered(judge) == dict.fromkeys(range(1, 21), 3 * MS)


def test_a_partition_loses_what_would_arrive_while_it_lasts() -> None:
    summary, judge = stream(
        [
            {"kind": "partition", "at": "50ms", "sides": [["p0"], ["p1"]]},
            {"kind": "heal", "at": "100ms"},
        ]
    )
    lost = sent_within(judge, 47 * MS, 97 * MS)
    assert len(lost) == 5
    assert set(delivered(judge)) == set(range(1, 21)) - lost
    assert {row.mid for row in judge.of("drop")} == lost
    assert all(50 * MS <= row.time_ns < 100 * MS for row in judge.of("drop"))
    assert summary.lost == 5
    assert summary.undelivered.unavoidable
    assert "5 packets were lost, and unordered tolerates no loss" in summary.undelivered.reasons


def test_a_partition_leaves_alone_who_is_on_no_side() -> None:
    partition = {"kind": "partition", "at": "0ns", "sides": [["p0"], ["p2"]]}
    summary, judge = stream([partition], processes={"count": 3, "think": "10ms"}, messages=10)
    assert summary.lost == 0
    assert len(judge.of("deliver")) == 10


def test_a_crash_destroys_what_is_on_its_way() -> None:
    _, judge = stream(
        [{"kind": "crash", "at": "50ms", "links": [[0, 1]]}, {"kind": "heal", "at": "51ms"}]
    )
    under_way = sent_within(judge, 47 * MS, 50 * MS)
    _, other = stream(
        [{"kind": "partition", "at": "50ms", "sides": 2}, {"kind": "heal", "at": "50ms"}]
    )
    assert set(delivered(other)) == set(range(1, 21)), "a partition that is over harms nobody"
    assert set(delivered(judge)) == set(range(1, 21)) - under_way
    _, late = stream(
        [{"kind": "crash", "at": "0ms", "links": [[0, 1]]}, {"kind": "heal", "at": "200ms"}]
    )
    assert set(delivered(late)).isdisjoint(sent_within(late, 0, 197 * MS))


def test_a_crash_in_one_direction() -> None:
    settings: dict[str, Any] = {
        "protocol": "fifo",
        "processes": 2,
        "workload": "request-reply",
        "messages": 1,
        "retransmission": "20ms",
        "network": {"latency": "1ms"},
    }
    crash = {"kind": "crash", "at": "0ns", "links": [["p0", "p1"]], "oneway": True}
    summary, judge = play(**settings, faults=[crash])
    assert summary.deliveries == 1, "the request goes through"
    assert len(judge.of("ack_receive")) == 0, "and its ack does not"
    assert summary.undelivered is None
    assert summary.retransmissions == 64


def test_a_hold_keeps_and_a_release_lets_in_in_order() -> None:
    summary, judge = stream(
        [{"kind": "hold", "at": "50ms", "processes": ["p1"]}, {"kind": "release", "at": "100ms"}]
    )
    held = sent_within(judge, 47 * MS, 97 * MS)
    at = {row.mid: row.time_ns for row in judge.of("deliver")}
    assert len(held) == 5
    assert {at[mid] for mid in held} == {100 * MS}
    assert list(at) == list(range(1, 21)), "nobody is overtaken"
    assert summary.lost == 0
    assert summary.undelivered is None


def test_slow_concerns_what_leaves_while_it_lasts() -> None:
    _, judge = stream(
        [
            {"kind": "slow", "at": "50ms", "links": [[0, 1]], "factor": 4, "name": "mud"},
            {"kind": "heal", "at": "100ms", "name": "mud"},
        ]
    )
    slow = sent_within(judge, 50 * MS, 100 * MS)
    assert len(slow) == 5
    assert delivered(judge) == {mid: (12 if mid in slow else 3) * MS for mid in range(1, 21)}


def test_a_fault_can_be_ended_by_its_name_alone() -> None:
    faults = [
        {"kind": "hold", "at": "0ns", "name": "one", "links": [[0, 1]]},
        {"kind": "hold", "at": "0ns", "name": "two", "processes": [1]},
        {"kind": "release", "at": "20ms", "name": "one"},
        {"kind": "release", "at": "40ms", "name": "two"},
    ]
    _, judge = stream(faults, messages=1)
    assert judge.of("deliver")[0].time_ns == 40 * MS


def test_fifo_channels_stay_fifo_through_faults() -> None:
    faults = [
        {"kind": "slow", "at": "20ms", "factor": 30},
        {"kind": "heal", "at": "60ms"},
        {"kind": "hold", "at": "100ms"},
        {"kind": "release", "at": "130ms"},
    ]
    _, judge = stream(faults, network={"fifo": True})
    assert [row.mid for row in judge.of("deliver")] == list(range(1, 21))
    _, other = stream(faults, network={"fifo": False})
    assert [row.mid for row in other.of("deliver")] != list(range(1, 21))


def test_faults_are_in_the_trace_where_they_strike() -> None:
    faults = [
        {"kind": "partition", "at": "5ms", "sides": [[0], ["p1"]]},
        {"kind": "slow", "at": "6ms", "processes": [2], "factor": 2},
        {"kind": "heal", "at": "7ms"},
        {"kind": "hold", "at": "8ms"},
        {"kind": "release", "at": "9ms"},
    ]
    _, judge = stream(faults, processes={"count": 3, "think": "10ms"})
    rows = [row for row in judge.rows if row.kind.startswith("fault_")]
    every = ("p0", "p1", "p2")
    assert [(row.kind, row.process, row.time_ns // MS) for row in rows] == [
        ("fault_partition", "p0", 5),
        ("fault_partition", "p1", 5),
        ("fault_slow", "p2", 6),
        *(("fault_heal", name, 7) for name in every),
        *(("fault_hold", name, 8) for name in every),
        *(("fault_release", name, 9) for name in every),
    ]
    assert {(row.origin, row.mid, row.peers) for row in rows} == {(None, None, ())}


def test_a_fault_comes_before_what_it_does() -> None:
    _, judge = stream([{"kind": "hold", "at": "0ns"}, {"kind": "release", "at": "60ms"}])
    at_p1 = [row.kind for row in judge.rows if row.process == "p1"]
    assert at_p1[:3] == ["fault_hold", "fault_release", "receive"]
    _, judge = stream([{"kind": "crash", "at": "50ms", "oneway": True, "links": [[0, 1]]}])
    first = next(row for row in judge.rows if row.kind in ("drop", "fault_crash"))
    assert first.kind == "fault_crash"


# -- what cannot be delivered --------------------------------------------------


def test_a_partition_for_good_is_to_blame_and_the_run_ends() -> None:
    summary, judge = play(
        protocol="csps",
        processes=6,
        messages=100,
        faults=[{"kind": "partition", "at": "30ms", "sides": 2, "name": "split"}],
    )
    undelivered = summary.undelivered
    assert undelivered.copies == judge.undelivered > 0
    assert undelivered.unavoidable
    assert undelivered.reasons[0] == "partition 'split' at 30000000 ns was never healed"
    across = int(undelivered.reasons[1].split()[0])
    pairs = {(row.origin, row.mid, row.process) for row in judge.of("deliver")}
    stuck = [
        (row.process, to)
        for row in judge.of("send")
        for to in row.peers
        if (row.process, row.mid, to) not in pairs
    ]
    assert across == sum((p < "p3") != (q < "p3") for p, q in stuck)
    assert not judge.violations


def test_a_hold_for_good_is_to_blame() -> None:
    summary, _ = play(
        protocol="rst",
        processes=3,
        messages=40,
        faults=[{"kind": "hold", "at": "30ms", "processes": [0]}],
    )
    assert summary.undelivered.unavoidable
    assert summary.undelivered.reasons[0] == "hold at 30000000 ns was never released"


def test_what_is_healed_in_time_is_no_excuse() -> None:
    summary, _ = play(
        protocol="csps",
        processes=6,
        messages=100,
        faults=[{"kind": "partition", "at": "30ms", "sides": 2}, {"kind": "heal", "at": "3s"}],
    )
    assert summary.lost > 0
    assert summary.undelivered is None


def test_a_protocol_that_gets_stuck_has_no_excuse() -> None:
    summary, judge = play(
        protocol="cykas-as-printed", processes={"count": 2, "think": "0ns"}, messages=20
    )
    assert summary.undelivered.copies == judge.undelivered > 0
    assert not summary.undelivered.unavoidable
    assert "waits for" in summary.undelivered.reasons[0]


def test_a_fault_elsewhere_is_no_excuse_either() -> None:
    summary, _ = play(
        protocol="cykas-as-printed",
        processes={"count": 4, "think": "0ns"},
        messages=40,
        workload={"kind": "groups", "members": [["p0", "p1"]]},
        faults=[{"kind": "hold", "at": "0ns", "links": [["p2", "p3"]]}],
    )
    assert not summary.undelivered.unavoidable


def test_a_run_that_was_ended_says_so() -> None:
    summary, judge = play(protocol="csps", messages=500, until="50ms")
    assert summary.undelivered.copies == judge.undelivered
    assert summary.undelivered.unavoidable
    assert summary.undelivered.reasons == ("the run was ended at 50000000 ns",)
    assert max(row.time_ns for row in judge.rows) <= 50 * MS
    whole, _ = play(protocol="csps", messages=50, until="1000s")
    assert whole.undelivered is None


@pytest.mark.parametrize("protocol", ["newtop", "pak"])
def test_what_a_worse_network_does_is_told(protocol: str) -> None:
    summary, _ = play(
        protocol=protocol,
        processes={"count": 4, "think": "1ms"},
        messages=80,
        workload={"kind": "broadcast", "lockstep": False},
        network={"fifo": False},
        allow_worse_network=True,
    )
    assert summary.undelivered is None or any("FIFO" in x for x in summary.undelivered.reasons)
    assert summary.refused > 0 or summary.undelivered is not None


def test_a_frozen_receiver_takes_its_packets_when_it_is_thawed() -> None:
    faults = [
        {"kind": "freeze", "at": "50ms", "processes": ["p1"]},
        {"kind": "heal", "at": "60ms"},
        {"kind": "release", "at": "70ms"},
        {"kind": "thaw", "at": "100ms"},
    ]
    summary, judge = stream(faults)
    waited = sent_within(judge, 47 * MS, 97 * MS)
    assert len(waited) == 5
    still = [row for row in judge.rows if row.process == "p1" and 50 * MS < row.time_ns < 100 * MS]
    assert {row.kind for row in still} <= {"fault_heal", "fault_release"}
    late = {row.mid: row.time_ns for row in judge.of("deliver") if row.mid in waited}
    assert set(late.values()) == {100 * MS}
    assert list(late) == sorted(late)
    assert summary.undelivered is None
    assert summary.lost == 0
    assert [row.process for row in judge.of("fault_freeze", "fault_thaw")] == ["p1", "p1"]


def test_a_frozen_sender_sends_nothing_and_goes_on_when_it_is_thawed() -> None:
    faults = [
        {"kind": "freeze", "at": "50ms", "processes": [0], "name": "nap"},
        {"kind": "thaw", "at": "100ms", "name": "nap"},
    ]
    summary, judge = stream(faults)
    assert not sent_within(judge, 50 * MS, 100 * MS)
    assert len(sent_within(judge, 100 * MS, 100 * MS + 1)) == 1
    assert summary.deliveries == 20


@pytest.mark.parametrize("protocol", ["csps", "sps", "ks", "fifo", "rst"])
def test_a_freeze_loses_nothing_under_any_protocol(protocol: str) -> None:
    summary, judge = play(
        protocol=protocol,
        processes={
            "count": 6,
            "handling": "1ms",
            "jobs": {"share": 0.2, "length": "4ms"},
        },
        messages=200,
        workload="relay",
        faults=[
            {"kind": "freeze", "at": "10ms", "processes": [2, 3]},
            {"kind": "thaw", "at": "200ms"},
        ],
        seed=4,
    )
    assert summary.undelivered is None
    assert summary.messages == 200
    assert protocol == "fifo" or not judge.violations


def test_a_process_that_is_never_thawed_is_the_reason() -> None:
    summary, _ = play(
        protocol="csps",
        processes=5,
        messages=100,
        faults=[{"kind": "freeze", "at": "20ms", "processes": ["p3"]}],
    )
    assert summary.undelivered is not None
    assert summary.undelivered.unavoidable
    assert "freeze at 20000000 ns was never thawed" in summary.undelivered.reasons


@pytest.mark.parametrize("where", [{}, {"sides": 2}, {"links": [[0, 1]]}], ids=str)
def test_a_freeze_names_processes(where: dict[str, Any]) -> None:
    with pytest.raises(SimulationError, match="freeze needs processes"):
        Config.from_dict({"protocol": "fifo", "faults": [{"kind": "freeze", "at": "1s", **where}]})
