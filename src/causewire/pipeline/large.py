"""A long run, checked by many tasks: who gets which part, and what came of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .limits import Limits, Shape, choose
from .parts import Part, over_origins, over_time
from .pieces import Piece, names_in
from .second_look import explained, second_look
from .session import parallelism

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
    rows = sum(piece.rows for piece in pieces)
    processes = len(names_in(pieces[0]))
    if shape is None:
        shape = choose(rows, processes, parallelism(spark), limits, growing=not unique)
    whole = Part(run, tuple(pieces), None, examples, unique)
    if shape.segments > 1:
        told = over_time(spark, whole, shape.segments)
    else:
        told = over_origins(spark, whole, shape.blocks, processes)
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
