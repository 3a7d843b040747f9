"""Where the check takes its rows from."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Protocol

from ..trace.reader import Trace
from .collisions import Starts
from .columns import COLUMNS, Chunk, Encoder
from .kernel import OrderError
from .report import BadRow

__all__ = ["SomeRuns", "Source", "Stream"]


class Source(Protocol):
    """Rows run by run, in the same order each time that they are asked for."""

    @property
    def name(self) -> str:
        """What to call the trace."""

    @property
    def unique(self) -> bool:
        """Whether it is known that no message is sent twice."""

    @property
    def rows(self) -> int:
        """How many rows the trace has; known once all chunks were taken."""

    @property
    def identical(self) -> int:
        """How many rows were identical to others, and were left out."""

    @property
    def repeated(self) -> int:
        """How many rows send a message again, and were left out."""

    def repeated_rows(self, limit: int) -> list[BadRow]:
        """The first of those rows."""

    def chunks(self) -> Iterator[Chunk]:
        """All rows that matter, from the start."""


class Stream:
    """The rows of a trace as they are stored, in bounded memory."""

    unique = False
    identical = 0
    repeated = 0

    def __init__(self, trace: Trace) -> None:
        self.name = trace.name
        self.rows = 0
        self._trace = trace

    def repeated_rows(self, limit: int) -> list[BadRow]:
        """None that are known: they make the kernel stop."""
        return []

    def chunks(self) -> Iterator[Chunk]:
        """The rows as they come.

        Raises:
            OrderError: A process starts twice under one name.
            ScatteredRunError: Runs are mixed.
        """
        self.rows = 0
        encoder = Encoder()
        starts = Starts()
        for batch in self._trace.batches(COLUMNS):
            if starts.again(batch.columns):
                raise OrderError("a process starts twice under one name")
            yield from encoder.chunks(batch)
            self.rows += batch.columns.num_rows


class SomeRuns:
    """Those rows of another source that belong to some runs."""

    identical = 0
    repeated = 0

    def __init__(self, source: Source, runs: Container[str]) -> None:
        self.name, self.unique = source.name, source.unique
        self.rows = 0
        self._source, self._runs = source, runs

    def repeated_rows(self, limit: int) -> list[BadRow]:
        """None: the other source has them."""
        return []

    def chunks(self) -> Iterator[Chunk]:
        """The rows of these runs."""
        self.rows = 0
        for chunk in self._source.chunks():
            if chunk.run.name in self._runs:
                yield chunk
                self.rows += len(chunk.columns.kind)
