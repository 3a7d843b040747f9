"""A long run checked by many tasks: choose the shape, run the tasks, make the report."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..check import BadRow, Report, Scan
from ..check.assemble import assemble
from .limits import Limits, Shape, blocks_for, choose
from .parts import Part, PartResult, over_origins
from .pieces import Piece, Region
from .second_look import explained, second_look
from .session import parallelism
from .stretches import MUCH, over_stretches
from .trouble import Trouble

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check_large"]


def check_large(
    spark: SparkSession,
    run: str,
    pieces: Sequence[Piece],
    *,
    examples: int = 10,
    limits: Limits | None = None,
    shape: Shape | None = None,
    unique: bool = False,
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
        identical: How many rows were identical to others, and were left out.
        repeated: How many rows sent a message again, and were left out of the pieces.
        repeated_rows: The first of these rows.

    Raises:
        Trouble: The run has to be sorted first (`ORDER`), or cannot be read (`ERROR`).
    """
    limits = limits or Limits()
    rows, cores = sum(piece.rows for piece in pieces), parallelism(spark)
    processes = _first_mentioned(run, pieces)
    if shape is None:
        shape = choose(rows, len(processes), cores, limits)
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
    )
    return assemble(
        found,
        judged,
        violations,
        events=result.rows + repeated,
        identical=identical,
        repeated=repeated,
        repeated_rows=repeated_rows,
        limit=examples,
    )


def _first_mentioned(run: str, pieces: Sequence[Piece]) -> list[str]:
    """Return everyone whom the run mentions in the first piece that it has for itself."""
    own = next((k for k, piece in enumerate(pieces) if piece.run == run), 0)
    names: list[str] = []
    for chunk in Region(run, pieces[: own + 1]).chunks():
        names = chunk.run.processes
    return names
