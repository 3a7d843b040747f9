"""Processes at work: handling, jobs that block and jobs that do not, think time."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from causewire.sim import Summary

from .simulated import MS, Judge, play


def ping(messages: int = 2, **processes: Any) -> tuple[Summary, Judge]:
    """A client and a server, over a network that takes a millisecond."""
    return play(
        protocol="unordered",
        processes={"count": 2, "think": "0ns"} | processes,
        messages=messages,
        workload="request-reply",
        network={"latency": "1ms"},
    )


def times(judge: Judge, kind: str) -> list[int]:
    return [row.time_ns for row in judge.of(kind)]


def test_a_reaction_is_sent_inside_the_delivery() -> None:
    summary, judge = ping()
    assert times(judge, "send") == [0, MS]
    kinds = [row.kind for row in judge.rows if row.process == "p0"]
    assert kinds == ["receive", "deliver", "send", "release"]
    assert summary.simulated_ns == summary.execution_ns == 2 * MS


def test_handling_takes_its_time_before_the_reaction() -> None:
    summary, judge = ping(handling="5ms")
    assert times(judge, "deliver") == [MS, 7 * MS]
    assert times(judge, "send") == [0, 6 * MS]
    assert summary.latency.max_ns == MS, "a message is delivered when it is there, not when handled"
    assert summary.execution_ns == 12 * MS, "the client handles the reply"
    assert summary.simulated_ns == 12 * MS


def test_messages_are_handled_one_after_another() -> None:
    _, judge = play(
        protocol="unordered",
        processes={"count": 5, "think": "0ns", "handling": "5ms"},
        messages=8,
        workload="request-reply",
        network={"latency": "1ms"},
    )
    replies = [row.time_ns for row in judge.of("send") if row.process == "p0"]
    assert replies == [6 * MS, 11 * MS, 16 * MS, 21 * MS]


def test_think_time_is_from_send_to_send() -> None:
    _, judge = play(
        protocol="unordered",
        processes={"count": 3, "think": "10ms"},
        messages=30,
        network={"latency": "1ms"},
    )
    for name in ("p0", "p1", "p2"):
        sends = [row.time_ns for row in judge.of("send") if row.process == name]
        assert len(sends) == 10
        assert 0 <= sends[0] < 10 * MS
        assert all(b - a == 10 * MS for a, b in pairwise(sends))


def test_a_busy_process_sends_its_own_when_it_is_free() -> None:
    _, judge = play(
        protocol="unordered",
        processes={"count": 2, "think": "1ms", "handling": "20ms"},
        messages=20,
        network={"latency": "1ms"},
    )
    for name in ("p0", "p1"):
        arrived = next(r.time_ns for r in judge.of("deliver") if r.process == name)
        sends = [row.time_ns for row in judge.of("send") if row.process == name]
        assert not [t for t in sends if arrived < t < arrived + 20 * MS]
        assert [t for t in sends if t >= arrived + 20 * MS]


@pytest.mark.parametrize("blocking", [True, False])
def test_jobs(blocking: bool) -> None:
    jobs = {"share": 1, "length": "50ms", "blocking": blocking}
    summary, judge = play(
        protocol="unordered",
        processes={"count": 4, "think": "0ns", "handling": "2ms", "jobs": jobs},
        messages=6,
        workload="request-reply",
        network={"latency": "1ms"},
    )
    at_server = [row for row in judge.rows if row.process == "p0"]
    starts = [row.time_ns for row in at_server if row.kind == "job_start"]
    ends = [row.time_ns for row in at_server if row.kind == "job_end"]
    replies = [row.time_ns for row in at_server if row.kind == "send"]
    if blocking:
        assert starts == [3 * MS, 55 * MS, 107 * MS], "the second waits for the first"
    else:
        assert starts == [3 * MS, 5 * MS, 7 * MS], "only the handling is one by one"
    assert ends == [start + 50 * MS for start in starts]
    assert replies == ends, "the reply is the outcome of the job"
    assert summary.jobs == 6
    every_start = times(judge, "job_start")
    assert summary.job_start.max_ns == max(every_start)
    assert summary.job_start.mean_ns == pytest.approx(sum(every_start) / 6)
    sent = {(row.origin, row.mid): row.time_ns for row in judge.of("send")}
    waits = [row.time_ns - sent[row.origin, row.mid] for row in judge.of("job_start")]
    assert summary.job_delay.max_ns == max(waits)


def test_a_share_of_the_messages_starts_jobs() -> None:
    jobs = {"share": 0.25, "length": {"kind": "normal", "mean": "5ms", "deviation": "1ms"}}
    summary, judge = play(
        protocol="unordered", processes={"count": 10, "jobs": jobs}, messages=800, seed=5
    )
    assert summary.jobs == len(judge.of("job_start")) == len(judge.of("job_end"))
    assert summary.jobs / 800 == pytest.approx(0.25, abs=0.05)
    start = {(row.process, row.origin, row.mid): row.time_ns for row in judge.of("job_start")}
    lengths = [row.time_ns - start[row.process, row.origin, row.mid] for row in judge.of("job_end")]
    assert sum(lengths) / len(lengths) == pytest.approx(5 * MS, rel=0.05)
    assert len(set(lengths)) > 100


def test_a_busy_application_does_not_keep_the_protocol_from_its_work() -> None:
    _, judge = play(
        protocol="csps",
        processes={"count": 2, "think": "1ms", "jobs": {"share": 1, "length": "1s"}},
        messages=10,
        network={"latency": "1ms"},
    )
    acks = [row.time_ns for row in judge.of("ack")]
    deliveries = times(judge, "deliver")
    assert acks[0] == deliveries[0]
