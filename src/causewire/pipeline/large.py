"""A long run checked by many tasks: choose the shape, run the tasks, make the report."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..check import BadRow, Report, Scan
from ..check.assemble import assemble
from ..check.columns import DELIVER, SEND, Columns
from ..check.lives import has_lives
from .limits import Limits, Shape, blocks_for, choose
from .parts import Part, PartResult, over_origins
from .pieces import Piece, Region
from .ranges import Range
from .second_look import explained, second_look
from .session import parallelism
from .stretches import MUCH, over_ranges, over_stretches
from .trouble import Trouble

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["RESTARTED", "check_large", "check_ranges", "overdue_share"]

RESTARTED = "restarted"
"""The trouble with runs whose destinations have to be resolved first."""

_LOOK = 200_000
"""Rows of a run that are looked at before its shape is chosen."""


def check_large(
    spark: SparkSession,
    run: str,
    pieces: Sequence[Piece],
    *,
    examples: int = 10,
    limits: Limits | None = None,
    shape: Shape | None = None,
    unique: bool = False,
    resolved: bool = False,
    identical: int = 0,
    repeated: int = 0,
    repeated_rows: Sequence[BadRow] = (),
) -> Report:
    """Check one run with many tasks.

    Args:
        spark: The session.
        run: The name of the run.
        pieces: Where its rows are, in order.
        examples: How many violations to explain, and how many bad rows to describe.
        limits: The sizes that decide how the run is shared out.
        shape: How to share it out, instead of letting `limits` decide.
        unique: Whether it is known that no message is sent twice; then mids need not grow.
        resolved: Whether destinations that were restarted have been resolved.
        identical: How many rows were identical to others, and were left out.
        repeated: How many rows sent a message again, and were left out of the pieces.
        repeated_rows: The first of these rows.

    Raises:
        Trouble: The run has to be sorted first (`ORDER`), cannot be read (`ERROR`), or has
            processes that were restarted (`RESTARTED`).
    """
    limits = limits or Limits()
    rows, cores = sum(piece.rows for piece in pieces), parallelism(spark)
    processes, overdue = _first_look(run, pieces)
    if shape is None:
        shape = choose(rows, len(processes), cores, limits, overdue)
    whole = Part(run, tuple(pieces), None, examples, unique)
    result: PartResult | None = None
    if shape.stretches > 1:
        try:
            result = over_stretches(spark, whole, shape.stretches, processes, limits.flight)
        except Trouble as trouble:
            if trouble.what != MUCH:
                raise
            shape = Shape(blocks=blocks_for(len(processes), cores, limits))
    if result is None:
        result = over_origins(spark, whole, shape.blocks, len(processes))
    if not resolved and has_lives(result.processes):
        raise Trouble(RESTARTED)
    return _report(
        spark, whole, result, identical=identical, repeated=repeated, repeated_rows=repeated_rows
    )


def check_ranges(
    spark: SparkSession, run: str, places: Sequence[Range], *, examples: int, limits: Limits
) -> Report:
    """Check a run in files of nodes with many tasks, each of which sorts the rows it needs.

    Args:
        spark: The session.
        run: The name of the run.
        places: Ranges that together are the run.
        examples: How many violations to explain, and how many bad rows to describe.
        limits: The sizes that decide whether the run is made for that.

    Raises:
        Trouble: The Lamport times cannot be relied on (`ORDER`), the rows cannot be read
            (`ERROR`), there is too much in flight (`MUCH`), or processes were restarted
            (`RESTARTED`).
    """
    names = {piece.process for place in places for piece in place.pieces}
    processes = sorted(name for name in names if name is not None)
    if choose(0, len(processes), 1, limits).blocks > 1:
        raise Trouble(MUCH)  # clocks do not fit into one task
    whole = Part(run, tuple(places), None, examples, unique=False)
    result, whole = over_ranges(spark, whole, processes, limits)
    if has_lives(result.processes):
        raise Trouble(RESTARTED)
    return _report(spark, whole, result)


def _report(
    spark: SparkSession,
    whole: Part,
    result: PartResult,
    *,
    identical: int = 0,
    repeated: int = 0,
    repeated_rows: Sequence[BadRow] = (),
) -> Report:
    judged, late = second_look(spark, whole, result)
    violations = [
        dataclasses.replace(violation, late=known)
        for violation, known in zip(explained(spark, whole, result), late, strict=True)
    ]
    found = Scan(
        messages=result.messages,
        processes=len(result.processes),
        runs=1,
        violations=result.violations,
        undelivered=result.undelivered,
        delivered=result.delivered,
    )
    return assemble(
        found,
        judged,
        violations,
        events=result.rows + repeated,
        identical=identical,
        repeated=repeated,
        repeated_rows=repeated_rows,
        limit=whole.examples,
    )


def _first_look(run: str, pieces: Sequence[Piece]) -> tuple[list[str], float]:
    """Return everyone whom the run mentions in the first piece that it has for itself.

    And, of the rows up to there, the share of copies that are overdue.
    """
    own = next((k for k, piece in enumerate(pieces) if piece.run == run), 0)
    names: list[str] = []
    held: list[Columns] = []
    left = _LOOK
    for chunk in Region(run, pieces[: own + 1]).chunks():
        names = chunk.run.processes
        if left > 0:
            held.append(chunk.columns.rows(0, left).copy())
            left -= len(held[-1].kind)
    return names, overdue_share(Columns.joined(held)) if held else 0.0


def overdue_share(columns: Columns) -> float:
    """Return which share of the copies sent in the first half of these rows did not arrive.

    Where messages arrive soon, this is the share of those that are lost.
    """
    half = len(columns.kind) // 2
    sender = np.repeat(np.arange(half), np.diff(columns.first[: half + 1]))
    causal = columns.kind[sender] == SEND
    if not causal.any():
        return 0.0
    message = columns.mid << 20 ^ columns.origin
    peers = columns.peers[columns.first[0] : columns.first[half]]
    sent = np.sort(message[sender[causal]] << 20 ^ peers[causal])
    known = columns.kind == DELIVER
    arrived = np.sort(message[known] << 20 ^ columns.process[known])
    if not len(arrived):
        return 1.0
    place = np.searchsorted(arrived, sent)  # in order, which takes a third of `isin`
    return float((arrived[np.minimum(place, len(arrived) - 1)] != sent).mean())
