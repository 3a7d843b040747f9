"""The report of a run as a row of a table, wherever the run was checked, and back."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ..check import BadRow, Link, MessageId, OrderError, Report, Source, Violation, scan
from ..check.assemble import describe, merged
from ..check.columns import ScatteredRunError
from ..check.report import RECEIVED_AGAIN
from ..core.errors import CausewireError
from ..trace import TraceError
from ..trace.schema import SameSeqError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = [
    "OUTCOME",
    "VIOLATION",
    "LivesError",
    "detail_of",
    "error_of",
    "failed",
    "folded",
    "judged",
    "out_of_order",
    "outcome",
    "report_of",
    "report_of_row",
    "row_of",
    "violations",
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

_SUMS = (
    "events",
    "messages",
    "processes",
    "violations",
    "duplicates",
    "undelivered",
    "identical",
    "lost",
)

OUTCOME = pa.schema(
    [
        ("run", pa.string()),
        *((name, pa.int64()) for name in ("position", *_SUMS)),
        ("delivered", pa.bool_()),
        ("bad", pa.map_(pa.string(), pa.int64())),
        ("examples", pa.list_(pa.struct(VIOLATION))),
        ("bad_rows", pa.list_(_BAD_ROW)),
        ("trouble", pa.string()),
        ("detail", pa.string()),
    ]
)
"""A run as a row. `position` is that of its first row, for the order of runs.
`trouble` is why it could not be checked: `order`, or `error`, which `detail`
describes by file, row and reason."""

ORDER, ERROR = "order", "error"


def row_of(run: str, position: int, report: Report) -> dict[str, Any]:
    """Return the report of one run as a row of `OUTCOME`."""
    return {
        "run": run,
        "position": position,
        **{name: getattr(report, name) for name in _SUMS},
        "delivered": report.delivered,
        "bad": list(report.bad.items()),
        "examples": [violation.to_json() for violation in report.examples],
        "bad_rows": [row._asdict() for row in report.bad_rows],
    }


class LivesError(CausewireError):
    """Processes of a run were restarted: its destinations have to be resolved first."""


def outcome(run: str, source: Source, examples: int) -> dict[str, Any]:
    """Check a run that is small enough to be read several times; return its row.

    Raises:
        LivesError: Its processes were restarted, so that its destinations have to be resolved.
        ValueError: The source does not have one run.
    """
    found = scan(source, examples=examples)
    if found.runs != 1:
        raise ValueError(f"{found.runs} runs where there must be one")
    if found.lives:
        raise LivesError(run)
    return row_of(run, found.position, describe(source, found, examples))


def judged(run: str, source: Source, examples: int) -> dict[str, Any]:
    """Return the row of `outcome`, or the row that says why the run cannot be checked."""
    try:
        return outcome(run, source, examples)
    except (OrderError, ScatteredRunError, LivesError):
        return out_of_order(run)
    except TraceError as error:
        return failed(run, error)


def out_of_order(run: str) -> dict[str, Any]:
    """The row of a run whose rows have to be sorted first."""
    return {"run": run, "trouble": ORDER}


def failed(run: str, error: TraceError) -> dict[str, Any]:
    """The row of a run that cannot be read, or cannot have happened."""
    return {"run": run, "trouble": ERROR, "detail": detail_of(error)}


def detail_of(error: TraceError) -> str:
    """An error as one text: file, row and reason."""
    where = "" if error.row is None else str(error.row)
    if isinstance(error, SameSeqError):
        where = json.dumps([error.run, error.process, error.seq])
    return f"{error.file}\n{where}\n{error.reason}"


def error_of(detail: str) -> TraceError:
    """Return the file, row and reason that `detail` contains."""
    file, row, why = detail.split("\n", 2)
    if row.startswith("["):
        return SameSeqError(file, *json.loads(row))
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


def report_of_row(row: Mapping[str, Any]) -> Report:
    """Return the report of one run."""
    bad = Counter(dict(row["bad"]))
    return Report(
        runs=1,
        **{name: row[name] for name in _SUMS},
        delivered=row["delivered"],
        doubtful=row["violations"] if bad[RECEIVED_AGAIN] else 0,
        bad=bad,
        examples=[violation_of(violation) for violation in row["examples"]],
        bad_rows=[BadRow(**bad) for bad in row["bad_rows"]],
    )


def report_of(table: pa.Table, examples: int) -> Report:
    """Return the report of all runs, in the order of their positions and names.

    Runs of which there is nothing to say but their sums are added up as columns.
    """
    sums = table.filter(pc.is_null(table["run"])).to_pylist()
    table = table.filter(pc.is_valid(table["run"]))
    special = _special(table)
    plain = table.filter(pc.invert(special))
    rows = sorted(table.filter(special).to_pylist(), key=lambda row: (row["position"], row["run"]))
    reports = [
        Report(runs=plain.num_rows, **_sums_of(plain)),
        *(replace(report_of_row(row), runs=row["position"]) for row in sums),
        *map(report_of_row, rows),
    ]
    whole = merged(reports, examples)
    whole.doubtful = sum(report.doubtful for report in reports)
    return whole


def _special(table: pa.Table) -> pa.ChunkedArray:
    """Return of which runs there is more to say than their sums."""
    shown = pc.add(pc.list_value_length(table["examples"]), pc.list_value_length(table["bad_rows"]))
    bad = pa.chunked_array([pa.array([len(b or ()) for b in table["bad"].to_pylist()], pa.int32())])
    return pc.greater(pc.add(shown, bad), 0)


def _sums_of(table: pa.Table) -> dict[str, Any]:
    sums: dict[str, Any] = {name: pc.sum(table[name]).as_py() or 0 for name in _SUMS}
    sums["delivered"] = pc.any(table["delivered"]).as_py() or False
    return sums


def folded(batches: Iterable[pa.RecordBatch], examples: int) -> Iterator[pa.RecordBatch]:
    """Yield the outcomes that a report shows, and the sums of all others as one row.

    That row has no `run`, and the number of runs as its `position`. `report_of` gives the same
    report for what is folded, and the driver does not get a row for each run. Runs with
    duplicates or trouble stay as they are: somebody has to look at them again.

    Args:
        batches: Outcomes, as `OUTCOME`.
        examples: How many violations, and how many bad rows, a report shows.
    """
    total: Report = Report()
    kept: list[dict[str, Any]] = []
    shown: list[dict[str, Any]] = []

    def add(report: Report) -> None:
        nonlocal total
        total = merged([total, report], 0)

    def trim() -> None:
        shown.sort(key=lambda row: (row["position"], row["run"]))
        some = [row for row in shown if row["examples"]][:examples]
        some += [row for row in shown if row["bad_rows"]][:examples]
        chosen = {id(row) for row in some}
        for row in shown:
            if id(row) not in chosen:
                add(report_of_row(row | {"examples": [], "bad_rows": []}))
        shown[:] = [row for row in shown if id(row) in chosen]

    for batch in batches:
        table = pa.Table.from_batches([batch])
        again = pc.or_(pc.is_valid(table["trouble"]), pc.greater(table["duplicates"], 0))
        special = pc.or_(pc.fill_null(again, True), pc.fill_null(_special(table), True))
        plain = table.filter(pc.invert(special))
        add(Report(runs=plain.num_rows, **_sums_of(plain)))
        for row in table.filter(special).to_pylist():
            look = row["trouble"] or row["duplicates"] or dict(row["bad"]).get(RECEIVED_AGAIN)
            (kept if look else shown).append(row)
        if len(shown) > 1000 + 4 * examples:
            trim()
    trim()
    rows = kept + shown
    if total.runs:
        rows.append({**row_of("", total.runs, total), "run": None})
    yield from pa.Table.from_pylist(rows, OUTCOME).to_batches()


def violations(outcomes: DataFrame) -> DataFrame:
    """The violations of a table of outcomes, as `VIOLATION`, a row for each."""
    from pyspark.sql import functions as f

    return outcomes.select(f.explode("examples").alias("v")).select("v.*")
