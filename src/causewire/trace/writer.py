"""Writing traces: a bounded buffer, and no half-written file that looks whole.

A writer takes events one by one and never holds more than a fixed number of
them, so a run may be longer than memory. What it writes stays under another
name until it is closed; a program that dies leaves a `.partial` behind, not a
trace that merely seems short. The same rows give the same bytes.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from .schema import Event, TraceError

__all__ = ["TraceWriter", "open_writer", "partial_name", "write_trace"]


class TraceWriter(ABC):
    """Takes the events of a trace in order; a context manager.

    Leaving the `with` block by an exception discards what was written, except
    for a live file, which keeps what it has.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.rows = 0
        self._open = True

    @abstractmethod
    def write(self, event: Event) -> None:
        """Add one row."""

    @abstractmethod
    def flush(self) -> None:
        """Bring as much as the format allows to the operating system."""

    @abstractmethod
    def _finish(self) -> None:
        """Complete the file and give it its name."""

    @abstractmethod
    def _discard(self) -> None:
        """Leave nothing behind."""

    def close(self) -> None:
        """Complete the trace; does nothing the second time."""
        if self._open:
            self._open = False
            self._finish()

    def discard(self) -> None:
        """Give up: nothing appears under the trace's name."""
        if self._open:
            self._open = False
            self._discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()


def partial_name(path: Path) -> Path:
    """Where a trace is written before it is complete; readers pass it over."""
    return path.with_name(f".{path.name}.partial")


def open_writer(path: str | os.PathLike[str], *, live: bool = False) -> TraceWriter:
    """A writer for the format that the name asks for.

    `x.jsonl` is JSON lines, `x.parquet` one Parquet file, and a name without
    suffix a directory of Parquet files. `live` is for JSON lines only: the file
    is appended to, and can be read while it grows.

    Raises:
        TraceError: The name does not ask for a format that can be written.
    """
    path = Path(path)
    if path.suffix == ".jsonl":
        from .jsonl import JsonLinesWriter

        return JsonLinesWriter(path, live=live)
    if live:
        raise TraceError(path, None, "a live trace must be a .jsonl file")
    if path.suffix == ".parquet":
        from .parquet import ParquetWriter

        return ParquetWriter(path)
    if path.suffix == "":
        from .parquet import ParquetDirectoryWriter

        return ParquetDirectoryWriter(path)
    raise TraceError(
        path, None, "a trace is written as .parquet, .jsonl, or a directory (no suffix)"
    )


def write_trace(path: str | os.PathLike[str], events: Iterable[Event]) -> int:
    """Write all `events`; returns how many there were."""
    with open_writer(path) as writer:
        for event in events:
            writer.write(event)
    return writer.rows
