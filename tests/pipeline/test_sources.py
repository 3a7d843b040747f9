"""Sources: what comes in goes out, or into the quarantine, and nothing is lost."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from causewire.check import check
from causewire.cli import main
from causewire.pipeline.check import check_runs
from causewire.pipeline.sources import from_table, ingest, register, spans
from causewire.trace import Event, TraceError, write_shiviz, write_trace
from causewire.trace.formats.foreign import read_rows
from causewire.trace.formats.rows import batches_of_rows
from causewire.trace.formats.shiviz_log import read_log
from causewire.trace.formats.spans import SpanOptions

from ..check.random_traces import random_run
from ..trace import shop


def events_of(frame: Any) -> Any:
    rows = [row.asDict() for row in frame.collect()]
    return sorted(Event(**{**row, "peers": tuple(row["peers"] or ())}) for row in rows)


def told(batches: Any) -> Any:
    """Events and refused rows of the batches of a source."""
    rows = [row for batch in batches for row in batch.to_pylist()]
    bad = [row for row in rows if row["reason"] is not None]
    return [row for row in rows if row["reason"] is None], bad


@pytest.fixture(scope="module")
def runs() -> Any:
    rng = random.Random(1)
    return [e for k in range(5) for e in random_run(rng, f"r{k}", causal=False)]


# -- traces ------------------------------------------------------------------------------


def test_traces_as_they_are(spark: SparkSession, tmp_path: Path, runs: Any) -> None:
    write_trace(tmp_path / "a.parquet", runs[:40])
    write_trace(tmp_path / "b.jsonl", runs[40:])
    register(spark)
    frame = spark.read.format("causewire").load(str(tmp_path))
    assert events_of(frame) == sorted(runs)
    quarantine = spark.read.format("causewire").option("show", "quarantine").load(str(tmp_path))
    assert quarantine.collect() == []


def test_rows_in_are_rows_out_and_rows_in_quarantine(
    spark: SparkSession, tmp_path: Path, runs: Any
) -> None:
    """JSON lines and Parquet with all sorts of rows that are none."""
    lines = [json.dumps(event._asdict()) for event in runs]
    bad = {
        3: "not json",
        7: "[1, 2]",
        9: json.dumps(runs[9]._asdict() | {"seq": -1}),
        11: json.dumps(runs[11]._asdict() | {"process": 5}),
        13: json.dumps({**runs[13]._asdict(), "kind": "send", "peers": None}),
        15: json.dumps(runs[15]._asdict() | {"payload_bytes": 2**40}),
    }
    for k, line in bad.items():
        lines[k] = line
    lines[20] = ""
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + '\n{"run": "cut')
    good = tmp_path / "b.parquet"
    write_trace(good, runs)
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(good).to_pylist()
    table[5]["seq"] = None
    table[6]["mid"] = -4
    schema = pa.schema([field.with_nullable(True) for field in pq.read_schema(good)])
    pq.write_table(pa.Table.from_pylist(table, schema), good)
    (tmp_path / "c.parquet").write_bytes(good.read_bytes()[:200])

    found = ingest(spark, [str(tmp_path)])
    quarantine = {(Path(r.file).name, r.row): r for r in found.quarantine.collect()}
    assert quarantine.keys() == {
        *(("a.jsonl", k + 1) for k in bad),
        ("a.jsonl", len(lines) + 1),
        ("b.parquet", 6),
        ("b.parquet", 7),
        ("c.parquet", None),
    }
    assert quarantine["a.jsonl", 4].reason == "not a JSON object"
    assert quarantine["a.jsonl", 4].text == "not json"
    assert quarantine["a.jsonl", 10].reason == "seq is negative"
    assert quarantine["a.jsonl", len(lines) + 1].reason == "the last line is cut short"
    assert quarantine["b.parquet", 6].reason == "seq must be an integer"
    assert "footer" in quarantine["c.parquet", None].reason
    rows_in = (len(lines) - 1 + 1) + len(table) + 1
    assert found.events.count() + len(quarantine) == rows_in


def test_a_damaged_file_loses_no_row_that_can_be_read(spark: SparkSession, tmp_path: Path) -> None:
    events = [Event("r", "p", k, k, k, "tick") for k in range(200_000)]
    path = tmp_path / "a.parquet"
    write_trace(path, events)
    data = bytearray(path.read_bytes())
    middle = len(data) * 2 // 3
    data[middle : middle + 200] = b"?" * 200
    path.write_bytes(data)
    found = ingest(spark, [str(path)])
    out, bad = found.events.count(), found.quarantine.count()
    assert out + bad == len(events)
    assert out >= 65_536
    assert bad > 0
    assert found.quarantine.where("reason not like 'damaged:%'").count() == 0


def test_options_that_make_no_sense(spark: SparkSession, tmp_path: Path) -> None:
    register(spark)
    for options, problem in (
        ({"kind": "xml"}, "kind must be one of"),
        ({"sho": "all"}, "no such option: sho"),
        ({"kind": "table"}, "column mapping"),
        ({"kind": "table", "columns": '{"when": "ts"}'}, "no column 'when'"),
    ):
        with pytest.raises(Exception, match=problem):
            spark.read.format("causewire").options(**options).load(str(tmp_path)).collect()


# -- ShiViz ------------------------------------------------------------------------------

NAMED = (
    r"(?<host>\S*) (?<clock>{.*})\n"
    r"(?<event>(?:SEND (?<send>\S+)(?: TO (?<to>.*))?|GOT (?<deliver>\S+)|.*))"
)


def test_our_own_logs(spark: SparkSession, tmp_path: Path, runs: Any) -> None:
    """What we write for ShiViz comes back, message by message."""
    causal = [e for k in range(3) for e in random_run(random.Random(k), f"r{k}", causal=True)]
    write_shiviz(tmp_path / "runs.log", causal)
    found = ingest(spark, [str(tmp_path)], "shiviz")
    assert found.quarantine.collect() == []
    back = {row.run: row for row in check_runs(found.events).collect()}
    for name in back:
        wanted = check([e for e in causal if e.run == name and e.kind in ("send", "deliver")])
        assert back[name].messages == wanted.messages
        assert back[name].undelivered == wanted.undelivered
        assert back[name].violations == 0


def test_a_log_with_named_messages_is_checked(spark: SparkSession, tmp_path: Path) -> None:
    """Overtaken: carol gets the answer before the question."""
    (tmp_path / "a.log").write_text(
        'alice {"alice":1}\nSEND q TO bob,carol\n'
        'bob {"bob":1,"alice":1}\nGOT q\n'
        'bob {"bob":2,"alice":1}\nSEND a TO carol\n'
        'carol {"carol":1,"bob":2,"alice":1}\nGOT a\n'
        'carol {"carol":2,"bob":2,"alice":1}\nGOT q\n'
    )
    found = ingest(spark, [str(tmp_path)], "shiviz", pattern=NAMED)
    (row,) = check_runs(found.events).collect()
    assert (row.run, row.violations, row.undelivered) == ("a", 1, 0)
    assert [link.mid for link in row.examples[0].chain] == [1, 2]


def test_events_that_make_no_sense_and_what_builds_on_them(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(
        "a line that is no event\n"
        'a {"a":1}\nSEND m1 TO b\n'
        'b {"b":1,"a":1}\nGOT m1\n'
        'a {"a":two}\nSEND m2 TO b\n'
        'a {"a":3}\nSEND m3 TO b\n'
        'b {"b":2,"a":3}\nGOT m3\n'
        'c {"b":1}\nhello\n'
        'b {"b":2,"a":1}\nSEND m4 TO a\n'
        'd {"d":1,"a":3}\nGOT m3\n'
        "\n"
    )
    good, bad = told(read_log(str(path), NAMED))
    assert [(row["process"], row["kind"], row["row"]) for row in good] == [
        ("a", "send", 2),
        ("b", "deliver", 4),
        ("b", "send", 14),
    ]
    assert [(row["row"], row["reason"]) for row in bad] == [
        (1, "the expression does not match"),
        (6, "the clock is not JSON"),
        (8, "event 2 of 'a', the one before, is missing"),
        (10, "a second event 2 of 'b'"),
        (12, "the clock has no entry for its host 'c'"),
        (16, "the clock knows event 3 of 'a', which is missing"),
    ]


def test_messages_of_a_log_that_do_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(
        'a {"a":1}\nSEND m TO b\n'
        'a {"a":2}\nSEND m TO b\n'
        'b {"b":1,"a":1}\nGOT m\n'
        'b {"b":2,"a":1}\nGOT nothing\n'
    )
    good, bad = told(read_log(str(path), NAMED))
    assert [row["row"] for row in good] == [1, 5]
    assert [row["row"] for row in bad] == [3, 7]
    with pytest.raises(TraceError, match="no group clock"):
        read_log(str(path), "(?<host>.*)(?<event>.*)")


# -- OpenTelemetry -----------------------------------------------------------------------


def span(
    name: int,
    kind: int | str,
    start: int | str,
    parent: int | str = "",
    links: Any = (),
    trace: int = 1,
    **extra: Any,
) -> Any:
    result = {
        "traceId": f"{trace:032x}",
        "spanId": f"{name:016x}",
        "kind": kind,
        "startTimeUnixNano": str(start),
        "links": [{"traceId": f"{t:032x}", "spanId": f"{s:016x}"} for t, s in links],
        **extra,
    }
    if parent:
        result["parentSpanId"] = f"{parent:016x}"
    return result


def document(**services: Any) -> Any:
    def attribute(value: Any) -> Any:
        return [{"key": "service.name", "value": {"stringValue": value}}]

    return {
        "resourceSpans": [
            {"resource": {"attributes": attribute(name)}, "scopeSpans": [{"spans": spans}]}
            for name, spans in services.items()
        ]
    }


def test_spans_become_messages(spark: SparkSession, tmp_path: Path) -> None:
    """Clocks of services are minutes apart: only links and parents count."""
    spans = document(
        shop=[
            span(1, 1, 1000),
            span(2, 4, 1000, parent=1),
            span(3, "SPAN_KIND_PRODUCER", 2000, parent=1),
        ],
        stock=[span(4, 5, 50, parent=2), span(5, 4, 60, parent=4)],
        mail=[span(6, 5, 9000, links=[(1, 5), (1, 3)]), span(7, 2, 9500)],
    )
    (tmp_path / "spans.json").write_text(json.dumps(spans))
    found = ingest(spark, [str(tmp_path)], "otlp", processBy="service", runBy="all")
    assert found.quarantine.collect() == []
    rows = [(e.process, e.seq, e.kind, e.origin, e.mid, e.peers) for e in events_of(found.events)]
    to_mail, to_stock = (
        f"{place}#{1:032x}:{number:016x}" for place, number in (("mail", 6), ("stock", 4))
    )  # who takes the messages of queues, and hands them on
    assert rows == [
        ("mail", 0, "deliver", to_mail, 1, (to_mail,)),
        ("mail", 1, "deliver", to_mail, 2, (to_mail,)),
        ("mail", 2, "span", None, None, ()),
        (to_mail, 0, "deliver", "stock", 1, ("stock",)),
        (to_mail, 1, "deliver", "shop", 2, ("shop",)),
        (to_mail, 2, "send", to_mail, 1, ("mail",)),
        (to_mail, 3, "send", to_mail, 2, ("mail",)),
        ("shop", 0, "span", None, None, ()),
        ("shop", 1, "send", "shop", 1, (to_stock,)),
        ("shop", 2, "send", "shop", 2, (to_mail,)),
        ("stock", 0, "deliver", to_stock, 1, (to_stock,)),
        ("stock", 1, "send", "stock", 1, (to_mail,)),
        (to_stock, 0, "deliver", "shop", 1, ("shop",)),
        (to_stock, 1, "send", to_stock, 1, ("stock",)),
    ]
    (row,) = check_runs(found.events).collect()
    assert (row.messages, row.violations, row.undelivered) == (6, 0, 0)


def test_spans_that_cannot_be_understood(tmp_path: Path) -> None:
    """One document a line; what is none, and spans that lack something."""
    good = document(a=[span(1, 4, 5)], b=[span(2, 5, 6, parent=1), span(3, 5, 7, parent=99)])
    bad = document(
        a=[span(4, 5, 8), span(5, 4, "soon"), {"spanId": "x"}, 17, span(1, 4, 9)],
    )
    nameless = {"resourceSpans": [{"scopeSpans": [{"spans": [span(8, 4, 1)]}]}]}
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join([json.dumps(good), "oops", json.dumps(bad), json.dumps(nameless)]))
    notes: Counter[Any] = Counter()
    options = SpanOptions.checked("service", None, None)
    rows, refused = told(batches_of_rows(read_rows([str(path)], "otlp", options, notes)))
    spans = {row["row"] for row in rows}
    assert len(spans) == 4
    assert notes["spans whose parent is missing"] == 1
    assert sorted((row["row"], row["reason"]) for row in refused) == [
        (4, "not a JSON document"),
        (6, "it has no startTimeUnixNano"),
        (7, "it has no startTimeUnixNano"),
        (8, "a span must be a JSON object"),
        (9, "another span of the trace has its identifier"),
        (10, "its resource has no service.name"),
    ]
    assert len(spans) + len(refused) == 10  # spans, and one line that is no document


def test_both_engines_say_the_same_of_spans(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Several files, two requests, one of them with an order that is overtaken."""
    for k, op in enumerate([*shop.in_order(1), *shop.overtaken(2)]):
        (tmp_path / f"{k}.json").write_bytes(shop.otlp([op]))
    (tmp_path / "no.json").write_text("{}")
    told = []
    for engine in ("local", "spark"):
        assert main(["check", str(tmp_path), "--json", "--engine", engine, "--format", "otlp"]) == 1
        told.append(json.loads(capsys.readouterr().out))
    assert told[0] == told[1]
    assert told[0]["violations"] == 1
    assert told[0]["refused"] == {"no resourceSpans": 1}


