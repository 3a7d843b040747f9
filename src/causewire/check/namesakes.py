"""Tells messages of two incarnations that have one name from messages delivered twice.

A node writes a row `receive` when a message arrives for the first time. If it wrote two for one
message, its sender was started again under the same name in the trace, with a trace file of its
own or with none, and began to number its messages anew. What looks like a second delivery is that
of another message, whose send is in no file: the trace is incomplete.

The rule, which is the same on Spark: in a run with duplicates, of a message that a node received
*r* times and delivered *d* times, min(*r*, *d*) - 1 messages came from other incarnations.

Newer nodes call the second incarnation by another name (`node.recorder`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .._compiled import Longs
from ..trace.reader import Trace
from ..trace.schema import DELIVER, RECEIVE, START
from .columns import RunColumns
from .kernel import UNMATCHED, Odd
from .report import RECEIVED_AGAIN, BadRow, Report

__all__ = ["Namesakes", "namesakes", "told_apart"]

_KEY = ["run", "process", "origin", "mid"]


class Namesakes(NamedTuple):
    """Messages of a run that came from several incarnations of one name."""

    messages: int
    """How many came from others than the first."""
    duplicates: int
    """How many of the duplicates that were counted in this run they are."""
    rows: list[BadRow]
    """Of the first messages: the last row that says so."""


def namesakes(
    trace: Trace, odd: Mapping[str, tuple[RunColumns, Longs]], limit: int
) -> dict[str, Namesakes]:
    """Return the messages that came from several incarnations of one name, by run.

    Args:
        trace: The trace.
        odd: The deliveries that matched nothing in flight, as in `Scan`. All deliveries of a
            message but the first are among them.
        limit: How many bad rows to describe for each run.
    """
    nodes = _nodes(trace)
    if not nodes:
        return {}
    found = _counted(trace, _keys(odd))
    matched = found.filter(pc.greater(found["delivered"], found["odd"]))  # the first delivery was
    of_run = matched.group_by("run").aggregate([("odd", "sum")])
    duplicates = dict(zip(of_run["run"].to_pylist(), of_run["odd_sum"].to_pylist(), strict=True))
    several = found.filter(
        pc.greater(pc.min_element_wise(found["received"], found["delivered"]), 1)
    )
    by_run: dict[str, list[dict[str, Any]]] = {}
    for row in several.sort_by([(name, "ascending") for name in _KEY]).to_pylist():
        if row["run"] in duplicates and (row["run"], row["process"]) in nodes:
            by_run.setdefault(row["run"], []).append(row)
    result = {}
    for run, rows in by_run.items():
        messages = sum(min(row["received"], row["delivered"]) - 1 for row in rows)
        bad = [
            BadRow(run, row["process"], row["seq"], row["origin"], row["mid"], RECEIVED_AGAIN)
            for row in rows[:limit]
        ]
        result[run] = Namesakes(messages, min(messages, duplicates[run]), bad)
    return result


def _nodes(trace: Trace) -> set[tuple[str, str]]:
    """Return run and name of the processes whose rows a node wrote."""
    nodes: set[tuple[str, str]] = set()
    for batch in trace.batches(("run", "process", "kind")):
        columns = batch.columns
        if START in columns["kind"].dictionary.to_pylist():
            mine = columns.filter(pc.equal(columns["kind"].cast(pa.string()), START))
            nodes.update((row["run"], row["process"]) for row in mine.to_pylist())
    return nodes


def _keys(odd: Mapping[str, tuple[RunColumns, Longs]]) -> pa.Table:
    """Return the messages with odd deliveries, and how many each has."""
    parts = []
    for name, (run, every) in odd.items():
        rows = every[every[:, Odd.WHY] == UNMATCHED]
        names = pa.array(run.processes, pa.string())
        process, origin = (names.take(pa.array(rows[:, k])) for k in (Odd.PROCESS, Odd.ORIGIN))
        runs = pa.repeat(pa.scalar(name, pa.string()), len(rows))
        parts.append(
            pa.table([runs, process, origin, np.ascontiguousarray(rows[:, Odd.MID])], _KEY)
        )
    keys = pa.concat_tables(parts).group_by(_KEY).aggregate([([], "count_all")])
    return keys.rename_columns([*_KEY, "odd"])


def _counted(trace: Trace, keys: pa.Table) -> pa.Table:
    """Return these messages, how often each was received and delivered, and its last `seq`."""
    mids = keys["mid"].unique()
    nothing = pa.scalar(None, pa.int64())
    parts = []
    for batch in trace.batches((*_KEY, "seq", "kind")):
        rows = batch.columns.filter(pc.is_in(batch.columns["mid"], mids))
        run, process, origin, kind = (
            rows[name].cast(pa.string()) for name in ("run", "process", "origin", "kind")
        )
        received, delivered = (
            pc.if_else(pc.equal(kind, one), rows["seq"], nothing) for one in (RECEIVE, DELIVER)
        )
        columns = [run, process, origin, rows["mid"], received, delivered]
        some = pa.table(columns, [*_KEY, "received", "delivered"])
        parts.append(some.join(keys, _KEY, join_type="inner"))
    counted = pa.concat_tables(parts).group_by([*_KEY, "odd"])
    found = counted.aggregate(
        [("received", "count_distinct"), ("delivered", "count_distinct"), ("received", "max")]
    )
    return found.rename_columns([*_KEY, "odd", "received", "delivered", "seq"])


def told_apart(report: Report, found: Namesakes) -> None:
    """Count messages of several incarnations as bad rows, instead of as duplicates."""
    report.bad[RECEIVED_AGAIN] += found.messages
    report.duplicates -= found.duplicates
    report.bad_rows = [*report.bad_rows, *found.rows]
