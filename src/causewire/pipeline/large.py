"""A long run, checked by many tasks: who gets which part, and what came of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .limits import Limits, Shape, blocks_for, choose
from .parts import Part, Told, over_origins, over_time
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
) -> dict[str, Any]:
    """The outcome of a run, as a row of `OUTCOME`; `Trouble` if there is none.

    `unique` says that no message is sent twice, so mids need not grow.
    """
    limits = limits or Limits()
    rows, cores = sum(piece.rows for piece in pieces), parallelism(spark)
    processes = _first_mentioned(run, pieces)
    if shape is None:
        shape = choose(rows, len(processes), cores, limits, growing=not unique)
    whole = Part(run, tuple(pieces), None, examples, unique)
    told: Told | None = None
    if shape.segments > 1:
        told = over_time(spark, whole, shape.segments)
    elif shape.stretches > 1:
        try:
            told = over_stretches(spark, whole, shape.stretches, processes, limits.flight)
        except Trouble as trouble:
            if trouble.what != MUCH:
                raise
            shape = Shape(blocks=blocks_for(len(processes), cores, limits))
    if told is None:
        told = over_origins(spark, whole, shape.blocks, len(processes))
    verdict, late = second_look(spark, whole, told)
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
            for violation, known in zip(explained(spark, whole, told), late, strict=True)
        ],
        "bad_rows": [row._asdict() for row in verdict.rows],
    }


def _first_mentioned(run: str, pieces: Sequence[Piece]) -> list[str]:
    """Everyone whom the run mentions in the first piece that it has for itself."""
    own = next((k for k, piece in enumerate(pieces) if piece.run == run), 0)
    names: list[str] = []
    for chunk in Region(run, pieces[: own + 1]).chunks():
        names = chunk.run.processes
    return names
