"""Traces as JSON lines: one object per row, one row per line, no library needed.

The format of live nodes: a line is written at once, so a node that is killed
leaves all its rows but perhaps half of the last one. That half is cut off when
the node starts again and goes on writing, and reported by the reader.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from .schema import DELIVER, NAMES, SEND, Event, TraceError, because
from .storage import Location, open_binary
from .writer import TraceWriter, partial_name

__all__ = ["JsonLinesWriter", "checked_event", "read_jsonl"]

_BIGGEST = {"payload_bytes": 2**31 - 1, "metadata_bytes": 2**31 - 1}
_INTEGERS = ("seq", "time_ns", "lamport", "mid", "payload_bytes", "metadata_bytes")
_NOT_NEGATIVE = {"seq", "mid", "payload_bytes", "metadata_bytes"}
_STRINGS = ("run", "process", "kind")


class JsonLinesWriter(TraceWriter):
    """Writes rows as lines; under a temporary name until closed, unless `live`.

    A `live` file can be read while it grows. It is opened for appending, and
    an incomplete last line that a killed process left is cut off first.
    """

    def __init__(self, path: str | os.PathLike[str], *, live: bool = False) -> None:
        super().__init__(path)
        self.live = live
        self._partial = self.path if live else partial_name(self.path)
        try:
            self._file: BinaryIO = self._partial.open("ab" if live else "wb")
            if live:
                _cut_last_line(self._partial)
        except OSError as error:
            raise TraceError(path, None, f"cannot be written: {because(error)}") from None

    def write(self, event: Event) -> None:
        self._file.write(_line(event))
        self.rows += 1

    def flush(self) -> None:
        self._file.flush()

    def _finish(self) -> None:
        self._file.close()
        if not self.live:
            os.replace(self._partial, self.path)

    def _discard(self) -> None:
        self._file.close()
        if not self.live:
            self._partial.unlink(missing_ok=True)


@lru_cache(maxsize=4096)
def _quoted(text: str | None) -> str:
    return json.dumps(text)


def _line(event: Event) -> bytes:
    """The row as `json.dumps` would have it, in a third of the time."""
    (run, process, seq, time_ns, lamport, kind, origin, mid, peers, payload, metadata) = event
    line = (
        f'{{"run":{_quoted(run)},"process":{_quoted(process)},"seq":{seq},'
        f'"time_ns":{time_ns},"lamport":{lamport},"kind":{_quoted(kind)},'
        f'"origin":{_quoted(origin)},"mid":{mid},"peers":[{",".join(map(_quoted, peers))}],'
        f'"payload_bytes":{payload},"metadata_bytes":{metadata}}}\n'
    )
    if time_ns is None or lamport is None or mid is None or payload is None or metadata is None:
        fields = dict(zip(NAMES, event, strict=True))
        line = json.dumps(fields, separators=(",", ":")) + "\n"
    return line.encode("ascii")


def _cut_last_line(path: Path) -> None:
    """Drop what follows the last newline of the file."""
    with path.open("r+b") as file:
        end = file.seek(0, os.SEEK_END)
        keep = end
        while keep > 0:
            start = max(0, keep - 65536)
            file.seek(start)
            at = file.read(keep - start).rfind(b"\n")
            if at >= 0:
                keep = start + at + 1
                break
            keep = start
        if keep < end:
            file.truncate(keep)


def read_jsonl(path: Location, *, tolerate_cut: bool = False) -> Iterator[Event]:
    """The rows of one file, each checked.

    A last line that was cut short is an error, or the end of the trace with
    `tolerate_cut` (a node that is still writing, or was killed).

    Raises:
        TraceError: The file cannot be read, or a row is malformed.
    """
    try:
        with open_binary(path) as file:
            for row, line in enumerate(file, 1):
                if line.isspace():
                    continue
                try:
                    fields = json.loads(line)
                except (ValueError, RecursionError):
                    if line.endswith(b"\n"):
                        raise TraceError(path, row, f"not a JSON object: {_shown(line)}") from None
                    if tolerate_cut:
                        return
                    raise TraceError(path, row, "the last line is cut short") from None
                yield checked_event(fields, path, row)
    except OSError as error:
        raise TraceError(path, None, f"cannot be read: {because(error)}") from None


def _shown(line: bytes) -> str:
    text = line[:40].decode("utf-8", "replace").strip()
    return repr(text + "…" if len(line) > 40 else text)


def checked_event(fields: Any, path: object, row: int) -> Event:
    """Check one row and make it an event.

    Raises:
        TraceError: The row is malformed.
    """
    if not isinstance(fields, dict):
        raise TraceError(path, row, "a row must be a JSON object")
    values: tuple[Any, ...] = tuple(map(fields.get, NAMES))
    (run, process, seq, time_ns, lamport, kind, origin, mid, peers, payload, metadata) = values
    if not (
        type(run) is str
        and type(process) is str
        and type(kind) is str
        and type(origin) is str
        and type(peers) is list
        and type(seq) is int
        and type(mid) is int
        and 0 <= seq < 2**63
        and 0 <= mid < 2**63
        and (type(time_ns) is int or time_ns is None)
        and (type(lamport) is int or lamport is None)
        and (type(payload) is int or payload is None)
        and (type(metadata) is int or metadata is None)
        and -(2**63) <= (time_ns or 0) < 2**63
        and -(2**63) <= (lamport or 0) < 2**63
        and 0 <= (payload or 0) < 2**31
        and 0 <= (metadata or 0) < 2**31
        and all(type(peer) is str for peer in peers)
    ):
        _check(fields, path, row)
    return Event._make((*values[:8], tuple(peers or ()), payload, metadata))


def _check(fields: dict[str, Any], path: object, row: int) -> None:
    """The same, one thing after the other, to tell what is wrong."""
    for name in _STRINGS:
        if not isinstance(fields.get(name), str):
            raise _wrong(path, row, fields, name, "a string")
    for name in _INTEGERS:
        value = fields.get(name)
        if value is None and name != "seq":
            continue
        if type(value) is not int:
            raise _wrong(path, row, fields, name, "an integer")
        if value < 0 and name in _NOT_NEGATIVE:
            raise TraceError(path, row, f"{name} is negative", f": {value}")
        if not -(2**63) <= value <= _BIGGEST.get(name, 2**63 - 1):
            raise TraceError(path, row, f"{name} is too large", f": {value}")
    kind, origin, peers = fields["kind"], fields.get("origin"), fields.get("peers")
    if origin is not None and not isinstance(origin, str):
        raise _wrong(path, row, fields, "origin", "a string")
    if peers is not None and not (
        isinstance(peers, list) and all(isinstance(peer, str) for peer in peers)
    ):
        raise _wrong(path, row, fields, "peers", "a list of strings")
    if kind in (SEND, DELIVER) and (origin is None or fields.get("mid") is None):
        raise TraceError(path, row, f"a {kind} row needs origin and mid")
    if kind == SEND and peers is None:
        raise TraceError(path, row, "a send row needs peers, its destinations")


def _wrong(path: object, row: int, fields: dict[str, Any], name: str, wanted: str) -> TraceError:
    if name not in fields:
        return TraceError(path, row, f"has no {name}")
    return TraceError(path, row, f"{name} must be {wanted}", f", not {fields[name]!r:.60}")
