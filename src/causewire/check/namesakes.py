"""Tells messages of two incarnations that have one name from messages delivered twice.

A node writes a row `receive` when a message arrives for the first time. If it wrote two for one
message, its sender was started again under the same name in the trace, with a trace file of its
own or with none, and began to number its messages anew. What looks like a second delivery is that
of another message, whose send is in no file: the trace is incomplete.

Newer nodes call the second incarnation by another name (`node.recorder`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ..trace.reader import Trace
from ..trace.schema import DELIVER, RECEIVE, START
from .report import RECEIVED_AGAIN, BadRow, Report

__all__ = ["Namesake", "namesakes", "told_apart"]

_KEY = ["run", "process", "origin", "mid"]


class Namesake(NamedTuple):
    """A message that a node received more than once, each time for the first time."""

    run: str
    process: str
    origin: str
    mid: int
    seq: int
    """The last row that says so."""
    received: int
    delivered: int


def namesakes(trace: Trace) -> list[Namesake]:
    """Return the messages of a trace that came from several incarnations of one name."""
    nodes = _nodes(trace)
    parts = []
    for batch in trace.batches(("run", "process", "seq", "kind", "origin", "mid")) if nodes else ():
        kinds = batch.columns["kind"].cast(pa.string())
        mine = batch.columns.filter(pc.is_in(kinds, pa.array([RECEIVE, DELIVER])))
        names = [mine[name].cast(pa.string()) for name in ("run", "process", "origin", "kind")]
        columns = [*names, mine["mid"], mine["seq"]]
        parts.append(pa.table(columns, ["run", "process", "origin", "kind", "mid", "seq"]))
    if not parts:
        return []
    last = pa.concat_tables(parts).group_by([*_KEY, "kind"])
    rows = last.aggregate([("seq", "count_distinct"), ("seq", "max")])
    received = rows.filter(pc.equal(rows["kind"], RECEIVE))
    several = received.filter(pc.greater(received["seq_count_distinct"], 1))
    delivered = rows.filter(pc.equal(rows["kind"], DELIVER)).select([*_KEY, "seq_count_distinct"])
    delivered = delivered.rename_columns([*_KEY, "delivered"])
    found = [
        Namesake(
            run=row["run"],
            process=row["process"],
            origin=row["origin"],
            mid=row["mid"],
            seq=row["seq_max"],
            received=row["seq_count_distinct"],
            delivered=row["delivered"] or 0,
        )
        for row in several.join(delivered, _KEY).to_pylist()
        if (row["run"], row["process"]) in nodes
    ]
    return sorted(found)


def _nodes(trace: Trace) -> set[tuple[str, str]]:
    """Return run and name of the processes whose rows a node wrote."""
    nodes: set[tuple[str, str]] = set()
    for batch in trace.batches(("run", "process", "kind")):
        columns = batch.columns
        if START in columns["kind"].dictionary.to_pylist():
            mine = columns.filter(pc.equal(columns["kind"].cast(pa.string()), START))
            nodes.update((row["run"], row["process"]) for row in mine.to_pylist())
    return nodes


def told_apart(report: Report, found: Iterable[Namesake], limit: int) -> Report:
    """Count messages of several incarnations as bad rows, instead of as duplicates."""
    for one in found:
        again = one.received - 1
        report.bad[RECEIVED_AGAIN] += again
        report.duplicates -= min(again, max(one.delivered - 1, 0), report.duplicates)
        row = BadRow(one.run, one.process, one.seq, one.origin, one.mid, RECEIVED_AGAIN)
        report.bad_rows = [*report.bad_rows, row][:limit]
    return report
