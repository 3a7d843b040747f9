"""Tables and spans with long runs: many tasks check one run, and say what one process says."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from causewire.check import Report, check
from causewire.pipeline import large
from causewire.pipeline.foreign import ForeignReport, check_foreign
from causewire.pipeline.stretches import over_stretches
from causewire.trace import Event, TraceError
from causewire.trace.formats.foreign import read_foreign
from causewire.trace.formats.spans import SpanOptions

from ..check.test_same_name import FIRST, RECEIVED, renamed
from .runs import SMALL, long_run, noting, planted

COLUMNS = {
    "run": "batch",
    "process": "host",
    "seq": "n",
    "time_ns": "at",
    "lamport": "clock",
    "kind": {"column": "op", "values": {"PUB": "send", "SUB": "deliver"}},
    "origin": "sender",
    "mid": "number",
    "peers": {"column": "to", "split": " "},
}
UNTIMED = {name: how for name, how in COLUMNS.items() if name not in ("lamport", "time_ns")}
WORDS = {"send": "PUB", "deliver": "SUB"}


def row_of(event: Event) -> dict[str, Any]:
    """An event as a row of somebody else's table, all text."""
    fields = {
        "batch": event.run,
        "host": event.process,
        "n": event.seq,
        "at": event.time_ns,
        "clock": event.lamport,
        "op": WORDS.get(event.kind, event.kind),
        "sender": event.origin,
        "number": event.mid,
        "to": None if event.peers is None else " ".join(event.peers),
    }
    return {name: None if value is None else str(value) for name, value in fields.items()}


def rows_of_everything() -> list[dict[str, Any]]:
    """A long run and short ones: violations, duplicates, rows that are there twice, or wrong."""
    events = planted(long_run(1, steps=300), 6, seed=3)
    again = next(e for e in events if e.kind == "deliver")
    events.append(again._replace(seq=10**6, lamport=10**6, time_ns=10**9))
    short = [e._replace(run=f"short {k}") for k in range(3) for e in long_run(k, steps=20)]
    late = [e._replace(run="late") for e in planted(long_run(4, steps=60), 2, seed=4)]
    rows = [row_of(event) for event in [*events, *events[:3], *short, *late, *short[:1]]]
    random.Random(7).shuffle(rows)
    rows.insert(40, {**rows[0], "n": "first"})
    rows.insert(80, {**rows[0], "host": None})
    return rows


def write(path: Path, rows: Sequence[dict[str, Any]]) -> str:
    """Write a table, in the format of the suffix."""
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(list(rows)), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    return str(path)


def here(path: str, columns: dict[str, Any], *, strict: bool = False) -> ForeignReport:
    """Return what one process says."""
    found = read_foreign([path], "table", columns=json.dumps(columns))
    report = check(found.trace, examples=12, strict=strict)
    return ForeignReport(report, found.refused, found.notes, list(found.quarantine))


