"""What a watch knows about each run between two batches, in Spark's state store.

    rows.groupBy("run").transformWithStateInPandas(Runs(...), outputStructType=FINDINGS, ...)

Each run has one value, the state of `live.py` or `live_spans.py` as bytes, and one timer. The
value also says when the run counts as ended, which moves with every batch that has rows of it.
The timer does not: when it expires too early, it is set again. So a batch writes the value of a
run, and its timer only once in a while.

A timer expires in a batch that Spark does anyway, after the rows of the batch have been processed.
Batches without rows are for that. With the trigger "available now" there are none, so what is left
then is either checked at once (`final`), or waits for the next call.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from ..trace import Event
from ..trace.formats.rows import Refused
from ..trace.formats.spans import Span, SpanOptions
from .errors import PipelineError
from .live import LiveFinding, LiveRun, LiveViolation, LiveWindow
from .live_spans import LiveSpans

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, TimerValues

__all__ = ["COLUMNS", "FINDINGS", "NOBODY", "STATE", "Runs", "check_state", "spans_in"]

FINDINGS = (
    "table string, run string, process string, seq bigint, time_ns bigint, "
    "first_origin string, first_mid bigint, second_origin string, second_mid bigint, "
    "start_ns bigint, events bigint, sent bigint, delivered bigint, violations bigint, "
    "in_flight bigint, latency_mean_ns double, latency_p50_ns bigint, latency_p99_ns bigint, "
    "latency_max_ns bigint, reason string, file string, row bigint, text string"
)
"""Rows of all tables of a watch in one; `table` names theirs."""

COLUMNS = ("process", "seq", "time_ns", "kind", "origin", "mid", "peers")
"""What a row has to say about an event, besides its run."""

NOBODY = ""
"""The run of rows that could not be understood."""

STATE = "run"
"""The name of the value in Spark's state store."""

_FIELDS = [part.split()[0] for part in FINDINGS.split(", ")]
_VALUE = StructType(
    [
        StructField("live", BinaryType()),
        StructField("ends_ms", LongType()),
        StructField("timer_ms", LongType()),
    ]
)
_PATIENCE = 20
"""A run that has ended, with messages in flight, is forgotten after this many idle times more."""


class Runs(StatefulProcessor):
    """Gives rows to the state of their run, and ends runs for which no row has come for a while.

    Args:
        late_ns: How late a row may be, by the clock of the trace.
        window_ns: The length of a window.
        idle_ms: A run without a new row for this long has ended, by Spark's clock.
        final: The rows of a batch are all that there will be: nothing waits any longer.
        spans: Rows are spans, and these options make events of them.
    """

    def __init__(
        self,
        *,
        late_ns: int,
        window_ns: int,
        idle_ms: int,
        final: bool = False,
        spans: SpanOptions | None = None,
    ) -> None:
        self._late_ns, self._window_ns, self._idle_ms = late_ns, window_ns, idle_ms
        self._final, self._spans = final, spans

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._value = handle.getValueState(STATE, _VALUE)

    def handleInputRows(  # noqa: N802 - Spark's
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: TimerValues,  # noqa: N803 - Spark's
    ) -> Iterator[pd.DataFrame]:
        (run,) = key
        if run == NOBODY:
            for part in rows:
                yield _frame(_refused(part))
            return
        stored = self._value.get()
        live, timer = self._new(run), None
        if stored is not None:
            live, timer = pickle.loads(stored[0]), stored[2]
        live.timed_out = False
        items = events_in(run, rows) if self._spans is None else spans_in(rows)
        told = [*live.add(items), *live.advance(ended=self._final)]
        self._keep(live, timer, timerValues.getCurrentProcessingTimeInMs() + self._idle_ms)
        yield from _frames(run, told)

    def handleExpiredTimer(  # noqa: N802 - Spark's
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803 - Spark's
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803 - Spark's
    ) -> Iterator[pd.DataFrame]:
        stored = self._value.get()
        assert stored is not None, "a run without a state has a timer"
        state, ends, _ = stored
        now = timerValues.getCurrentProcessingTimeInMs()
        if ends > now:  # rows have come since it was set
            self._handle.registerTimer(ends)
            self._value.update((state, ends, ends))
            return
        live = pickle.loads(state)
        told = live.advance(ended=True)
        if live.timed_out or not live.may_hear_more:
            self._value.clear()
        else:  # for instance somebody may still deliver what is in flight
            live.timed_out = True
            self._keep(live, None, now + _PATIENCE * self._idle_ms)
        yield from _frames(key[0], told)

    def _new(self, run: str) -> Any:
        if self._spans is not None:
            return LiveSpans(run, self._spans, self._window_ns)
        return LiveRun(self._late_ns, self._window_ns)

    def _keep(self, live: Any, timer: int | None, ends: int) -> None:
        """Store the state of a run, which has a timer or none, until it counts as ended."""
        if timer is None or timer > ends:
            if timer is not None:
                self._handle.deleteTimer(timer)
            self._handle.registerTimer(ends)
            timer = ends
        self._value.update((pickle.dumps(live), ends, timer))


