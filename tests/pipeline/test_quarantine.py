"""Rows in are rows out and rows in the quarantine, whatever the rows are.

Files are made of good rows and of rows that were spoilt in any way; each source
reads them here, without Spark, and every row has to be in one place or the other.
"""

from __future__ import annotations

import csv
import io
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causewire.trace import NAMES, Event, write_trace
from causewire.trace.formats.foreign import read_rows, spans_of_file
from causewire.trace.formats.rows import Refused, batches_of_rows
from causewire.trace.formats.shiviz_log import read_log
from causewire.trace.formats.spans import SpanOptions
from causewire.trace.formats.tables import mapper, read_table
from causewire.trace.formats.traces import lines_between, read_lines, read_parquet_file

from .flipped import flip_a_bit

SAME = {name: name for name in NAMES}

texts = st.text(st.characters(exclude_categories=()), max_size=5)
"""With halves of surrogate pairs, which no table can hold."""
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts | st.just(2**63),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)


def good(seq: Any) -> Any:
    return Event("r", "p", seq, seq, seq, "send", "p", seq + 1, ("q",), 1, 2)._asdict()


@st.composite
def rows(draw: st.DrawFn) -> Any:
    """A row of a trace with some of its fields spoilt, or left out."""
    row = dict(good(draw(st.integers(0, 9))))
    for name in draw(st.lists(st.sampled_from(NAMES), max_size=2)):
        row[name] = draw(values)
    for name in draw(st.lists(st.sampled_from(NAMES), max_size=1)):
        row.pop(name, None)
    return row


lines = st.one_of(
    rows().map(lambda row: json.dumps(row).encode()),
    values.map(lambda value: json.dumps(value).encode()),
    st.binary(max_size=12).map(lambda data: data.replace(b"\n", b"")),
).filter(lambda line: not line.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")))
"""None of which makes the file look compressed."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: Any) -> Any:
    return tmp_path_factory.mktemp("rows")


def counted(batches: Any) -> Any:
    """Events, refused rows, and the numbers of all of them."""
    found = [row for batch in batches for row in batch.to_pylist()]
    out = [row for row in found if row["reason"] is None]
    return out, [row for row in found if row["reason"] is not None], [row["row"] for row in found]


def blank(line: Any) -> Any:
    return not line or line.isspace()


@settings(max_examples=100)
@given(st.lists(lines, max_size=6), st.booleans())
def test_json_lines(place: Any, some: Any, ended: Any) -> None:
    path = place / "a.jsonl"
    path.write_bytes(b"\n".join(some) + b"\n" * ended)
    wanted = [number for number, line in enumerate(some, 1) if not blank(line)]
    assert counted(read_lines(str(path)))[2] == wanted
    assert counted(read_table(str(path), mapper(SAME)))[2] == wanted


@settings(max_examples=100)
@given(st.lists(lines, min_size=1, max_size=6), st.data())
def test_json_lines_that_are_followed(place: Any, some: Any, data: st.DataObject) -> None:
    """Read in two parts, cut at the end of any line."""
    path = place / "b.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in some))
    cut = data.draw(st.integers(0, len(some)))
    middle = sum(len(line) + 1 for line in some[:cut])
    numbers = []
    with path.open("rb") as stream:
        for begin, end, row in ((0, middle, 1), (middle, path.stat().st_size, cut + 1)):
            stream.seek(begin)
            batches = lines_between(str(path), stream, begin, end, row, to_the_end=False)
            numbers += counted(batches)[2]
    assert numbers == [number for number, line in enumerate(some, 1) if not blank(line)]


@settings(max_examples=100)
@given(st.lists(rows(), max_size=6))
def test_tables_in_csv(place: Any, some: Any) -> None:
    """Whatever is in the fields, and also if there are too many of them."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(NAMES)
    for row in some:
        writer.writerow(["x", *([None] * len(row)), *map(str, row.values())][-len(NAMES) :])
        writer.writerow(row.values())
    path = place / "a.csv"
    path.write_bytes(text.getvalue().encode("utf-8", "surrogatepass"))
    mapping = SAME | {"peers": {"column": "peers", "split": ","}}
    blank_rows = sum(not row for row in some)
    out, bad, numbers = counted(read_table(str(path), mapper(mapping)))
    assert len(out) + len(bad) == 2 * len(some) - blank_rows
    assert numbers == list(range(1, len(numbers) + 1))


@settings(max_examples=50)
@given(st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 9), st.booleans()), max_size=4))
def test_parquet_with_values_that_cannot_be(place: Any, spoilt: Any) -> None:
    table = [{**good(k), "peers": ["q"]} for k in range(10)]
    for name, k, negative in spoilt:
        value = table[k][name]
        table[k][name] = -5 if negative and isinstance(value, int) else None
    schema = pa.Table.from_pylist([{**good(0), "peers": ["q"]}]).schema
    path = place / "a.parquet"
    pq.write_table(pa.Table.from_pylist(table, schema), path)
    out, bad, numbers = counted(read_parquet_file(str(path)))
    assert numbers == list(range(1, 11))
    assert len(out) >= 10 - len({k for _, k, _ in spoilt})
    assert all(row["reason"] for row in bad)


