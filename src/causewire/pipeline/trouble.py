"""What keeps a task from doing its part, told by its answer.

To raise it would be to try the task again, in vain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, TypeVar

from ..check import OrderError
from ..check.columns import ScatteredRunError
from ..core.errors import CausewireError
from ..trace import TraceError
from .outcomes import ERROR, ORDER, detail_of
from .tasks import ask

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Trouble", "answers", "guarded"]

A = TypeVar("A")
W = TypeVar("W")


class Trouble(CausewireError):  # noqa: N818 - it is not always an error
    """A task could not do its part: rows out of order (`ORDER`), or worse (`ERROR`)."""

    def __init__(self, what: str, detail: str = "") -> None:
        super().__init__(what, detail)
        self.what, self.detail = what, detail


def guarded(job: Callable[[W], A]) -> Callable[[W], A | Trouble]:
    """A job that returns its trouble."""

    @wraps(job)
    def run(work: W) -> A | Trouble:
        try:
            return job(work)
        except (OrderError, ScatteredRunError):
            return Trouble(ORDER)
        except TraceError as error:
            return Trouble(ERROR, detail_of(error))

    return run


def answers(
    spark: SparkSession, works: Sequence[W], job: Callable[[W], A | Trouble], what: str
) -> list[A]:
    """Return the answers of a guarded job, described as `what`.

    Raises:
        Trouble: One of the answers is trouble.
    """
    result: list[A] = []
    for answer in ask(spark, works, job, what):
        if isinstance(answer, Trouble):
            raise answer
        result.append(answer)
    return result
