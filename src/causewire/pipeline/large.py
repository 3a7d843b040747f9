"""A long run, checked by many: over its origins, or over time.

The kernel can be split in two ways. By *origins*, each task reads the whole run
with clocks for a block of them: good where clocks are wide, because then the
clocks are the work (`WIDE`). By *time*, each task reads a segment, in two passes
(`check/segments.py`): good where clocks are narrow; it costs twice the work, so it
takes three cores to gain anything.

Either way the tasks return numbers: how many violations, and where the first
ones are. What these were, and what the rows are that matched nothing, is looked
for afterwards, in the rows that have to do with them.
"""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..check import BadRow, Chunk, Columns, Kernel, OrderError, Run, Violation
from ..check.columns import DELIVER, OTHER, SEND, ScatteredRunError
from ..check.compiled import Longs
from ..check.explain import ROWS, explain
from ..check.kernel import UNMATCHED, Found, Odd
from ..check.oddities import judge
from ..check.segments import Cut, Survey, Surveyed, resume, walk
from ..trace import TraceError
from .outcomes import ERROR, ORDER, failed
from .pieces import Piece, Region, names_in
from .session import parallelism
from .tasks import spread

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Limits", "Shape", "Trouble", "check_large", "choose"]


@dataclass(frozen=True)
class Limits:
    """What decides how a trace is shared out, in rows unless it says otherwise."""

    large: int = 4_000_000
    """A run from this size on is shared by several tasks."""
    wide: int = 512
    """With this many processes, origins are shared, not time; and a block of
    origins has at least half as many: narrow blocks waste the work that each
    event is."""
    segment: int = 1_000_000
    """No segment is smaller."""
    longest: int = 50_000_000
    """And none is larger, so that little is lost with an executor."""
    share: int = 200_000
    """Small runs: a task gets at least as many rows."""
    enough: int = 3_000_000
    """And a core gets a second task, up to a fourth, only with as many rows for each."""
    memory: int = 1 << 30
    """Bytes of clocks for one task."""


class Shape(NamedTuple):
    """How a run is shared out; one of the two is 1."""

    blocks: int
    segments: int


