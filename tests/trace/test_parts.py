"""Parts of a file of spans have the spans of the file, wherever it is divided."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from causewire.trace.formats import parts
from causewire.trace.formats.foreign import spans_of_file
from causewire.trace.formats.parts import Part, count_spans, numbered, parts_of, spans_of_part
from causewire.trace.formats.rows import Refused
from causewire.trace.formats.spans import Span
from causewire.trace.storage import locate

from . import shop

OPS = [*shop.in_order(1), *shop.overtaken(2)]
LINES = {
    "otlp": [shop.otlp([op]) for op in OPS] + [shop.otlp(OPS[:5])],
    "jaeger": [*shop.jaeger_lines(OPS).splitlines(), shop.jaeger(OPS[:5])],
    "zipkin": [shop.zipkin([op]) for op in OPS] + [shop.zipkin(OPS[:5])],
}
ODD = [b"", b"  ", b"not JSON", b"[", b"1]", b"{}", b"[1, 2]", b'{"resourceSpans": 3}', b"{\r}"]


def content(kind: str, rng: random.Random) -> bytes:
    """Return JSON lines with spans and with lines that make no sense, with any ends of lines."""
    lines = [rng.choice(LINES[kind] + ODD) for _ in range(rng.randint(1, 12))]
    text = b"".join(line.strip() + rng.choice([b"\n", b"\r\n", b"\n\n"]) for line in lines)
    start = rng.choice([b"", b"\n", b" "]) + LINES[kind][0].strip() + b"\n"
    return start + text + rng.choice([b"", LINES[kind][1].strip(), b"[1"])


def bounds(data: bytes, rng: random.Random) -> list[int]:
    """Return where to divide: anywhere, and where lines begin and end."""
    ends = [k + d for k, byte in enumerate(data) if byte == 10 for d in (0, 1)]
    some = [rng.randint(0, len(data)) for _ in range(rng.randint(0, 5))]
    return sorted({0, len(data), *some, *rng.sample(ends, min(3, len(ends)))})


def agrees(path: Path, kind: str, seed: int) -> bool:
    """Return whether the parts of a random file have the spans of the whole."""
    rng = random.Random(seed)
    data = content(kind, rng)
    path.write_bytes(data)
    mine = [Part(str(path), kind, a, b) for a, b in pairwise(bounds(data, rng))]
    mine = numbered(mine, [count_spans(part) for part in mine])
    found = [item for part in mine for item in spans_of_part(part)]
    return found == list(spans_of_file(str(path), kind))


@pytest.mark.parametrize("kind", LINES)
def test_parts_have_the_spans_of_the_whole_in_the_same_order(kind: str, tmp_path: Path) -> None:
    assert all(agrees(tmp_path / "spans", kind, seed) for seed in range(40))


def first_line_lost(part: Part) -> bytes:
    """A mistake that is often made: a line that begins where a part begins is skipped."""
    with locate(part.file).open("rb") as stream:
        stream.seek(part.begin)
        at = part.begin + (len(stream.readline()) if part.begin else 0)
        data = stream.read(max(0, part.end - at))
        return data if not data or data.endswith(b"\n") else data + stream.readline()


def last_line_cut(part: Part) -> bytes:
    return right(part)[: part.end - part.begin]


def line_read_twice(part: Part) -> bytes:
    with locate(part.file).open("rb") as stream:
        stream.seek(part.begin)
        return stream.read(part.end - part.begin) + stream.readline()


right = parts._lines


@pytest.mark.parametrize("wrong", [first_line_lost, last_line_cut, line_read_twice])
def test_mistakes_are_noticed(
    wrong: Callable[[Part], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "_lines", wrong)
    assert not all(agrees(tmp_path / "spans", "otlp", seed) for seed in range(40))


def test_lines_that_would_be_a_document_together_are_not_one(tmp_path: Path) -> None:
    """In a part `[` and `1]` are two lines, as they are in the file."""
    path = tmp_path / "spans"
    path.write_bytes(LINES["otlp"][0].strip() + b"\n[\n1]\n")
    whole = list(spans_of_file(str(path), "otlp"))
    first = len(LINES["otlp"][0].strip()) + 1
    part = Part(str(path), "otlp", first, first + 5, 2)
    assert list(spans_of_part(part)) == whole[1:]


def test_only_large_plain_files_of_lines_are_divided(tmp_path: Path) -> None:
    def divided(data: bytes, kind: str = "auto", size: int = 1000) -> Iterator[Part]:
        path = tmp_path / "spans"
        path.write_bytes(data)
        return iter(parts_of(str(path), kind, size))

    lines = b"".join(line.strip() + b"\n" for line in LINES["otlp"])
    mine = list(divided(lines))
    assert len(mine) == pytest.approx(len(lines) / 1000, abs=1)
    assert {part.kind for part in mine} == {"otlp"}
    assert (mine[0].begin, mine[-1].end) == (0, len(lines))
    assert all(a.end == b.begin for a, b in pairwise(mine))
    for other in (
        gzip.compress(lines * 100, 0),
        shop.otlp(OPS),  # one document on one line
        shop.otlp(OPS).replace(b",", b",\n"),  # one document on several lines
        b"not JSON\n" + lines,
        b'{"run": "r"}\n' * 1000,  # no spans
        lines[:1500],
    ):
        assert list(divided(other)) == []
    assert list(divided(lines, size=len(lines))) == []


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    part = Part(str(tmp_path / "gone"), "otlp", 0, 10)
    assert parts_of(part.file, "otlp", 1) == []
    assert count_spans(part) == -1
    (refused,) = spans_of_part(part)
    assert isinstance(refused, Refused)
    assert refused.row is None
    assert not isinstance(refused, Span)
