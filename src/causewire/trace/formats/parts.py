"""Parts of a large file of spans, for tasks that read it at the same time.

    parts = parts_of("spans.jsonl", "auto", 16 << 20)
    parts = numbered(parts, [count_spans(part) for part in parts])
    spans = [span for part in parts for span in spans_of_part(part)]

A file can be divided if it is not compressed and each line is a document of its own: the first
line is one, and another line follows. A part has the lines that begin in its range of bytes. How
many spans come before them is known only if all parts have been counted, which takes a small share
of the time that it takes to make spans of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from ..schema import because
from ..storage import Location, RemotePath, compressed, locate, open_binary
from . import jaeger, otlp, zipkin
from .documents import documents
from .foreign import detect_bytes
from .rows import Refused
from .spans import Span

__all__ = ["Part", "count_spans", "numbered", "parts_of", "spans_of_part"]

_COUNTERS: dict[str, Callable[[Iterable[Any]], int]] = {
    "otlp": otlp.count_json,
    "jaeger": jaeger.count_json,
    "zipkin": zipkin.count_json,
}
_READERS: dict[str, Callable[[str, Iterable[Any], int], Iterator[Span | Refused]]] = {
    "otlp": otlp.read_json,
    "jaeger": jaeger.read_json,
    "zipkin": zipkin.read_json,
}


class Part(NamedTuple):
    """The lines of a file of spans that begin in a range of its bytes."""

    file: str
    kind: str
    begin: int
    end: int
    first: int = 1
    """The number of its first span in the file."""


def parts_of(file: str, kind: str, size: int) -> list[Part]:
    """Return the parts of a file, or none if it has to be read as a whole.

    Args:
        file: The file.
        kind: One of `SPAN_FORMATS`, or `auto`.
        size: Bytes of each part, about.
    """
    location = locate(file)
    try:
        total = location.stat().st_size if _has_ranges(location) else 0
        if total < 2 * size or compressed(location):
            return []
        with open_binary(location) as stream:
            start = stream.read(size).lstrip()
    except OSError:
        return []  # whoever reads the file tells of it
    line, _, rest = start.partition(b"\n")
    if line[:1] not in (b"{", b"[") or not rest.strip() or not _is_json(line):
        return []
    if kind == "auto":
        kind = detect_bytes(line)
    if kind not in _READERS:
        return []
    bounds = [*range(0, total - size // 2, size), total]
    return [Part(file, kind, a, b) for a, b in pairwise(bounds)]


def numbered(parts: Sequence[Part], counts: Sequence[int]) -> list[Part]:
    """Return the parts of one file with the numbers of their first spans."""
    firsts = accumulate(counts, initial=1)
    return [part._replace(first=first) for part, first in zip(parts, firsts, strict=False)]


def count_spans(part: Part) -> int:
    """Return how many spans, and what is not one, a part has; -1 if it cannot be read."""
    try:
        return _COUNTERS[part.kind](documents(_lines(part), lines=True))
    except OSError:
        return -1


def spans_of_part(part: Part) -> Iterator[Span | Refused]:
    """Yield the spans of a part, and what it refuses, with their numbers in the file."""
    try:
        found = documents(_lines(part), lines=True)
    except OSError as error:
        yield Refused(part.file, None, f"cannot be read: {because(error)}")
        return
    yield from _READERS[part.kind](part.file, found, part.first)


def _lines(part: Part) -> bytes:
    with open_binary(locate(part.file)) as stream:
        at = part.begin
        if at:  # a line that began before belongs to another part
            stream.seek(at - 1)
            at += len(stream.readline()) - 1
        data = stream.read(max(0, part.end - at))
        return data if not data or data.endswith(b"\n") else data + stream.readline()


def _has_ranges(location: Location) -> bool:
    """Whether a range of a file can be read without the rest."""
    return not isinstance(location, RemotePath) or not location.url.lower().startswith("http")


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True
