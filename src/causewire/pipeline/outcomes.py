"""What was found in a run: one row of a table, wherever the run was checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..check import BadRow, Kernel, Link, MessageId, OrderError, Report, Source, Violation
from ..check.columns import ScatteredRunError
from ..check.explain import explain
from ..check.oddities import judge
from ..trace import TraceError

__all__ = [
    "OUTCOME",
    "VIOLATION",
    "detail_of",
    "error_of",
    "failed",
    "judged",
    "out_of_order",
    "outcome",
    "report_of",
]

_MESSAGE = pa.struct([("origin", pa.string()), ("mid", pa.int64())])
_LINK = pa.struct([*_MESSAGE, ("to", pa.list_(pa.string()))])

VIOLATION = pa.schema(
    [
        ("run", pa.string()),
        ("process", pa.string()),
        ("seq", pa.int64()),
        ("first", _MESSAGE),
        ("second", _MESSAGE),
        ("late", pa.bool_()),
        ("chain", pa.list_(_LINK)),
    ]
)
"""A violation as a row; the fields are those of `check.Violation`."""

_BAD_ROW = pa.struct(
    [
        ("run", pa.string()),
        ("process", pa.string()),
        ("seq", pa.int64()),
        ("origin", pa.string()),
        ("mid", pa.int64()),
        ("reason", pa.string()),
    ]
)

_SUMS = ("events", "messages", "processes", "violations", "duplicates", "undelivered")

OUTCOME = pa.schema(
    [
        ("run", pa.string()),
        *((name, pa.int64()) for name in ("position", *_SUMS)),
        ("bad", pa.map_(pa.string(), pa.int64())),
        ("examples", pa.list_(pa.struct(VIOLATION))),
        ("bad_rows", pa.list_(_BAD_ROW)),
        ("trouble", pa.string()),
        ("detail", pa.string()),
    ]
)
"""A run as a row. `position` is that of its first row, for the order of runs.
`trouble` is why it could not be checked: `order`, or `error`, which is told in
`detail` as file, row and reason."""

ORDER, ERROR = "order", "error"


def outcome(source: Source, examples: int) -> dict[str, Any]:
    """Check a run that is small enough to be read several times."""
    kernel = Kernel(examples=examples, unique=source.unique)
    events, position = 0, -1
    processes: list[str] = []
    for chunk in source.chunks():
        if position < 0:
            position = chunk.position
        processes = chunk.run.processes
        kernel.feed(chunk.columns, len(processes), chunk.position)
        events += len(chunk.columns.kind)
        run = chunk.run
    if position < 0:
        raise ValueError("a run without rows")
    verdict = judge(source, {run.name: (run, kernel.odd)} if len(kernel.odd) else {}, examples)
    shown = explain(source, {run.name: (run, kernel.found)}) if len(kernel.found) else []
    bad = verdict.bad
    if source.repeated:
        bad = bad + Counter({"sent a second time": source.repeated})
    return {
        "run": run.name,
        "position": position,
        "events": events,
        "messages": kernel.messages,
        "processes": len(processes),
        "violations": kernel.violations,
        "duplicates": verdict.duplicates,
        "undelivered": kernel.undelivered,
        "bad": list(bad.items()),
        "examples": [violation.to_json() for violation in shown],
        "bad_rows": [
            row._asdict() for row in [*source.repeated_rows(examples), *verdict.rows][:examples]
        ],
    }


def judged(source: Source, examples: int) -> dict[str, Any]:
    """The same, or the row that says why not."""
    try:
        return outcome(source, examples)
    except (OrderError, ScatteredRunError):
        return out_of_order(source.name)
    except TraceError as error:
        return failed(source.name, error)


def out_of_order(run: str) -> dict[str, Any]:
    """The row of a run whose rows have to be sorted first."""
    return {"run": run, "trouble": ORDER}


def failed(run: str, error: TraceError) -> dict[str, Any]:
    """The row of a run that cannot be read, or cannot have happened."""
    return {"run": run, "trouble": ERROR, "detail": detail_of(error)}


def detail_of(error: TraceError) -> str:
    """An error as one text: file, row and reason."""
    where = "" if error.row is None else str(error.row)
    return f"{error.file}\n{where}\n{error.reason}"


def error_of(detail: str) -> TraceError:
    """What was told in `detail`."""
    file, row, why = detail.split("\n", 2)
    return TraceError(file, int(row) if row else None, why)


def violation_of(row: Mapping[str, Any]) -> Violation:
    """A row of `VIOLATION` as an object."""
    return Violation(
        row["run"],
        row["process"],
        row["seq"],
        MessageId(row["first"]["origin"], row["first"]["mid"]),
        MessageId(row["second"]["origin"], row["second"]["mid"]),
        row["late"],
        tuple(
            Link(MessageId(link["origin"], link["mid"]), tuple(link["to"])) for link in row["chain"]
        ),
    )


def report_of(table: pa.Table, examples: int) -> Report:
    """Runs put together, in the order of their positions and names."""
    sums: dict[str, Any] = {name: pc.sum(table[name]).as_py() or 0 for name in _SUMS}
    report = Report(runs=table.num_rows, **sums)
    told = pc.or_(
        pc.greater(pc.list_value_length(table["examples"]), 0),
        pc.greater(pc.list_value_length(table["bad_rows"]), 0),
    )
    rows = table.filter(told).to_pylist()
    for row in sorted(rows, key=lambda row: (row["position"], row["run"])):
        report.bad.update(dict(row["bad"]))
        for violation in row["examples"][: examples - len(report.examples)]:
            report.examples.append(violation_of(violation))
        for bad in row["bad_rows"][: examples - len(report.bad_rows)]:
            report.bad_rows.append(BadRow(**bad))
    return report