def check_state(out: Path) -> None:
    """Check that a watch can keep its state, and continue with what is there.

    Raises:
        PipelineError: A package is missing with which PySpark talks to its state store; or the
            checkpoint is from an earlier version of Causewire, which used
            `applyInPandasWithState`.
    """
    try:
        import_module("google.protobuf")
    except ImportError:
        raise PipelineError('watch needs protobuf: pip install "causewire[spark]"') from None
    # Spark describes the operators that have a state here; those of the newer interface in `v2`.
    if (out / "_checkpoint" / "state" / "0" / "_metadata" / "metadata").exists():
        raise PipelineError(
            f"{out} is from an earlier version of Causewire and cannot be continued: remove it "
            "to check everything from its beginning, or write to another directory"
        )


def events_in(run: str, rows: Iterable[pd.DataFrame]) -> Iterator[Event]:
    """Return rows of the stream as events; numbers come as text."""
    for part in rows:
        columns = [part[name].tolist() for name in COLUMNS]
        for process, seq, time_ns, kind, origin, mid, peers in zip(*columns, strict=True):
            yield Event(
                run,
                process,
                int(seq),
                None if time_ns is None else int(time_ns),
                None,
                kind,
                origin,
                None if mid is None else int(mid),
                () if peers is None else tuple(peers),
            )


def spans_in(rows: Iterable[pd.DataFrame]) -> Iterator[Span]:
    """Return rows of a stream of spans as spans."""
    for part in rows:
        for stored in part["span"]:
            yield pickle.loads(stored)


def _refused(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows for the quarantine."""
    result: list[dict[str, Any]] = rows[["file", "row", "reason", "text"]].to_dict("records")
    for row in result:
        row["row"] = None if row["row"] is None else int(row["row"])
        row["table"] = "quarantine"
    return result


def _rows_of(run: str, told: Iterable[LiveFinding | Refused]) -> Iterator[dict[str, Any]]:
    """Return what was found as rows of one table."""
    for item in told:
        row: dict[str, Any] = {"run": run, **item._asdict()}
        if isinstance(item, LiveViolation):
            row["table"] = "violations"
            row["first_origin"], row["first_mid"] = row.pop("first")
            row["second_origin"], row["second_mid"] = row.pop("second")
        elif isinstance(item, LiveWindow):
            row["table"] = "windows"
        elif isinstance(item, Refused):
            row["table"] = "quarantine"
        else:
            row["table"] = "late"
        yield row


def _frames(run: str, told: list[LiveFinding | Refused]) -> Iterator[pd.DataFrame]:
    """Return what was found as a table, if there is something."""
    if told:
        yield _frame(list(_rows_of(run, told)))


def _frame(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """With objects for values: numbers of nanoseconds do not fit into floats."""
    return pd.DataFrame(
        {name: pd.Series([row.get(name) for row in rows], dtype=object) for name in _FIELDS}
    )