def test_a_large_file_of_lines_is_read_by_several_tasks(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same rows, with the same numbers, as if one task had read it."""
    ops = [op for k in range(1, 6) for op in (shop.in_order, shop.overtaken)[k % 2](k)]
    lines = [shop.otlp([op]).strip() for op in ops]
    lines.insert(30, b"not JSON")
    file = tmp_path / "spans.jsonl"
    file.write_bytes(b"\n".join(lines))
    small = tmp_path / "small.json"
    small.write_bytes(shop.otlp(shop.in_order(9)))
    paths = [str(file), str(small)]
    whole = ingest(spark, paths, "otlp").rows.collect()
    monkeypatch.setattr(spans, "PART", 2000)
    works = spans.divided(spark, paths, "otlp")
    assert works[-1] == str(small)
    assert len(works) > 5
    by_parts = ingest(spark, paths, "otlp").rows.collect()
    assert sorted(map(str, by_parts)) == sorted(map(str, whole))
    assert [row.row for row in by_parts if row.reason == "not a JSON document"] == [31]


# -- tables ------------------------------------------------------------------------------

MAPPING = {
    "run": {"value": "production"},
    "process": "host",
    "seq": "n",
    "kind": {"column": "op", "values": {"PUB": "send", "SUB": "deliver"}},
    "origin": "sender",
    "mid": "number",
    "peers": {"column": "to", "split": ","},
}


def test_a_file_with_a_mapping(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        "host,n,op,sender,number,to\n"
        'a,0,PUB,a,1,"b, c"\n'
        "b,0,SUB,a,1,a\n"
        "c,first,SUB,a,1,a\n"
        "c,1,PUB,,2,a\n"
    )
    found = ingest(spark, [str(tmp_path)], "table", columns=json.dumps(MAPPING))
    first, second = events_of(found.events)
    assert first == Event("production", "a", 0, None, None, "send", "a", 1, ("b", "c"))
    assert second.kind == "deliver"
    assert {row.row: row.reason for row in found.quarantine.collect()} == {
        3: "seq must be an integer",
        4: "a send row needs origin and mid",
    }


def test_a_table_of_spark_with_an_order(spark: SparkSession) -> None:
    mapping = {key: value for key, value in MAPPING.items() if key != "seq"} | {"order": "ts"}
    rows = [
        ("a", 30, "PUB", "a", 2, ["b"]),
        ("a", 10, "PUB", "a", 1, ["b"]),
        ("b", 5, "SUB", "a", 2, ["a"]),
        ("b", 7, "SUB", "a", 1, ["a"]),
        ("b", 9, "SUB", "a", -1, ["a"]),
    ]
    schema = "host string, ts bigint, op string, sender string, number bigint, to array<string>"
    table = spark.createDataFrame(rows, schema).repartition(2)
    found = from_table(table, mapping)
    assert [(e.process, e.seq, e.mid) for e in events_of(found.events)] == [
        ("a", 0, 1),
        ("a", 1, 2),
        ("b", 0, 2),
        ("b", 1, 1),
    ]
    (bad,) = found.quarantine.collect()
    assert bad.reason == "mid is negative"
    (row,) = check_runs(found.events).collect()
    assert row.violations == 1
