"""Many runs, none of them long: whole runs to a task."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from ..check.columns import ScatteredRunError
from ..trace import TraceError
from .limits import Limits
from .outcomes import OUTCOME, failed, judged, out_of_order
from .pieces import Piece, Runs
from .session import parallelism
from .tasks import ask, rows_to_batches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check_small"]


def check_small(
    spark: SparkSession,
    pieces: Sequence[Piece],
    *,
    skip: Collection[str] = (),
    examples: int = 10,
    limits: Limits | None = None,
) -> pa.Table:
    """The outcomes of the runs in these pieces, but those in `skip`, as `OUTCOME`."""
    shares = _shares(pieces, limits or Limits(), parallelism(spark))
    works = [_Share(*share, frozenset(skip), examples) for share in shares]
    return pa.concat_tables(ask(spark, works, _check_share, "check: whole runs"))


class _Share(NamedTuple):
    """The runs that begin in the pieces from `start` to `end`."""

    pieces: Sequence[Piece]
    start: int
    end: int
    skip: frozenset[str]
    examples: int


def _shares(
    pieces: Sequence[Piece], limits: Limits, cores: int
) -> Iterator[tuple[Sequence[Piece], int, int]]:
    """Pieces with about as many rows; several shares for a core, if they are many.

    Each comes with the piece before it, and with as many after it as a run that is
    not large can go on in.
    """
    ends = list(accumulate(piece.rows for piece in pieces))
    rounds = min(4, ceil(ends[-1] / cores / limits.enough))
    each = max(limits.share, ends[-1] / cores / rounds)
    start = rows = 0
    for k, piece in enumerate(pieces, 1):
        rows += piece.rows
        if rows >= each or k == len(pieces):
            before = max(0, start - 1)
            last = bisect_left(ends, ends[k - 1] + limits.large) + 2
            yield pieces[before:last], start - before, k - before
            start, rows = k, 0


def _check_share(share: _Share) -> pa.Table:
    batches = rows_to_batches(_rows_of(share), OUTCOME)
    return pa.Table.from_batches(batches, OUTCOME)


def _rows_of(share: _Share) -> Iterator[dict[str, Any]]:
    try:
        for held in Runs(share.pieces, share.start, share.end, share.skip):
            yield judged(held.name, held, share.examples)
    except ScatteredRunError as error:
        yield out_of_order(str(error))
    except TraceError as error:
        yield failed("", error)