@pytest.fixture
def stretches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Into how many stretches of time the long runs of a test were divided."""
    asked: list[int] = []
    monkeypatch.setattr(large, "over_stretches", noting(asked, 2, over_stretches))
    return asked


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_a_long_run_is_divided_and_the_report_is_the_same(
    spark: SparkSession, tmp_path: Path, stretches: list[int], suffix: str
) -> None:
    path = write(tmp_path / f"table{suffix}", rows_of_everything())
    wanted = here(path, COLUMNS)
    assert wanted.report.violations > 4
    assert wanted.report.duplicates == 1
    assert wanted.report.identical == 4
    assert wanted.refused.total() == 2
    asked = json.dumps(COLUMNS)
    found = check_foreign([path], "table", examples=12, limits=SMALL, columns=asked)
    assert found == wanted
    assert stretches
    assert min(stretches) > 1
    stretches.clear()
    assert check_foreign([path], "table", examples=12, columns=asked) == wanted
    assert stretches == []


@pytest.mark.slow
def test_a_long_run_without_times_is_divided(
    spark: SparkSession, tmp_path: Path, stretches: list[int]
) -> None:
    path = write(tmp_path / "table.csv", [row_of(event) for event in long_run(1, steps=150)])
    found = check_foreign([path], "table", limits=SMALL, columns=json.dumps(UNTIMED))
    assert found == here(path, UNTIMED)
    assert stretches
    assert min(stretches) > 1


@pytest.mark.slow
def test_a_long_run_of_two_incarnations(spark: SparkSession, tmp_path: Path) -> None:
    rows = [*renamed("long", long_run(2, steps=200)), *renamed("long", [*RECEIVED, *FIRST])]
    path = write(tmp_path / "table.jsonl", [row_of(event) for event in rows])
    found = check_foreign([path], "table", limits=SMALL, columns=json.dumps(COLUMNS))
    assert found.report.bad.total() == 1
    assert found.report == here(path, COLUMNS).report


def second_seq(events: list[Event]) -> list[Event]:
    """Two rows with one number."""
    return [*events, events[5]._replace(mid=10**6)]


def cycle(events: list[Event]) -> list[Event]:
    """Two processes that wait for each other."""
    more = [
        Event("long", "a", 0, None, None, "deliver", "b", 1, ("b",)),
        Event("long", "a", 1, None, None, "send", "a", 1, ("b",)),
        Event("long", "b", 0, None, None, "deliver", "a", 1, ("a",)),
        Event("long", "b", 1, None, None, "send", "b", 1, ("a",)),
    ]
    return events + more


@pytest.mark.slow
@pytest.mark.parametrize("spoil", [second_seq, cycle])
def test_a_long_run_that_cannot_be_checked(
    spark: SparkSession, tmp_path: Path, spoil: Callable[[list[Event]], list[Event]]
) -> None:
    events = spoil(long_run(2, steps=150))
    path = write(tmp_path / "table.csv", [row_of(event) for event in events])
    with pytest.raises(TraceError) as local:
        here(path, COLUMNS)
    told = []
    for limits in (None, SMALL):
        with pytest.raises(TraceError) as caught:
            check_foreign([path], "table", limits=limits, columns=json.dumps(COLUMNS))
        told.append(str(caught.value))
    assert told == [str(local.value)] * 2


@pytest.mark.slow
@pytest.mark.parametrize("limits", [None, SMALL])
def test_rows_that_are_there_twice_can_be_refused(
    spark: SparkSession, tmp_path: Path, limits: Any
) -> None:
    rows = [row_of(event) for event in long_run(2, steps=150)]
    path = write(tmp_path / "table.csv", [*rows, rows[7]])
    with pytest.raises(TraceError) as local:
        here(path, COLUMNS, strict=True)
    with pytest.raises(TraceError) as caught:
        check_foreign([path], "table", limits=limits, strict=True, columns=json.dumps(COLUMNS))
    assert str(caught.value) == str(local.value)


def shop(requests: int) -> dict[str, Any]:
    """Calls of a service to two others: a request is a trace."""
    by_name: dict[str, list[dict[str, Any]]] = {"shop": [], "stock": [], "mail": []}
    for k in range(requests):
        start = 10**9 + k * 10**6
        trace = f"{k + 1:032x}"
        ids = [f"{8 * k + n:016x}" for n in range(1, 6)]

        def span(name: str, at: int, parent: int | None, kind: int, begin: int, end: int) -> None:
            by_name[name].append(
                {
                    "traceId": trace,  # noqa: B023 - called before the next round
                    "spanId": ids[at],  # noqa: B023
                    "parentSpanId": "" if parent is None else ids[parent],  # noqa: B023
                    "name": "call",
                    "kind": kind,
                    "startTimeUnixNano": str(start + begin),  # noqa: B023
                    "endTimeUnixNano": str(start + end),  # noqa: B023
                }
            )

        span("shop", 0, None, 2, 0, 900)
        span("shop", 1, 0, 3, 100, 300)
        span("stock", 2, 1, 2, 150, 250)
        span("shop", 3, 0, 3, 400, 700)
        span("mail", 4, 3, 2, 450, 650)
    return {
        "resourceSpans": [
            {
                "resource": {
                    "attributes": [
                        {"key": key, "value": {"stringValue": name}}
                        for key in ("service.name", "service.instance.id")
                    ]
                },
                "scopeSpans": [{"spans": spans}],
            }
            for name, spans in by_name.items()
        ]
    }


@pytest.mark.slow
@pytest.mark.parametrize("how", ["request", "instance"])
def test_spans_as_one_long_run(
    spark: SparkSession, tmp_path: Path, stretches: list[int], how: str
) -> None:
    path = tmp_path / "spans.json"
    path.write_text(json.dumps(shop(120)))
    read = read_foreign([str(path)], "otlp", options=SpanOptions.checked(how, "all", None))
    wanted: Report = check(read.trace)
    assert wanted.messages > 200
    found = check_foreign([str(path)], "otlp", limits=SMALL, runBy="all", processBy=how)
    assert found.report == wanted
    assert found.notes == read.notes
    assert stretches
    assert min(stretches) > 1
