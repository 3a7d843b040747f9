"""Checks and measures the traces of the chats, on Spark or in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..check import Report, check
from ..trace import DELIVER, RELEASE, SEND, open_trace

__all__ = ["EXAMPLES", "Judgement", "judge_here", "judge_on_spark"]

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
    median_ns: float
    """From the send to the delivery of a copy."""
    p99_ns: float
    metadata: float
    """Bytes of a copy apart from its payload, on average."""
    row: dict[str, Any] | None = None
    """All measurements of the pipeline, if it was used: a row of `pipeline.metrics.RUNS`."""


def judge_on_spark(folders: Sequence[Path], master: str | None, say: Say) -> list[Judgement]:
    """Check and measure with the pipeline, in one Spark session.

    Args:
        folders: Directories of traces, each with the name of its run.
        master: The Spark master, or None for this machine.
        say: Called with what is being done.

    Raises:
        PipelineError: Spark cannot be started, or fails.
    """
    from ..pipeline import PipelineError, session
    from ..pipeline.check import check_paths
    from ..pipeline.errors import reason
    from ..pipeline.metrics import copies, runs
    from ..pipeline.sources import ingest

    say("starting Spark")
    with session(master, memory="1g", config=_SMALL) as spark:
        reports = []
        for folder in folders:
            say(f"checking {folder.name}")
            reports.append(check_paths([folder], examples=EXAMPLES))
        say("measuring")
        try:
            # Small, and looked at many times: kept, so that they are not planned each time.
            events = ingest(spark, [str(folder) for folder in folders]).events.localCheckpoint()
            table = copies(events).localCheckpoint()
            rows = {row["run"]: row.asDict() for row in runs(events, table).collect()}
        except Exception as error:  # Spark raises what it likes
            raise PipelineError(reason(error)) from None
    return [
        _measured(report, rows[folder.name])
        for folder, report in zip(folders, reports, strict=True)
    ]


def _measured(report: Report, row: dict[str, Any]) -> Judgement:
    times = row["latency_p50_ns"], row["latency_p99_ns"]
    return Judgement(report, *times, row["metadata_bytes"] / row["copies"], row)


def judge_here(folder: Path) -> Judgement:
    """Check and measure in this process."""
    trace = open_trace(folder)
    sent: dict[tuple[str | None, int | None], int] = {}
    delivered = []
    metadata = []
    for event in trace.events():
        message = (event.origin, event.mid)
        if event.kind == SEND:
            sent[message] = event.time_ns or 0
        elif event.kind == DELIVER:
            delivered.append((message, event.time_ns or 0))
        elif event.kind == RELEASE:
            metadata.append(event.metadata_bytes or 0)
    latencies = sorted(time - sent[message] for message, time in delivered)
    return Judgement(
        check(trace, examples=EXAMPLES),
        _percentile(latencies, 50),
        _percentile(latencies, 99),
        sum(metadata) / len(metadata),
    )


def _percentile(ordered: Sequence[int], percent: int) -> int:
    """Return the least value that is not exceeded by that percentage of the values."""
    return ordered[-(-len(ordered) * percent // 100) - 1]
