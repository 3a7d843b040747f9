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

__all__ = ["Share", "check_small", "shares_of_runs"]


def check_small(
    spark: SparkSession,
    pieces: Sequence[Piece],
    *,
    skip: Collection[str] = (),
    examples: int = 10,
    limits: Limits | None = None,
) -> pa.Table:
    """The outcomes of the runs in these pieces, but those in `skip`, as `OUTCOME`."""
    works = [
        _Work(share, frozenset(skip), examples)
        for share in shares_of_runs(pieces, limits or Limits(), parallelism(spark))
    ]
    return pa.concat_tables(ask(spark, works, _check_share, "check: whole runs"))


class Share(NamedTuple):
    """The runs that begin in the pieces from `start` to `end`."""

    pieces: Sequence[Piece]
    start: int
    end: int


class _Work(NamedTuple):
    """A share to check; runs of the names in `skip` are looked at by others."""

    share: Share
    skip: frozenset[str]
    examples: int


def shares_of_runs(pieces: Sequence[Piece], limits: Limits, cores: int) -> Iterator[Share]:
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
            yield Share(pieces[before:last], start - before, k - before)
            start, rows = k, 0


def _check_share(work: _Work) -> pa.Table:
    batches = rows_to_batches(_rows_of(work), OUTCOME)
    return pa.Table.from_batches(batches, OUTCOME)


def _rows_of(work: _Work) -> Iterator[dict[str, Any]]:
    try:
        for held in Runs(*work.share, work.skip):
            yield judged(held.name, held, work.examples)
    except ScatteredRunError as error:
        yield out_of_order(str(error))
    except TraceError as error:
        yield failed("", error)
