"""A second look at a long run: at the rows that have to do with what was found.

The tasks that checked it returned numbers. What the violations were, whether what was
overtaken came late or never, and what the rows are that matched nothing, is looked for
here, in as few rows as that takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._compiled import Longs
from ..check import BadRow, Chunk, Columns, OrderError, RunColumns, Violation
from ..check.columns import DELIVER, OTHER, SEND
from ..check.explain import ROWS, explain
from ..check.kernel import UNMATCHED, Found, Odd
from ..check.oddities import judge
from .outcomes import ORDER
from .parts import Part, PartResult, shares
from .ranges import Place, rows_at
from .session import parallelism
from .trouble import Trouble, answers, guarded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["explained", "second_look"]


class _Question(NamedTuple):
    """Which rows are about these messages?"""

    run: str
    pieces: tuple[Place, ...]
    processes: list[str]
    origins: Longs
    mids: Longs


class _Row(NamedTuple):
    """A send or a delivery."""

    position: int
    kind: int
    process: int
    origin: int
    mid: int
    peers: list[int]


@guarded
def _look(question: _Question) -> list[_Row]:
    rows: list[_Row] = []
    wanted = set(zip(question.origins.tolist(), question.mids.tolist(), strict=True))
    mids = np.unique(question.mids)
    for chunk in rows_at(question.run, question.pieces, question.processes).chunks():
        c = chunk.columns
        for t in np.flatnonzero((c.kind != OTHER) & np.isin(c.mid, mids)).tolist():
            if (int(c.origin[t]), int(c.mid[t])) in wanted:
                peers = c.peers[c.first[t] : c.first[t + 1]].tolist()
                at = chunk.position + t
                what = int(c.kind[t]), int(c.process[t]), int(c.origin[t]), int(c.mid[t])
                rows.append(_Row(at, *what, peers))
    return rows


class _Sends:
    """Some sends of a run, as a `Source` for those who look for them."""

    unique = True
    identical = 0
    repeated = 0
    rows = 0

    def __init__(self, run: RunColumns, rows: Iterable[_Row]) -> None:
        self.name = run.name
        self._run, self._rows = run, [row for row in rows if row.kind == SEND]

    def repeated_rows(self, limit: int) -> list[BadRow]:
        return []

    def chunks(self) -> Iterator[Chunk]:
        for row in self._rows:
            columns = Columns(
                np.array([SEND], np.int8),
                np.array([row.process], np.int32),
                np.zeros(1, np.int64),
                np.array([row.origin], np.int32),
                np.array([row.mid], np.int64),
                np.array([0, len(row.peers)], np.int32),
                np.array(row.peers, np.int32),
            )
            yield Chunk(self._run, row.position, columns)


def second_look(spark: SparkSession, whole: Part, result: PartResult) -> tuple[Any, list[bool]]:
    """What the rows are that matched nothing; and which violations are only late.

    Raises:
        Trouble: The rows are not in an order in which they can be checked.
    """
    unmatched = result.odd[result.odd[:, Odd.WHY] == UNMATCHED]
    origins = np.concatenate([unmatched[:, Odd.ORIGIN], result.found[:, Found.FIRST_ORIGIN]])
    mids = np.concatenate([unmatched[:, Odd.MID], result.found[:, Found.FIRST_MID]])
    rows: list[_Row] = []
    if len(mids):
        questions = [
            _Question(whole.run, pieces, result.processes, origins, mids)
            for pieces in shares(whole.pieces, parallelism(spark))
        ]
        for answer in answers(spark, questions, _look, f"check: what was found in run {whole.run}"):
            rows += answer
    run = RunColumns(whole.run, result.processes)
    odd = {whole.run: (run, result.odd)} if len(result.odd) else {}
    try:
        verdict = judge(_Sends(run, rows), odd, whole.examples)
    except OrderError:
        raise Trouble(ORDER) from None
    last: dict[tuple[int, int, int], int] = {}
    for row in rows:
        if row.kind == DELIVER:
            last[row.process, row.origin, row.mid] = row.position
    late = [
        last.get((row[Found.PROCESS], row[Found.FIRST_ORIGIN], row[Found.FIRST_MID]), -1)
        > row[Found.POSITION]
        for row in result.found.tolist()
    ]
    return verdict, late


class _Story(NamedTuple):
    """Tell how one came before the other."""

    run: str
    pieces: tuple[Place, ...]
    processes: list[str]
    found: Longs


@guarded
def _tell(story: _Story) -> list[Violation]:
    source = rows_at(story.run, story.pieces, story.processes)
    run = RunColumns(story.run, story.processes)
    return explain(source, {story.run: (run, story.found)})


def explained(spark: SparkSession, whole: Part, result: PartResult) -> list[Violation]:
    """The violations with their chains; a task for each, with the rows that it takes."""
    stories = []
    for row in result.found:
        start, end = row[Found.FIRST_SENT], row[Found.SENT]
        if end - start >= ROWS:
            start = end  # too far back: result without a chain
        pieces = [p for p in whole.pieces if p.position <= end and start < p.position + p.rows]
        stories.append(_Story(whole.run, tuple(pieces), result.processes, row[np.newaxis]))
    what = f"check: explain {len(stories)} violations of run {whole.run}"
    return [violation for answer in answers(spark, stories, _tell, what) for violation in answer]
