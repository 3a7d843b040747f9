"""Parts of a long run, checked side by side: over its origins, or over time.

By *origins*, each task reads the whole run with clocks for a block of them: for clocks
that are too wide for one task. By *time*, each task reads a segment, in two passes
(`check/segments.py`): it costs twice the work, whatever the run is like, so it takes
three cores to gain anything. `stretches.py` has a third way.

In any case the tasks return numbers: how many violations, and where the first ones are.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..check import Kernel, OrderError
from ..check.compiled import Longs
from ..check.kernel import Found
from ..check.segments import Cut, Survey, Surveyed, resume, walk
from .outcomes import ORDER
from .pieces import Piece, Region
from .trouble import Trouble, answers, guarded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Part", "Told", "first_of", "over_origins", "over_time", "shares"]


class Part(NamedTuple):
    """A part of a run: its rows, and for whom."""

    run: str
    pieces: tuple[Piece, ...]
    origins: tuple[int, int] | None
    examples: int
    unique: bool
    cut: Cut | None = None
    ignored: tuple[int, ...] = ()


class Told(NamedTuple):
    """What a task that checked a part returns."""

    rows: int
    processes: list[str]
    messages: int
    violations: int
    undelivered: int
    found: Longs
    odd: Longs


@guarded
def _check_part(part: Part) -> Told:
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
    return Told(
        source.rows,
        processes,
        kernel.messages,
        kernel.violations,
        kernel.undelivered,
        kernel.found,
        kernel.odd,
    )


@guarded
def _survey_part(part: Part) -> Surveyed:
    first, last = part.pieces[0], part.pieces[-1]
    survey = Survey(first.position, part.ignored)
    processes: list[str] = []
    for chunk in Region(part.run, part.pieces).chunks():
        processes = chunk.run.processes
        survey.feed(chunk.columns, len(processes), chunk.position)
    result = survey.result(processes)
    return result._replace(rows=last.position + last.rows - first.position)


def over_origins(spark: SparkSession, whole: Part, blocks: int, processes: int) -> Told:
    """Blocks of origins side by side; more of them if there are more processes.

    `processes` is how many are known before anything was read.
    """
    if blocks == 1:
        (told,) = answers(spark, [whole], _check_part)
        return first_of(told, [told.found], whole.examples)
    width = ceil(processes / blocks / 32) * 32  # whole vectors
    blocked: list[Told] = []
    covered = 0
    while True:
        upto = max(covered + width, width * ceil(processes / width))
        parts = [whole._replace(origins=(lo, lo + width)) for lo in range(covered, upto, width)]
        blocked += answers(spark, parts, _check_part)
        covered, processes = upto, len(blocked[0].processes)
        if covered >= processes:
            break
    told = blocked[0]._replace(violations=sum(block.violations for block in blocked))
    return first_of(told, [block.found for block in blocked], whole.examples)


def over_time(spark: SparkSession, whole: Part, segments: int) -> Told:
    """Two passes over segments."""
    parts = [whole._replace(pieces=pieces) for pieces in shares(whole.pieces, segments)]
    surveys = answers(spark, parts, _survey_part)
    start = Cut.start(parts[0].pieces[0].position)
    cuts, strangers = _walk(surveys, start)
    if strangers:
        again = [parts[k]._replace(ignored=tuple(rows)) for k, rows in strangers.items()]
        for k, survey in zip(strangers, answers(spark, again, _survey_part), strict=True):
            surveys[k] = survey
        cuts, strangers = _walk(surveys, start)
        assert not strangers
    parts = [part._replace(cut=cut) for part, cut in zip(parts, cuts, strict=False)]
    checked = answers(spark, parts, _check_part)
    told = Told(
        sum(segment.rows for segment in checked),
        cuts[-1].processes,
        sum(segment.messages for segment in checked),
        sum(segment.violations for segment in checked),
        cuts[-1].flight.copies,
        checked[0].found,
        np.concatenate([segment.odd for segment in checked]),
    )
    return first_of(told, [segment.found for segment in checked], whole.examples)


def _walk(surveys: Sequence[Surveyed], start: Cut) -> tuple[list[Cut], dict[int, list[int]]]:
    try:
        return walk(surveys, start)
    except OrderError:
        raise Trouble(ORDER) from None


def shares(pieces: Sequence[Piece], parts: int) -> list[tuple[Piece, ...]]:
    """Consecutive pieces, about as many rows in each share."""
    total = sum(piece.rows for piece in pieces)
    result: list[list[Piece]] = [[]]
    done = 0
    for piece in pieces:
        if result[-1] and done + piece.rows / 2 > total * len(result) / parts:
            result.append([])
        result[-1].append(piece)
        done += piece.rows
    return [tuple(share) for share in result]


def first_of(told: Told, found: Sequence[Longs], examples: int) -> Told:
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
