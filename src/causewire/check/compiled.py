"""Compile a function with Numba, and keep the machine code on disk.

Typed as the identity, so that callers see the function they wrote.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt

__all__ = ["Bytes", "Clocks", "Longs", "Words", "compiled", "inlined"]

F = TypeVar("F", bound=Callable[..., Any])

Bytes: TypeAlias = npt.NDArray[np.int8]
Words: TypeAlias = npt.NDArray[np.int32]
Clocks: TypeAlias = npt.NDArray[Any]  # of 16 bits or of 32; functions are compiled for either
Longs: TypeAlias = npt.NDArray[np.int64]


def compiled(function: F) -> F:
    """Compile on first use; recompiled in the next process only if it changed."""
    try:
        return cast(F, numba.njit(cache=True)(function))
    except RuntimeError:  # no place on this machine where a cache may be kept
        return cast(F, numba.njit(function))


def inlined(function: F) -> F:
    """Compile into the callers, for small functions that are called for each row.

    (A call passes each array as seven words, which costs more than such a
    function does.)
    """
    return cast(F, numba.njit(forceinline=True)(function))
