"""A long run checked in stretches of time, in parallel; `parts.py` divides by origins.

Each task reads the rows of a stretch, and goes on until what was sent in it has arrived
(`check/stretches.py`). So hardly a row is read twice, and nothing is done twice; where
messages are lost, tasks go on to the end of the run, but with narrow clocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._compiled import Longs
from ..check.kernel import Found, Odd
from ..check.stretches import Stretch
from .outcomes import ORDER
from .parts import Part, PartResult, first_of, shares
from .pieces import Piece, Region
from .trouble import Trouble, answers, guarded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["MUCH", "over_stretches"]

MUCH = "much"
"""The trouble with runs in which too much is in flight where a stretch begins."""

_LOOK = 1 << 13
"""Rows beyond the end that are taken at first, before looking whether that is enough."""


class _Work(NamedTuple):
    """A stretch; `beyond` is the rest of the run, and `processes` who is known already."""

    part: Part
    beyond: tuple[Piece, ...]
    processes: Sequence[str]
    flight: int


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
    part = work.part
    kernel = Stretch(examples=part.examples, unique=part.unique)
    end = part.pieces[-1].position + part.pieces[-1].rows
    rows, look, ended = 0, _LOOK, False
    processes: list[str] = []
    for chunk in Region(part.run, part.pieces + work.beyond, work.processes).chunks():
        processes = chunk.run.processes
        many = len(chunk.columns.kind)
        if chunk.position < end:
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
    pieces = shares(whole.pieces, many)
    ends = np.cumsum([len(share) for share in pieces])
    while True:
        works = [
            _Work(whole._replace(pieces=share), whole.pieces[end:], processes, flight)
            for share, end in zip(pieces, ends.tolist(), strict=True)
        ]
        what = f"check: {len(works)} stretches of run {whole.run}"
        stretches = answers(spark, works, _check_stretch, what)
        everyone = list(dict.fromkeys(name for s in stretches for name in s.result.processes))
        if _as_one_would(stretches, everyone, whole.examples):
            break
        processes = everyone
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
