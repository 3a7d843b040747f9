"""Spans of other systems: every format gives the same verdict, and none cries wolf."""

from __future__ import annotations

import gzip
import json
import struct
from base64 import b64encode
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from causewire.check import check
from causewire.cli import main
from causewire.trace import Event, TraceError
from causewire.trace.formats.foreign import detect, read_foreign
from causewire.trace.formats.names import TWICE
from causewire.trace.formats.spans import NO_KEY, NO_PARENT, OVERLAP, SpanOptions, identifier

from .shop import Op, in_order, jaeger, jaeger_lines, otlp, otlp_protobuf, overtaken, zipkin

Export = Callable[[list[Op]], bytes]


def within(export: Export, around: Callable[[Any], object]) -> Export:
    """Return what other documents have around the document of an export."""
    return lambda ops: json.dumps(around(json.loads(export(ops)))).encode()


def stored(ops: list[Op]) -> bytes:
    """Return what a search in Elasticsearch finds, where Jaeger keeps its spans."""
    lines = jaeger_lines(ops).splitlines()
    hits = [{"_index": "jaeger-span", "_source": json.loads(line)} for line in lines]
    return json.dumps({"took": 1, "hits": {"total": {"value": len(hits)}, "hits": hits}}).encode()


def one_by_one(documents: Iterable[bytes]) -> bytes:
    """Return what the collector's file exporter writes with compression, in any encoding."""
    packed = [zstandard(document) for document in documents]
    return b"".join(struct.pack(">I", len(one)) + one for one in packed)


