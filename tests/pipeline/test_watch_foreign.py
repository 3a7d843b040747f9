"""Watching directories of spans and tables, also files that grow: the verdict of `check`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable

from causewire.check import check
from causewire.cli import main
from causewire.pipeline.live import LateRow, LiveViolation, LiveWindow
from causewire.pipeline.live_spans import AFTER_CHECK, LiveSpans
from causewire.pipeline.sources.follow import Follower
from causewire.pipeline.watch import WatchSettings, watch
from causewire.pipeline.watch_state import spans_in
from causewire.trace.formats.foreign import read_foreign
from causewire.trace.formats.spans import Span, SpanOptions

from ..trace import shop

COLUMNS = {
    "run": {"value": "log"},
    "process": "host",
    "seq": "n",
    "time_ns": "at",
    "kind": {"column": "op", "values": {"PUB": "send", "SUB": "deliver"}},
    "origin": "from",
    "mid": "number",
    "peers": {"column": "to", "split": ","},
}


class Reading:
    """A follower of a directory that is asked again and again."""

    def __init__(self, place: Path, kind: str, **settings: Any) -> None:
        show = "all" if kind == "table" else "spans"
        self.follower = Follower(show, [str(place)], kind, **settings)
        self.offset: dict[str, list[int]] = {}

    def more(self) -> list[dict[str, Any]]:
        """Return the rows that are new."""
        end = self.follower.latestOffset(self.offset, ReadAllAvailable())
        found = [
            row
            for part in self.follower.partitions(self.offset, end)
            for batch in self.follower.read(part)
            for row in batch.to_pylist()
        ]
        self.offset = end
        return found


def spans_of(rows: list[dict[str, Any]], run: str) -> list[Span]:
    import pandas as pd

    mine = [row for row in rows if row["run"] == run]
    return list(spans_in([pd.DataFrame(mine, columns=["span"])]))


@pytest.mark.parametrize("kind", ["otlp", "jaeger", "zipkin"])
def test_spans_of_a_file_that_grows_are_checked_when_the_trace_ends(
    tmp_path: Path, kind: str
) -> None:
    """The lines come in pieces that end anywhere, parents after their children."""
    ops = [*shop.overtaken(1), *shop.in_order(2)][::-1]
    if kind == "zipkin":
        data = b"".join(json.dumps(s).encode() + b"\n" for s in json.loads(shop.zipkin(ops)))
    else:
        data = shop.otlp(ops, lines=True) if kind == "otlp" else shop.jaeger_lines(ops)
        data = data.rstrip(b"\n") + b"\n"
    reading = Reading(tmp_path, kind)
    rows: list[dict[str, Any]] = []
    for end in (len(data) // 3, 2 * len(data) // 3, len(data)):
        (tmp_path / "spans.json").write_bytes(data[:end])
        rows += reading.more()
    assert all(row["reason"] is None for row in rows)
    wanted = check(read_foreign([str(tmp_path)], kind).trace, examples=100)
    assert wanted.violations == 1
    told: list[Any] = []
    for run in sorted({row["run"] for row in rows}):
        live = LiveSpans(run, SpanOptions(), 10**9)
        for span in spans_of(rows, run):
            told += live.add([span])
            told += live.advance()
        assert told == [] or run != min(row["run"] for row in rows)  # not before the end
        told += live.advance(ended=True)
        assert live.pending == 0
    found = [item for item in told if isinstance(item, LiveViolation)]
    assert [(v.process, v.seq, v.first, v.second) for v in found] == [
        (v.process, v.seq, tuple(v.first), tuple(v.second)) for v in wanted.examples
    ]
    assert sum(w.events for w in told if isinstance(w, LiveWindow)) == wanted.events


def test_a_span_that_comes_after_the_check_is_late(tmp_path: Path) -> None:
    (tmp_path / "spans.jsonl").write_bytes(shop.otlp(shop.in_order(), lines=True) + b"\n")
    rows = Reading(tmp_path, "otlp").more()
    first, *others = spans_of(rows, rows[0]["run"])
    live = LiveSpans(rows[0]["run"], SpanOptions(), 10**9)
    assert live.add(others) == []
    assert any(isinstance(item, LiveWindow) for item in live.advance(ended=True))
    assert live.add([first]) == [LateRow(first.place, None, first.start, AFTER_CHECK)]
    assert live.advance(ended=True) == []


def test_what_cannot_be_followed_is_told_once(tmp_path: Path) -> None:
    document = json.loads(shop.otlp(shop.in_order()))
    (tmp_path / "lines.json").write_bytes(json.dumps(document).encode() + b"\n" + b"nonsense\n")
    (tmp_path / "pretty.json").write_text(json.dumps(document, indent=1) + "\n")
    (tmp_path / "old.json.gz").write_bytes(b"")
    (tmp_path / "part.parquet").write_bytes(b"")
    reading = Reading(tmp_path, "otlp")
    rows = reading.more()
    told = {(Path(r["file"]).name, r["row"], r["reason"]) for r in rows if r["reason"]}
    why = "not followed: only .json and .jsonl files are"
    assert told == {
        ("lines.json", 2, "not a JSON document"),
        (
            "pretty.json",
            None,
            "a JSON document of several lines cannot be followed; `check` reads it",
        ),
        ("old.json.gz", None, why),
        ("part.parquet", None, why),
    }
    with (tmp_path / "pretty.json").open("a") as stream:
        stream.write("{}\n")
    assert reading.more() == []


def test_a_document_without_an_end_of_line(tmp_path: Path) -> None:
    """It may still grow, unless what is there is all."""
    (tmp_path / "spans.json").write_bytes(shop.otlp(shop.in_order()).rstrip())
    assert Reading(tmp_path, "otlp").more() == []
    reading = Reading(tmp_path, "otlp", whole=True)
    assert len([row for row in reading.more() if row["span"]]) == len(shop.in_order())
    assert reading.more() == []
    (tmp_path / "spans.json").write_bytes(shop.otlp(shop.in_order()).rstrip()[:-1])
    assert Reading(tmp_path, "otlp", whole=True).more() == []


def line(host: str, n: int, op: str, origin: str, number: int, to: str = "") -> str:
    row = {"host": host, "n": n, "at": n, "op": op, "from": origin, "number": number, "to": to}
    return json.dumps(row) + "\n"


def log() -> list[str]:
    """Return a log in which c hears of b's answer before a's question."""
    return [
        line("a", 0, "PUB", "a", 1, "b, c"),
        line("b", 0, "SUB", "a", 1),
        line("b", 1, "PUB", "b", 1, "c"),
        line("c", 0, "SUB", "b", 1),
        line("c", 1, "SUB", "a", 1),
    ]


def test_a_table_of_lines_that_grows(tmp_path: Path) -> None:
    file = tmp_path / "log.json"
    file.write_text("".join(log()[:2]) + "5\n" + log()[2][:10])
    reading = Reading(tmp_path, "table", columns=json.dumps(COLUMNS))
    rows = reading.more()
    assert [(r["process"], r["kind"], r["row"], r["reason"]) for r in rows] == [
        ("a", "send", 1, None),
        ("b", "deliver", 2, None),
        (None, None, 3, "a row must be a JSON object"),
    ]
    assert rows[0]["peers"] == ["b", "c"]
    with file.open("a") as stream:
        stream.write("".join(log()[2:])[10:])
    assert [(r["process"], r["row"]) for r in reading.more()] == [("b", 4), ("c", 5), ("c", 6)]


@pytest.mark.slow
def test_the_command_on_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "columns").write_text(json.dumps(COLUMNS))
    place = tmp_path / "log"
    place.mkdir()
    (place / "a.jsonl").write_text("".join(log()))
    status = main(["watch", str(place), "--columns", str(tmp_path / "columns"), "--once", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert (status, found["events"], found["violations"]) == (1, 5, 1)


@pytest.mark.slow
def test_the_query_on_spans(spark: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "spans"
    place.mkdir()
    ops = [*shop.overtaken(1), *shop.in_order(2)]
    (place / "a.jsonl").write_bytes(shop.otlp(ops, lines=True) + b"\n")
    told: list[tuple[str, dict[str, Any]]] = []
    watching = watch(
        spark,
        place,
        tmp_path / "out",
        WatchSettings(),
        kind="otlp",
        once=True,
        final=True,
        tell=lambda table, row: told.append((table, row)),
    )
    assert watching.wait(120)
    assert [row["second_origin"] for table, row in told if table == "violations"] == [
        v.second[0] for v in check(read_foreign([str(place)]).trace).examples
    ]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--format", "shiviz"], "ShiViz logs cannot be followed; `check` reads them"),
        (["--format", "table"], "a table needs --columns FILE"),
        (["--columns", "nowhere.json"], "nowhere.json: No such file or directory"),
    ],
)
def test_what_the_command_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], reason: str
) -> None:
    assert main(["watch", str(tmp_path), *arguments]) == 2
    error = capsys.readouterr().err
    assert reason in error
    assert len(error.splitlines()) == 1
