"""Traces as JSON lines: one object per row, one row per line, no library needed.

The format of live nodes: a line is written at once, so a node that is killed
leaves all its rows but perhaps half of the last one. That half is cut off when
the node starts again and goes on writing, and reported by the reader.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from .schema import DELIVER, NAMES, SEND, Event, TraceError, because
from .writer import TraceWriter, partial_name

__all__ = ["JsonLinesWriter", "read_jsonl"]

_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode

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
        line = _encode(dict(zip(NAMES, event, strict=True)))
        self._file.write(line.encode("ascii") + b"\n")
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


def read_jsonl(path: Path, *, tolerate_cut: bool = False) -> Iterator[Event]:
    """The rows of one file, each checked.

    A last line that was cut short is an error, or the end of the trace with
    `tolerate_cut` (a node that is still writing, or was killed).
    """
    try:
        with path.open("rb") as file:
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
                yield _event(fields, path, row)
    except OSError as error:
        raise TraceError(path, None, f"cannot be read: {because(error)}") from None


def _shown(line: bytes) -> str:
    text = line[:40].decode("utf-8", "replace").strip()
    return repr(text + "…" if len(line) > 40 else text)


def _event(fields: Any, path: Path, row: int) -> Event:
    """Check one row and make it an event."""
    if not isinstance(fields, dict):
        raise TraceError(path, row, "a row must be a JSON object")
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
            raise TraceError(path, row, f"{name} is negative: {value}")
        if not -(2**63) <= value <= _BIGGEST.get(name, 2**63 - 1):
            raise TraceError(path, row, f"{name} is too large: {value}")
    origin, peers = fields.get("origin"), fields.get("peers")
    if origin is not None and not isinstance(origin, str):
        raise _wrong(path, row, fields, "origin", "a string")
    if peers is not None and not (
        isinstance(peers, list) and all(isinstance(peer, str) for peer in peers)
    ):
        raise _wrong(path, row, fields, "peers", "a list of strings")
    kind = fields["kind"]
    if kind in (SEND, DELIVER) and (origin is None or fields.get("mid") is None):
        raise TraceError(path, row, f"a {kind} row needs origin and mid")
    if kind == SEND and peers is None:
        raise TraceError(path, row, "a send row needs peers, its destinations")
    fields["peers"] = tuple(peers or ())
    return Event._make(map(fields.get, NAMES))


def _wrong(path: Path, row: int, fields: dict[str, Any], name: str, wanted: str) -> TraceError:
    if name not in fields:
        return TraceError(path, row, f"has no {name}")
    return TraceError(path, row, f"{name} must be {wanted}, not {fields[name]!r:.60}")
