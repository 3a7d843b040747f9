"""Checks and measures the traces of the chats, on Spark or in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple

from ..check import Report, check
from ..trace import DELIVER, RECEIVE, RELEASE, SEND, open_trace

__all__ = ["EXAMPLES", "Isolation", "Judgement", "isolation", "judge_here", "judge_on_spark"]

EXAMPLES = 200
"""The number of violations from which the one to show is chosen."""

Say = Callable[[str], None]

_SMALL = {
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
"""Settings for a short session with thousands of rows."""


class Judgement(NamedTuple):
    """The result of the check of one chat, and its measurements."""

    report: Report
    mean_ns: float
    """From the send to the delivery of a copy."""
    unavoidable_ns: float
    """What a protocol that knows everything would have taken, on average."""
    median_ns: float
    """From the send to the delivery of a copy."""
    p99_ns: float
    metadata: float
    """Bytes of a copy apart from its payload, on average."""
    row: dict[str, Any] | None = None
    """All measurements of the pipeline, if it was used: a row of `metrics.RUNS`."""


def judge_on_spark(
    folders: Sequence[Path],
    master: str | None,
    say: Say,
    tasks: Callable[[int, int], None],
) -> list[Judgement]:
    """Check and measure with the pipeline, in one Spark session.

    Args:
        folders: Directories of traces, each with the name of its run.
        master: The Spark master, or None for this machine.
        say: Called with what is being done.
        tasks: Called with the tasks that are done so far, and all, from another thread.

    Raises:
        PipelineError: Spark cannot be started, or fails.
    """
    from ..pipeline import session
    from ..pipeline.check import check_paths
    from ..pipeline.metrics import measure_paths
    from ..pipeline.stages import tasks_told

    say("starting Spark")
    with session(master, memory="1g", config=_SMALL) as spark, tasks_told(spark, tasks):
        reports = []
        for folder in folders:
            say(f"checking {folder.name}")
            reports.append(check_paths([folder], examples=EXAMPLES))
        say("measuring")
        rows = {row["run"]: row for row in measure_paths(folders).to_pylist()}
    return [
        _measured(report, rows[folder.name])
        for folder, report in zip(folders, reports, strict=True)
    ]


def _measured(report: Report, row: dict[str, Any]) -> Judgement:
    means = row["latency_mean_ns"], row["unavoidable_mean_ns"]
    percentiles = row["latency_p50_ns"], row["latency_p99_ns"]
    return Judgement(report, *means, *percentiles, row["metadata_bytes"] / row["copies"], row)


def judge_here(folder: Path) -> Judgement:
    """Check and measure in this process."""
    trace = open_trace(folder)
    copies = _copies(folder)
    latencies = sorted(copy.delivered - copy.sent for copy in copies)
    metadata = [e.metadata_bytes or 0 for e in trace.events() if e.kind == RELEASE]
    return Judgement(
        check(trace, examples=EXAMPLES),
        fmean(latencies),
        fmean(copy.earliest - copy.sent for copy in copies),
        _percentile(latencies, 50),
        _percentile(latencies, 99),
        fmean(metadata),
    )


class _Copy(NamedTuple):
    """A message on its way to one reader."""

    origin: str
    reader: str
    sent: int
    delivered: int
    earliest: int
    """When a protocol that knows everything would have delivered it."""


def _copies(folder: Path) -> list[_Copy]:
    """Return all copies that were delivered, with the earliest possible delivery of each.

    That is when the copy itself and all messages to the same reader in its past have
    arrived, if each had been put on the network when it was sent.
    """
    events = sorted(open_trace(folder).events(), key=lambda e: (e.lamport or 0, e.process))
    left: dict[tuple[str, str, int], int] = {}
    travelled: dict[tuple[str, str, int], int] = {}
    for e in events:
        if e.kind == RELEASE:
            for peer in e.peers:
                left.setdefault((peer, e.process, e.mid or 0), e.time_ns or 0)
        elif e.kind == RECEIVE:
            key = (e.process, e.origin or "", e.mid or 0)
            travelled.setdefault(key, (e.time_ns or 0) - left.get(key, e.time_ns or 0))
    known: dict[str, dict[str, int]] = {}
    """For each friend, and each reader: the latest arrival of a message in the friend's past."""
    carried: dict[tuple[str, int], dict[str, int]] = {}
    sent: dict[tuple[str, int], int] = {}
    earliest: dict[tuple[str, str, int], int] = {}
    copies = []
    for e in events:
        message = (e.origin or "", e.mid or 0)
        past = known.setdefault(e.process, {})
        now = e.time_ns or 0
        if e.kind == SEND:
            sent[message] = now
            for reader in e.peers:
                arrives = now + travelled.get((reader, *message), 0)
                past[reader] = earliest[reader, *message] = max(past.get(reader, 0), arrives)
            carried[message] = dict(past)
        elif e.kind == DELIVER and message in sent:
            for reader, arrival in carried[message].items():
                past[reader] = max(past.get(reader, 0), arrival)
            copies.append(
                _Copy(message[0], e.process, sent[message], now, earliest[e.process, *message])
            )
    return copies


class Isolation(NamedTuple):
    """What the other friends got done while one of them stood still."""

    lines: int
    """Copies of lines that they sent to each other in that time."""
    read: int
    """How many of these were read before it was over."""
    median_ns: float | None
    before_ns: float | None
    """Median latencies among them, in that time and before; None if nothing was written."""


def isolation(folder: Path, who: str, frozen: tuple[int, int]) -> Isolation:
    """Return how the others fared in a chat in which one friend stood still.

    Args:
        folder: The traces of the chat.
        who: The friend who stood still.
        frozen: From when to when, in nanoseconds.
    """
    begun, ended = frozen
    margin = (ended - begun) // 4  # a line takes a moment to be read in any case
    others = [copy for copy in _copies(folder) if who not in (copy.origin, copy.reader)]
    during = [copy for copy in others if begun <= copy.sent < ended - margin]
    before = [copy.delivered - copy.sent for copy in others if copy.sent < begun]
    return Isolation(
        len(during),
        sum(copy.delivered < ended for copy in during),
        median(copy.delivered - copy.sent for copy in during) if during else None,
        median(before) if before else None,
    )


def _percentile(ordered: Sequence[int], percent: int) -> int:
    """Return the least value that is not exceeded by that percentage of the values."""
    return ordered[-(-len(ordered) * percent // 100) - 1]