def test_parquet_with_a_bit_that_flipped(place: Any) -> None:
    """A number like any other: only its checksum tells."""
    path = place / "flipped.parquet"
    write_trace(path, [Event(**good(seq)) for seq in range(1000)])
    flip_a_bit(path, NAMES.index("seq"))
    out, refused, numbers = counted(read_parquet_file(str(path)))
    assert not out
    assert "damaged" in refused[0]["reason"]
    assert numbers == list(range(1, 1001))


def test_parquet_with_damaged_bytes(place: Any) -> None:
    """Anywhere; where the footer is lost, the file is one row."""
    path = place / "b.parquet"
    rng = random.Random(1)
    write_trace(path, [Event(**good(k) | {"mid": rng.getrandbits(62)}) for k in range(500)])
    whole = path.read_bytes()
    footer = int.from_bytes(whole[-8:-4], "little")
    seen = set()
    for _ in range(40):
        data = bytearray(whole)
        at = rng.randrange(4, len(data) - footer - 30)
        data[at : at + 20] = rng.randbytes(20)
        path.write_bytes(data)
        for batches in (read_parquet_file(str(path)), read_table(str(path), mapper(SAME))):
            out, bad, _ = counted(batches)
            assert len(out) + len(bad) == 500
            seen |= {bool(out), not bad}
    assert seen == {True, False}
    path.write_bytes(whole[:-10])
    assert [(row["row"], row["file"]) for row in counted(read_parquet_file(str(path)))[1]] == [
        (None, str(path))
    ]
    pq.write_table(pa.table({"seq": ["one", "two"]}), path)
    out, bad, numbers = counted(read_parquet_file(str(path)))
    assert (out, numbers) == ([], [1, 2])


PATTERN = r"(?<host>\S*) (?<clock>{.*})\n(?<event>(?:SEND (?<send>\S+)|GOT (?<deliver>\S+)|.*))"
words = st.text("abc0123", min_size=1, max_size=2)
clocks = st.dictionaries(words, st.integers(-1, 3), max_size=3).map(json.dumps)
entries = st.tuples(
    words,
    clocks | st.just("{nonsense}"),
    st.tuples(st.sampled_from(["SEND", "GOT", "did"]), words).map(" ".join),
)


@settings(max_examples=100)
@given(st.lists(entries | words, max_size=8))
def test_logs(place: Any, some: Any) -> None:
    path = place / "a.log"
    text, wanted, line = "", [], 1
    for item in some:
        wanted.append(line)
        text += f"{item}\n" if isinstance(item, str) else f"{item[0]} {item[1]}\n{item[2]}\n"
        line = text.count("\n") + 1
    path.write_text(text)
    numbers = counted(read_log(str(path), PATTERN))[2]
    assert sorted(number for number in numbers if number is not None) == wanted
    assert (None in numbers) == all(isinstance(item, str) for item in some)


ids = st.integers(1, 4).map(lambda number: f"{number:016x}")
links = st.lists(ids.map(lambda name: {"traceId": "0" * 31 + "1", "spanId": name}), max_size=3)
spans = st.fixed_dictionaries(
    {"traceId": st.just("0" * 31 + "1"), "spanId": ids, "startTimeUnixNano": st.integers(0, 99)},
    optional={"parentSpanId": ids, "kind": st.integers(0, 6), "links": links},
)


@settings(max_examples=100)
@given(st.lists(spans | values, max_size=6), st.data())
def test_spans(place: Any, some: Any, data: st.DataObject) -> None:
    """Each is a span or refused, and spans become rows, are told of as refused, or are twins."""
    for span in some:
        ours = isinstance(span, dict) and "spanId" in span
        if ours and data.draw(st.integers(0, 3)) == 0:
            span[data.draw(st.sampled_from(list(span)))] = data.draw(values)
    service = {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]}
    document = {"resourceSpans": [{"resource": service, "scopeSpans": [{"spans": some}]}]}
    path = place / "a.json"
    path.write_text(json.dumps(document))
    found = list(spans_of_file(str(path), "otlp"))
    assert len(found) == max(1, len(some))
    numbers = {item.row for item in found if not isinstance(item, Refused)}
    for by in ("request", "instance"):
        notes: Counter[Any] = Counter()
        rows = list(read_rows([str(path)], "otlp", SpanOptions(process_by=by), notes))
        told = {row.row for row in rows}
        twins = notes["spans that were recorded twice"]
        assert len(numbers - told) <= twins
        list(batches_of_rows(rows))


@settings(max_examples=50)
@given(values)
def test_documents_that_are_none(place: Any, document: Any) -> None:
    """What is not understood is told: it does not just vanish."""
    path = place / "b.json"
    path.write_text(json.dumps(document) + "\n" + json.dumps({"resourceSpans": document}))
    bad = [item for item in spans_of_file(str(path), "otlp") if isinstance(item, Refused)]
    empty = document is None or isinstance(document, (list, dict))  # may be, of no spans
    assert len(bad) >= (1 if empty else 2)


def test_a_file_that_is_not_there(place: Any) -> None:
    gone = str(Path(place) / "gone")
    for batches in (
        read_lines(gone),
        read_parquet_file(gone),
        read_log(gone),
        batches_of_rows(cast(Any, spans_of_file(gone, "otlp"))),
        read_table(f"{gone}.csv", mapper(SAME)),
    ):
        out, _, numbers = counted(batches)
        assert (out, numbers) == ([], [None])