def in_go(ops: list[Op]) -> bytes:
    """Return spans as Jaeger's own type has them in JSON: names with underscores, base64."""

    def renamed(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {_UNDERSCORES.get(k, k): renamed(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return [renamed(item) for item in value]
        digits = {"traceID": 32, "spanID": 16}.get(key)
        return b64encode(bytes.fromhex(value.zfill(digits))).decode() if digits else value

    spans = [json.loads(line) for line in jaeger_lines(ops).splitlines()]
    return b"\n".join(json.dumps(renamed(span)).encode() for span in spans)


_UNDERSCORES = {
    "traceID": "trace_id",
    "spanID": "span_id",
    "operationName": "operation_name",
    "startTime": "start_time",
    "refType": "ref_type",
    "serviceName": "service_name",
    "value": "v_str",
}

EXPORTS: dict[str, tuple[str, Export]] = {
    "otlp": ("otlp", otlp),
    "otlp lines": ("otlp", lambda ops: otlp(ops, lines=True)),
    "otlp base64": ("otlp", lambda ops: otlp(ops, in_base64=True)),
    "tempo": ("otlp", lambda ops: otlp(ops, key="batches", in_base64=True)),
    "tempo, version 2 of its API": ("otlp", within(otlp, lambda found: {"trace": found})),
    "otlp in a list": ("otlp", within(otlp, lambda found: [found])),
    "otlp, resources only": ("otlp", within(otlp, lambda found: found["resourceSpans"])),
    "protobuf": ("otlp", otlp_protobuf),
    "protobuf framed": ("otlp", lambda ops: otlp_protobuf(ops, framed=True)),
    "otlp compressed one by one": ("otlp", lambda ops: one_by_one(otlp([op]) for op in ops)),
    "protobuf compressed one by one": (
        "otlp",
        lambda ops: one_by_one(otlp_protobuf([op]) for op in ops),
    ),
    "jaeger, version 3 of its API": ("otlp", within(otlp, lambda found: {"result": found})),
    "jaeger with underscores": ("jaeger", in_go),
    "jaeger": ("jaeger", jaeger),
    "jaeger lines": ("jaeger", jaeger_lines),
    "jaeger in elasticsearch": ("jaeger", stored),
    "zipkin": ("zipkin", zipkin),
    "zipkin, traces of its API": ("zipkin", within(zipkin, lambda found: [[], found])),
    "zipkin shared": ("zipkin", lambda ops: zipkin(ops, shared=True)),
}


def gzipped(data: bytes) -> bytes:
    return gzip.compress(data)


def zstandard(data: bytes) -> bytes:
    return bytes(pa.compress(data, "zstd", asbytes=True))


def as_it_is(data: bytes) -> bytes:
    return data


def events_of(path: Path, options: SpanOptions | None = None) -> list[Event]:
    return list(read_foreign([str(path)], options=options).trace.events())


@pytest.mark.parametrize("name", EXPORTS)
@pytest.mark.parametrize("packed", [as_it_is, gzipped, zstandard])
def test_every_format_gives_the_same_verdict(
    name: str, packed: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    kind, export = EXPORTS[name]
    for ops, violations in ((in_order(), 0), (overtaken(), 1)):
        file = tmp_path / "spans.dump"  # the suffix says nothing
        file.write_bytes(packed(export(ops)))
        assert detect(file) == kind
        found = read_foreign([str(file)])
        assert found.quarantine == []
        report = check(found.trace)
        assert report.violations == violations
        assert report.undelivered == report.bad.total() == report.duplicates == 0
        # two calls, two replies, two messages in the queue
        assert report.messages == 6
        assert report.runs == 1


def test_the_violation_is_in_the_partition(tmp_path: Path) -> None:
    file = tmp_path / "spans"
    file.write_bytes(otlp(overtaken()))
    (violation,) = check(read_foreign([str(file)]).trace).examples
    assert violation.process == "mail/mail-1[orders/0]"
    assert violation.late
    assert [link.message.origin.partition("#")[0] for link in violation.chain] == [
        "web/web-1",
        "web/web-1",
        "audit/audit-1",
    ]


def test_concurrent_requests_are_no_violations(tmp_path: Path) -> None:
    """A frontend handles two requests at a time; a service behind it takes them in turn."""
    ops = []
    for trace, (start, handled) in enumerate([(0, 900), (10, 800)], 1):
        ops += [
            Op("web", 1, 0, "server", start, start + 100, trace=trace),
            Op("web", 2, 1, "client", start + 1, start + 90, trace=trace),
            Op("cart", 3, 2, "server", handled, handled + 50, trace=trace),
        ]
    file = tmp_path / "spans"
    file.write_bytes(otlp(ops))
    assert check(read_foreign([str(file)]).trace).violations == 0
    one_run = SpanOptions.checked(None, "all", None)
    assert one_run.process_by == "instance"
    assert check(read_foreign([str(file)], options=one_run).trace).violations == 1


def test_calls_that_overlap_have_no_order(tmp_path: Path) -> None:
    ops = [
        Op("web", 1, 0, "server", 0, 100),
        Op("web", 2, 1, "client", 10, 50),
        Op("web", 3, 1, "client", 20, 60),
        Op("cart", 4, 3, "server", 520, 530),
        Op("cart", 5, 2, "server", 540, 550),
    ]
    file = tmp_path / "spans"
    file.write_bytes(otlp(ops))
    found = read_foreign([str(file)])
    assert check(found.trace).violations == 0
    assert found.notes[OVERLAP] == 2
    # One after the other, and the first was given up: then the order is the caller's.
    ops[1] = ops[1]._replace(end=15)
    file.write_bytes(otlp(ops))
    assert check(read_foreign([str(file)]).trace).violations == 1


def test_messages_without_a_key_have_no_order(tmp_path: Path) -> None:
    file = tmp_path / "spans"
    file.write_bytes(otlp([op._replace(partition="") for op in overtaken()]))
    found = read_foreign([str(file)])
    assert check(found.trace).violations == 0
    assert found.notes[NO_KEY] == 2


def test_a_consumer_with_a_trace_of_its_own(tmp_path: Path) -> None:
    """The message belongs to the run of its sender, where the order is looked at."""
    document = json.loads(otlp(overtaken()))
    for resource in document["resourceSpans"]:
        for span in resource["scopeSpans"][0]["spans"]:
            if span["kind"] == "SPAN_KIND_CONSUMER":
                span["traceId"] = f"{int(span['spanId'], 16):032x}"
    file = tmp_path / "spans"
    file.write_text(json.dumps(document))
    report = check(read_foreign([str(file)]).trace)
    assert (report.violations, report.messages) == (1, 6)


def test_what_is_not_understood_is_told(tmp_path: Path) -> None:
    document = json.loads(otlp(in_order()))
    first = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
    first += [{"spanId": "zz"}, 7, {**first[0], "spanId": "f" * 16, "traceId": "xyz"}]
    del document["resourceSpans"][2]["resource"]["attributes"][0]
    (tmp_path / "a.json").write_text(json.dumps(document))
    (tmp_path / "b.gz").write_bytes(b"\x1f\x8b broken")
    (tmp_path / "readme.txt").write_text("these are spans")
    found = read_foreign([str(tmp_path)])
    reasons = sorted((Path(r.file).name, r.row, r.reason) for r in found.quarantine)
    assert reasons == [
        ("a.json", 2, "it has no startTimeUnixNano"),
        ("a.json", 3, "a span must be a JSON object"),
        ("a.json", 4, "an identifier does not have 32 hex digits"),
        ("a.json", 6, "its resource has no service.name"),
        ("b.gz", None, reasons[4][2]),
        ("readme.txt", None, "not a file of spans, but shiviz"),
    ]
    assert reasons[4][2].startswith("cannot be read: ")


def test_other_files_between_spans_are_told_by_what_they_are(tmp_path: Path) -> None:
    document = otlp(in_order())
    (tmp_path / "a.json").write_bytes(document)
    (tmp_path / "cut.json").write_bytes(document[:-30])
    (tmp_path / "empty.json").write_text("\n")
    (tmp_path / "errors.json").write_text('{"data": null, "errors": [{"code": 404}]}')
    found = read_foreign([str(tmp_path)])
    assert sorted((Path(r.file).name, r.row, r.reason) for r in found.quarantine) == [
        ("cut.json", None, "JSON, damaged or cut short"),
        ("empty.json", None, "empty"),
        ("errors.json", None, "JSON, but no spans in a format that is known"),
    ]


@pytest.mark.parametrize("first", ["starting up ...", '"text"', "17"])
def test_a_line_before_the_spans_is_refused_alone(first: str, tmp_path: Path) -> None:
    """Whoever says what the file is gets the rest of it."""
    file = tmp_path / "spans.log"
    file.write_bytes(first.encode() + b"\n" + otlp(overtaken(), lines=True))
    found = read_foreign([str(file)], "otlp")
    assert [refused.row for refused in found.quarantine] == [1]
    assert check(found.trace).violations == 1


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_what_programs_of_windows_write(
    encoding: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """PowerShell writes what a program prints in UTF-16, with a byte order mark."""
    mark = "" if encoding in ("utf-8-sig", "utf-16") else "\ufeff"
    for name, lines in (("one.json", False), ("lines.json", True)):
        file = tmp_path / name
        text = mark + otlp(overtaken(), lines=lines).decode().replace("\n", "\r\n")
        file.write_bytes(text.encode(encoding))
        assert detect(file) == "otlp"
        assert main(["check", str(file), "--json"]) == 1
        assert json.loads(capsys.readouterr().out)["violations"] == 1


@pytest.mark.parametrize("content", [b"", b" \n\n"])
@pytest.mark.parametrize("name", ["spans.json", "spans", "log.csv"])
def test_an_empty_file(
    name: str, content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    assert main(["check", str(file)]) == 2
    assert capsys.readouterr().err == f"causewire check: {file}: empty\n"


def test_spans_that_are_missing_or_there_twice(tmp_path: Path) -> None:
    file = tmp_path / "spans"
    ops = [op for op in in_order() if op.span != 5]  # a call that was not sampled
    file.write_bytes(otlp(ops, lines=True) + otlp(ops[:1]))
    found = read_foreign([str(file)])
    assert check(found.trace).violations == 0
    assert found.notes[NO_PARENT] == 1
    assert found.notes[TWICE] == 1
    assert found.quarantine == []


@pytest.mark.parametrize("by", ["instance", "service", "thread"])
def test_other_processes(by: str, tmp_path: Path) -> None:
    file = tmp_path / "spans"
    file.write_bytes(otlp(overtaken()))
    options = SpanOptions.checked(by, None, None)
    events = events_of(file, options)
    names = {"service": "web"}.get(by, "web/web-1")
    assert names in {event.process for event in events}
    assert check(events).violations == 1


def test_options_that_make_no_sense() -> None:
    with pytest.raises(TraceError, match="process-by must be one of request, instance"):
        SpanOptions.checked("pod", None, None)


def test_identifiers() -> None:
    assert identifier("A1", 16) == "00000000000000a1"
    assert identifier(b"\x01" * 8, 16) == "01" * 8
    assert identifier("AQEBAQEBAQE=", 16) == "01" * 8


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "spans.json.gz"
    file.write_bytes(gzip.compress(otlp(overtaken())))
    assert main(["check", str(file), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["violations"], told["quarantined"]) == (1, 0)
    assert main(["check", str(file), "--format", "zipkin"]) == 2
    assert main(["check", str(tmp_path / "*.gz"), "--process-by", "service"]) == 1
    assert "NOT causally ordered" in capsys.readouterr().out


def test_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "log.csv.gz"
    rows = ["host,n,op,who,id,to", "a,0,PUB,a,1,b", "a,1,PUB,a,2,b", "b,0,SUB,a,2,", "b,1,SUB,a,1,"]
    table.write_bytes(gzip.compress("\n".join([*rows, "b,x,SUB,a,1,"]).encode()))
    columns = tmp_path / "columns.json"
    mapping = {
        "process": "host",
        "seq": "n",
        "kind": {"column": "op", "values": {"PUB": "send", "SUB": "deliver"}},
        "origin": "who",
        "mid": "id",
        "peers": {"column": "to", "split": ","},
        "run": {"value": "log"},
    }
    columns.write_text(json.dumps(mapping))
    assert main(["check", str(table), "--columns", str(columns), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["violations"], told["quarantined"]) == (1, 1)
    assert main(["check", str(table), "--format", "table"]) == 2
    assert "a table needs --columns FILE" in capsys.readouterr().err
