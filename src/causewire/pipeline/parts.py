"""Parts of a long run for tasks, and a long run checked by blocks of origins.

Each task reads the whole run with clocks for a block of origins. This is for runs whose
clocks do not fit into one task, and for runs in which so much is in flight that
stretches of time (`stretches.py`) do not pay. Tasks return numbers: how many violations
there are, and where the first ones are.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from .._compiled import Longs
from ..check import Kernel
from ..check.kernel import Found
from .ranges import Place, rows_at
from .trouble import answers, guarded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

P = TypeVar("P", bound=Place)

__all__ = ["Part", "PartResult", "first_of", "over_origins", "shares"]


class Part(NamedTuple):
    """A part of a run: its rows, and the origins to check."""

    run: str
    pieces: tuple[Place, ...]
    origins: tuple[int, int] | None
    examples: int
    unique: bool


class PartResult(NamedTuple):
    """What a task found in its part."""

    rows: int
    processes: list[str]
    messages: int
    violations: int
    undelivered: int
    found: Longs
    odd: Longs
    delivered: bool
    """Whether any delivery took part in the order."""


@guarded
def _check_part(part: Part) -> PartResult:
    kernel = Kernel(part.origins, examples=part.examples, unique=part.unique)
    source = rows_at(part.run, part.pieces)
    processes: list[str] = []
    for chunk in source.chunks():
        processes = chunk.run.processes
        kernel.feed(chunk.columns, len(processes), chunk.position)
    return PartResult(
        source.rows,
        processes,
        kernel.messages,
        kernel.violations,
        kernel.undelivered,
        kernel.found,
        kernel.odd,
        kernel.delivered,
    )


def over_origins(spark: SparkSession, whole: Part, blocks: int, processes: int) -> PartResult:
    """Blocks of origins side by side; more of them if there are more processes.

    `processes` is how many are known before anything was read.
    """
    if blocks == 1:
        (result,) = answers(spark, [whole], _check_part, f"check: run {whole.run}")
        return first_of(result, [result.found], whole.examples)
    width = ceil(processes / blocks / 32) * 32  # whole vectors
    blocked: list[PartResult] = []
    covered = 0
    while True:
        upto = max(covered + width, width * ceil(processes / width))
        parts = [whole._replace(origins=(lo, lo + width)) for lo in range(covered, upto, width)]
        what = f"check: {len(parts)} blocks of origins of run {whole.run}"
        blocked += answers(spark, parts, _check_part, what)
        covered, processes = upto, len(blocked[0].processes)
        if covered >= processes:
            break
    result = blocked[0]._replace(violations=sum(block.violations for block in blocked))
    return first_of(result, [block.found for block in blocked], whole.examples)


def shares(pieces: Sequence[P], parts: int) -> list[tuple[P, ...]]:
    """Consecutive pieces, about as many rows in each share."""
    total = sum(piece.rows for piece in pieces)
    result: list[list[P]] = [[]]
    done = 0
    for piece in pieces:
        if result[-1] and done + piece.rows / 2 > total * len(result) / parts:
            result.append([])
        result[-1].append(piece)
        done += piece.rows
    return [tuple(share) for share in result]


def first_of(result: PartResult, found: Sequence[Longs], examples: int) -> PartResult:
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
    return result._replace(found=np.array(rows, np.int64).reshape(-1, len(Found)))
