"""A long run checked in stretches of time, in parallel; `parts.py` divides by origins.

Each task reads the rows of a stretch, and goes on until what was sent in it has arrived
(`check/stretches.py`). So hardly a row is read twice, and nothing is done twice; where
messages are lost, tasks go on to the end of the run, but with narrow clocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._compiled import Longs
from ..check.kernel import Found, Odd
from ..check.stretches import Stretch
from .limits import Limits
from .outcomes import ORDER
from .parts import Part, PartResult, first_of, shares
from .pieces import Piece, Region
from .ranges import AHEAD, POSITIONS, Range, RangeRows
from .trouble import Trouble, answers, guarded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["MUCH", "over_ranges", "over_stretches"]

MUCH = "much"
"""The trouble with runs in which too much is in flight where a stretch begins."""

_LOOK = 1 << 13
"""Rows beyond the end that are taken at first, before looking whether that is enough."""


class _Work(NamedTuple):
    """The rows of a stretch and those beyond it; `end` is the position where it ends."""

    rows: Region | RangeRows
    end: int
    examples: int
    unique: bool
    flight: int
    limits: Limits | None = None
    """Of rows that have to be sorted, which takes long: how far to go on beyond the end."""

    def gives_up(self, kernel: Stretch, rows: int, beyond: int) -> bool:
        """Return whether too much is left, `beyond` rows after the end."""
        if self.limits is None or beyond < max(self.limits.soon, rows // AHEAD):
            return False
        few = kernel.left <= self.limits.overdue * kernel.messages
        return beyond > self.limits.sort or not few


class _Answer(NamedTuple):
    """What a task found; `result.odd` is what it set aside.

    `arrived` are the positions of deliveries beyond its end that it knows. The rest is of
    each process that its own rows mention, -1 for none.
    """

    result: PartResult
    arrived: Longs
    first_seq: Longs
    first_mid: Longs
    last_seq: Longs
    last_mid: Longs


@guarded
def _check_stretch(work: _Work) -> _Answer | Trouble:
    kernel = Stretch(examples=work.examples, unique=work.unique)
    rows, beyond, look, ended = 0, 0, _LOOK, False
    processes: list[str] = []
    for chunk in work.rows.chunks():
        processes = chunk.run.processes
        many = len(chunk.columns.kind)
        if chunk.position < work.end:
            kernel.feed(chunk.columns, len(processes), chunk.position)
            rows += many
            if kernel.set_aside > work.flight:
                return Trouble(MUCH)
            continue
        if not ended:
            kernel.end()
            ended = True
        at = 0
        while kernel.left and at < many:
            columns = chunk.columns.rows(at, min(at + look, many))
            kernel.feed(columns, len(processes), chunk.position + at)
            at += look
            look *= 2
            if kernel.left:
                kernel.narrow()
        if not kernel.left:
            break
        beyond += many
        if work.gives_up(kernel, rows, beyond):
            return Trouble(MUCH)
    if not ended:
        kernel.end()
    return _Answer(
        PartResult(
            rows,
            processes,
            kernel.messages,
            kernel.violations,
            kernel.left,
            kernel.found,
            kernel.early,
            kernel.delivered,
        ),
        kernel.arrived[:, Odd.POSITION],
        kernel.first_seq,
        kernel.first_mid,
        kernel.last_seq,
        kernel.last_mid,
    )


def over_stretches(
    spark: SparkSession, whole: Part, many: int, processes: Sequence[str], flight: int
) -> PartResult:
    """Stretches side by side; `Trouble` with `MUCH` if the run is not made for that.

    `processes` are the first that the run mentions, in that order, and `flight` is how
    many copies may be in flight where a stretch begins.
    """
    pieces = [piece for piece in whole.pieces if isinstance(piece, Piece)]
    parts = shares(pieces, many)
    starts = [0, *np.cumsum([len(share) for share in parts]).tolist()]
    ends = [share[-1].position + share[-1].rows for share in parts]

    def works(processes: Sequence[str]) -> list[_Work]:
        regions = [Region(whole.run, pieces[start:], processes) for start in starts[:-1]]
        rest = whole.examples, whole.unique, flight
        return [_Work(rows, end, *rest) for rows, end in zip(regions, ends, strict=True)]

    return _together(spark, whole, works, processes)


def over_ranges(
    spark: SparkSession, whole: Part, processes: Sequence[str], limits: Limits
) -> tuple[PartResult, Part]:
    """Check stretches side by side, whose rows are sorted by the tasks that check them.

    Args:
        spark: The session.
        whole: The run; its places are the ranges.
        processes: Processes of the run, in the order in which they get numbers.
        limits: The sizes that decide whether the run is made for that.

    Returns:
        What was found, and the run with the positions of its ranges.

    Raises:
        Trouble: The run is not made for that (`MUCH`), or cannot be checked.
    """
    places = [place for place in whole.pieces if isinstance(place, Range)]

    def works(processes: Sequence[str]) -> list[_Work]:
        return [
            _Work(
                RangeRows(whole.run, places[k:], processes, own=1),
                place.position + place.rows,
                whole.examples,
                whole.unique,
                limits.flight,
                limits,
            )
            for k, place in enumerate(places)
        ]

    sizes: list[int] = []
    result = _together(spark, whole, works, processes, sizes)
    starts = np.cumsum([0, *sizes])

    def moved(positions: Longs) -> Longs:
        return np.asarray(starts[positions // POSITIONS] + positions % POSITIONS)

    for column in (Found.POSITION, Found.SENT, Found.FIRST_SENT):
        result.found[:, column] = moved(result.found[:, column])
    result.odd[:, Odd.POSITION] = moved(result.odd[:, Odd.POSITION])
    known = [
        place._replace(position=start, rows=size)
        for place, start, size in zip(places, starts.tolist(), sizes, strict=False)
    ]
    return result, whole._replace(pieces=tuple(known))


def _together(
    spark: SparkSession,
    whole: Part,
    works: Callable[[Sequence[str]], list[_Work]],
    processes: Sequence[str],
    sizes: list[int] | None = None,
) -> PartResult:
    """Check all stretches, and put together what was found.

    `works` makes the tasks, given who has a number already; `sizes` gets the number of rows
    of each stretch.
    """
    while True:
        tasks = works(processes)
        what = f"check: {len(tasks)} stretches of run {whole.run}"
        stretches = answers(spark, tasks, _check_stretch, what)
        everyone = list(dict.fromkeys(name for s in stretches for name in s.result.processes))
        if _as_one_would(stretches, everyone, whole.examples):
            break
        processes = everyone
    if sizes is not None:
        sizes += [stretch.result.rows for stretch in stretches]
    _check_order(stretches, everyone, unique=whole.unique)
    result = [_renumbered(stretch.result, everyone) for stretch in stretches]
    odd = np.concatenate([stretch.odd for stretch in result])
    arrived = np.concatenate([stretch.arrived for stretch in stretches])
    return first_of(
        PartResult(
            sum(stretch.rows for stretch in result),
            everyone,
            sum(stretch.messages for stretch in result),
            sum(stretch.violations for stretch in result),
            sum(stretch.undelivered for stretch in result),
            result[0].found,
            odd[~np.isin(odd[:, Odd.POSITION], arrived)],
            any(stretch.delivered for stretch in result),
        ),
        [stretch.found for stretch in result],
        whole.examples,
    )


def _as_one_would(stretches: Sequence[_Answer], everyone: list[str], examples: int) -> bool:
    """Whether the examples are those that one task would have kept.

    Of what a single delivery overtook, those of the lowest origins are kept. Where
    processes are mentioned late, a stretch may have numbered them in another order.
    """
    return all(
        len(result.found) < max(1, examples)
        or result.processes == everyone[: len(result.processes)]
        for result, *_ in stretches
    )


def _numbers(names: Sequence[str], everyone: list[str]) -> Longs:
    place = {name: k for k, name in enumerate(everyone)}
    return np.array([place[name] for name in names], np.int64)


def _renumbered(result: PartResult, everyone: list[str]) -> PartResult:
    numbers = _numbers(result.processes, everyone)
    found, odd = result.found.copy(), result.odd.copy()
    for column in (Found.PROCESS, Found.ORIGIN, Found.FIRST_ORIGIN):
        found[:, column] = numbers[found[:, column]]
    for which in (Odd.PROCESS, Odd.ORIGIN):
        odd[:, which] = numbers[odd[:, which]]
    return result._replace(found=found, odd=odd)


def _check_order(stretches: Sequence[_Answer], everyone: list[str], *, unique: bool) -> None:
    """`seq` grows from stretch to stretch, and so does `mid`, as they do inside."""
    seq = np.full(len(everyone), -1, np.int64)
    mid = seq.copy()
    for stretch in stretches:
        numbers = _numbers(stretch.result.processes, everyone)
        for last, first, then, matters in (
            (seq, stretch.first_seq, stretch.last_seq, True),
            (mid, stretch.first_mid, stretch.last_mid, not unique),
        ):
            there = np.flatnonzero(first >= 0)
            who = numbers[there]
            if matters and (first[there] <= last[who]).any():
                raise Trouble(ORDER)
            last[who] = then[there]