def choose(rows: int, processes: int, cores: int, limits: Limits, *, growing: bool = True) -> Shape:
    """Origins or time? `growing` says whether mids are known to grow."""
    least = ceil(12 * processes**2 / limits.memory)
    if processes >= limits.wide:
        most = max(1, processes // (limits.wide // 2))
        return Shape(max(least, min(cores, most)), 1)
    many = min(rows // limits.segment, cores * ceil(rows / cores / limits.longest))
    if cores >= 3 and many >= 3 and growing:
        return Shape(1, many)
    return Shape(max(1, least), 1)


class Trouble(Exception):  # noqa: N818 - it is not always an error
    """A task could not do its part: rows out of order (`order`), or worse."""

    def __init__(self, what: str, detail: str) -> None:
        super().__init__(what, detail)
        self.what, self.detail = what, detail


# -- what tasks do ------------------------------------------------------------------------


class _Part(NamedTuple):
    """A part of a run: its rows, and for whom."""

    run: str
    pieces: tuple[Piece, ...]
    origins: tuple[int, int] | None
    examples: int
    unique: bool
    cut: Cut | None = None
    ignored: tuple[int, ...] = ()


_PARTS = "answer binary, trouble string, detail string"


class _Told(NamedTuple):
    """What a task that checked a part returns."""

    rows: int
    processes: list[str]
    messages: int
    violations: int
    undelivered: int
    found: Longs
    odd: Longs


def _guarded(answer: Any) -> Iterator[dict[str, Any]]:
    """An answer as a row, or what went wrong. (To raise would be to try again.)"""
    try:
        yield {"answer": pickle.dumps(answer())}
    except (OrderError, ScatteredRunError):
        yield {"trouble": ORDER, "detail": ""}
    except TraceError as error:
        row = failed("", error)
        yield {"trouble": ERROR, "detail": row["detail"]}


def _check_part(part: _Part) -> Iterable[dict[str, Any]]:
    def answer() -> _Told:
        kernel = (
            Kernel(part.origins, examples=part.examples, unique=part.unique)
            if part.cut is None
            else resume(part.cut, part.origins, examples=part.examples)
        )
        source = Region(part.run, part.pieces, part.cut.processes if part.cut else ())
        processes: list[str] = []
        for chunk in source.chunks():
            processes = chunk.run.processes
            kernel.feed(chunk.columns, len(processes), chunk.position)
        return _Told(
            source.rows,
            processes,
            kernel.messages,
            kernel.violations,
            kernel.undelivered,
            kernel.found,
            kernel.odd,
        )

    return _guarded(answer)


def _survey_part(part: _Part) -> Iterable[dict[str, Any]]:
    def answer() -> Surveyed:
        first, last = part.pieces[0], part.pieces[-1]
        survey = Survey(first.position, part.ignored)
        processes: list[str] = []
        for chunk in Region(part.run, part.pieces).chunks():
            processes = chunk.run.processes
            survey.feed(chunk.columns, len(processes), chunk.position)
        result = survey.result(processes)
        return result._replace(rows=last.position + last.rows - first.position)

    return _guarded(answer)


def _done(spark: SparkSession, works: Sequence[Any], job: Any) -> list[Any]:
    """The answers of tasks, in the order of their works."""
    if not works:
        return []
    answers: list[Any] = []
    for row in spread(spark, works, job, _PARTS).collect():
        if row.trouble is not None:
            raise Trouble(row.trouble, row.detail)
        answers.append((row.task, pickle.loads(row.answer)))
    return [answer for _, answer in sorted(answers, key=lambda pair: pair[0])]


# -- one run ------------------------------------------------------------------------------


def check_large(
    spark: SparkSession,
    run: str,
    pieces: Sequence[Piece],
    *,
    examples: int = 10,
    limits: Limits | None = None,
    shape: Shape | None = None,
    unique: bool = False,
) -> dict[str, Any]:
    """The outcome of a run, as a row of `OUTCOME`; `Trouble` if there is none.

    `unique` says that no message is sent twice, so mids need not grow.
    """
    limits = limits or Limits()
    rows = sum(piece.rows for piece in pieces)
    if shape is None:
        few = len(names_in(pieces[0]))
        shape = choose(rows, few, parallelism(spark), limits, growing=not unique)
    whole = _Part(run, tuple(pieces), None, examples, unique)
    if shape.segments > 1:
        told = _over_time(spark, whole, shape.segments)
    else:
        told = _over_origins(spark, whole, shape.blocks)
    verdict, late = _second_look(spark, whole, told)
    return {
        "run": run,
        "position": pieces[0].position,
        "events": told.rows,
        "messages": told.messages,
        "processes": len(told.processes),
        "violations": told.violations,
        "duplicates": verdict.duplicates,
        "undelivered": told.undelivered,
        "bad": list(verdict.bad.items()),
        "examples": [
            dataclasses.replace(violation, late=known).to_json()
            for violation, known in zip(_explained(spark, whole, told), late, strict=True)
        ],
        "bad_rows": [row._asdict() for row in verdict.rows],
    }


def _over_origins(spark: SparkSession, whole: _Part, blocks: int) -> _Told:
    """Blocks of origins side by side; more of them if there are more processes."""
    if blocks == 1:
        (told,) = _done(spark, [whole], _check_part)
        return _first(told, [told.found], whole.examples)
    processes = len(names_in(whole.pieces[0]))
    width = ceil(processes / blocks / 32) * 32  # whole vectors
    answers: list[_Told] = []
    covered = 0
    while True:
        upto = max(covered + width, width * ceil(processes / width))
        parts = [whole._replace(origins=(lo, lo + width)) for lo in range(covered, upto, width)]
        answers += _done(spark, parts, _check_part)
        covered, processes = upto, len(answers[0].processes)
        if covered >= processes:
            break
    told = answers[0]._replace(violations=sum(answer.violations for answer in answers))
    return _first(told, [answer.found for answer in answers], whole.examples)


def _over_time(spark: SparkSession, whole: _Part, segments: int) -> _Told:
    """Two passes over segments."""
    parts = [whole._replace(pieces=pieces) for pieces in _shares(whole.pieces, segments)]
    surveys: list[Surveyed] = _done(spark, parts, _survey_part)
    start = Cut.start(parts[0].pieces[0].position)
    cuts, strangers = _walk(surveys, start)
    if strangers:
        again = [parts[k]._replace(ignored=tuple(rows)) for k, rows in strangers.items()]
        for k, survey in zip(strangers, _done(spark, again, _survey_part), strict=True):
            surveys[k] = survey
        cuts, strangers = _walk(surveys, start)
        assert not strangers
    parts = [part._replace(cut=cut) for part, cut in zip(parts, cuts, strict=False)]
    answers: list[_Told] = _done(spark, parts, _check_part)
    told = _Told(
        sum(answer.rows for answer in answers),
        cuts[-1].processes,
        sum(answer.messages for answer in answers),
        sum(answer.violations for answer in answers),
        cuts[-1].flight.copies,
        answers[0].found,
        np.concatenate([answer.odd for answer in answers]),
    )
    return _first(told, [answer.found for answer in answers], whole.examples)


def _walk(surveys: Sequence[Surveyed], start: Cut) -> tuple[list[Cut], dict[int, list[int]]]:
    try:
        return walk(surveys, start)
    except OrderError:
        raise Trouble(ORDER, "") from None


def _shares(pieces: Sequence[Piece], parts: int) -> list[tuple[Piece, ...]]:
    """Consecutive pieces, about as many rows in each share."""
    total = sum(piece.rows for piece in pieces)
    shares: list[list[Piece]] = [[]]
    done = 0
    for piece in pieces:
        if shares[-1] and done >= total * len(shares) / parts:
            shares.append([])
        shares[-1].append(piece)
        done += piece.rows
    return [tuple(share) for share in shares]


def _first(told: _Told, found: Sequence[Longs], examples: int) -> _Told:
    """Only the first violations, one of each message that was overtaken."""
    every = np.concatenate(found)
    order = np.lexsort(
        (every[:, Found.FIRST_SENT], every[:, Found.FIRST_ORIGIN], every[:, Found.POSITION])
    )
    seen: set[tuple[int, int]] = set()
    rows: list[Longs] = []
    for row in every[order]:
        message = int(row[Found.FIRST_ORIGIN]), int(row[Found.FIRST_MID])
        if message not in seen and len(rows) < examples:
            seen.add(message)
            rows.append(row)
    return told._replace(found=np.array(rows, np.int64).reshape(-1, len(Found)))


# -- the second look ------------------------------------------------------------------------


class _Question(NamedTuple):
    """Which rows are about these messages?"""

    run: str
    pieces: tuple[Piece, ...]
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


def _look(question: _Question) -> Iterable[dict[str, Any]]:
    def answer() -> list[_Row]:
        rows: list[_Row] = []
        wanted = set(zip(question.origins.tolist(), question.mids.tolist(), strict=True))
        mids = np.unique(question.mids)
        for chunk in Region(question.run, question.pieces, question.processes).chunks():
            c = chunk.columns
            for t in np.flatnonzero((c.kind != OTHER) & np.isin(c.mid, mids)).tolist():
                if (int(c.origin[t]), int(c.mid[t])) in wanted:
                    peers = c.peers[c.first[t] : c.first[t + 1]].tolist()
                    at = chunk.position + t
                    what = int(c.kind[t]), int(c.process[t]), int(c.origin[t]), int(c.mid[t])
                    rows.append(_Row(at, *what, peers))
        return rows

    return _guarded(answer)


class _Sends:
    """Some sends of a run, as a `Source` for those who look for them."""

    unique = True
    repeated = 0
    rows = 0

    def __init__(self, run: Run, rows: Iterable[_Row]) -> None:
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


def _second_look(spark: SparkSession, whole: _Part, told: _Told) -> tuple[Any, list[bool]]:
    """What the rows are that matched nothing; and which violations are only late."""
    unmatched = told.odd[told.odd[:, Odd.WHY] == UNMATCHED]
    origins = np.concatenate([unmatched[:, Odd.ORIGIN], told.found[:, Found.FIRST_ORIGIN]])
    mids = np.concatenate([unmatched[:, Odd.MID], told.found[:, Found.FIRST_MID]])
    rows: list[_Row] = []
    if len(mids):
        questions = [
            _Question(whole.run, pieces, told.processes, origins, mids)
            for pieces in _shares(whole.pieces, parallelism(spark))
        ]
        for answer in _done(spark, questions, _look):
            rows += answer
    run = Run(whole.run, told.processes)
    odd = {whole.run: (run, told.odd)} if len(told.odd) else {}
    try:
        verdict = judge(_Sends(run, rows), odd, whole.examples)
    except OrderError:
        raise Trouble(ORDER, "") from None
    last: dict[tuple[int, int, int], int] = {}
    for row in rows:
        if row.kind == DELIVER:
            last[row.process, row.origin, row.mid] = row.position
    late = [
        last.get((row[Found.PROCESS], row[Found.FIRST_ORIGIN], row[Found.FIRST_MID]), -1)
        > row[Found.POSITION]
        for row in told.found.tolist()
    ]
    return verdict, late


class _Story(NamedTuple):
    """Tell how one came before the other."""

    run: str
    pieces: tuple[Piece, ...]
    processes: list[str]
    found: Longs


def _tell(story: _Story) -> Iterable[dict[str, Any]]:
    def answer() -> list[Violation]:
        source = Region(story.run, story.pieces, story.processes)
        run = Run(story.run, story.processes)
        return explain(source, {story.run: (run, story.found)})

    return _guarded(answer)


def _explained(spark: SparkSession, whole: _Part, told: _Told) -> list[Violation]:
    """The violations with their chains; a task for each, with the rows that it takes."""
    stories = []
    for row in told.found:
        start, end = row[Found.FIRST_SENT], row[Found.SENT]
        if end - start >= ROWS:
            start = end  # too far back: told without a chain
        pieces = [p for p in whole.pieces if p.position <= end and start < p.position + p.rows]
        stories.append(_Story(whole.run, tuple(pieces), told.processes, row[np.newaxis]))
    return [violation for answer in _done(spark, stories, _tell) for violation in answer]
