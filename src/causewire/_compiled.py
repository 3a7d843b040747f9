"""The one place where functions are compiled with Numba.

    @compiled
    def count(values: Longs) -> int: ...

    @compiled(inline=True)      # compiled into its callers
    def step(values: Longs, k: int) -> int: ...

Machine code is kept on disk between processes. Numba discards it when the *file* of the
function changes, which misses two changes that matter: a function compiled into this one
from another file, and a constant or a named tuple that it reads from elsewhere. So the
code is stored under a digest of everything that is compiled: the source of the function,
the sources of the compiled functions that it names, the constants that it names, and the
fields of the named tuples in its signature.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, TypeAlias, TypeVar, cast, overload

import numba
import numpy as np
import numpy.typing as npt
from numba.core.caching import FunctionCache, IndexDataCacheFile

__all__ = ["Bytes", "Clocks", "Longs", "Words", "compiled", "digest"]

F = TypeVar("F", bound=Callable[..., Any])

Bytes: TypeAlias = npt.NDArray[np.int8]
Words: TypeAlias = npt.NDArray[np.int32]
Clocks: TypeAlias = npt.NDArray[Any]
"""Of 16 bits or of 32; functions are compiled for either."""
Longs: TypeAlias = npt.NDArray[np.int64]


@overload
def compiled(function: F) -> F: ...
@overload
def compiled(*, inline: bool) -> Callable[[F], F]: ...
def compiled(function: F | None = None, *, inline: bool = False) -> F | Callable[[F], F]:
    """Return the function compiled on its first call, with its code kept on disk.

    Typed as the identity, so that callers see the function that they wrote.

    Args:
        function: The function to compile.
        inline: Compile it into each caller, for small functions that run once for each
            row: a call passes every array as seven words, which costs more than such a
            function does. The code is kept with the callers.
    """
    if function is None:
        return lambda wrapped: _compiled(wrapped, inline)
    return _compiled(function, inline)


def _compiled(function: F, inline: bool) -> F:
    if inline:
        return cast(F, numba.njit(forceinline=True)(function))
    dispatcher = numba.njit(function)
    # No directory on this machine can hold the code, or there is no source to tell it by.
    with suppress(RuntimeError, OSError):
        dispatcher._cache = _cache(function)
    return cast(F, dispatcher)


def _cache(function: Callable[..., Any]) -> Any:
    """Return Numba's own cache on disk, but valid as long as the digest is the same."""
    cache: Any = FunctionCache(function)  # type: ignore[no-untyped-call]
    place = Path(cache._cache_path)
    if not Path(function.__code__.co_filename).is_file():
        # It comes from an archive, which is somewhere else in every application of Spark.
        place = place.parent / "causewire"
        place.mkdir(parents=True, exist_ok=True)
    cache._cache_file = IndexDataCacheFile(  # type: ignore[no-untyped-call]
        cache_path=str(place),
        filename_base=cache._impl.filename_base,
        source_stamp=digest(function),
    )
    return cache


def digest(function: Callable[..., Any]) -> str:
    """Return a digest of everything that determines the machine code of a function."""
    sha = hashlib.sha256()
    for part in sorted(_parts(getattr(function, "py_func", function), set())):
        sha.update(part.encode() + b"\0")
    return sha.hexdigest()


def _parts(function: Callable[..., Any], seen: set[Callable[..., Any]]) -> Iterator[str]:
    """Yield the sources of the function and of what it calls, and the constants they read."""
    if function in seen:
        return
    seen.add(function)
    yield inspect.getsource(function)
    named = _named(function.__code__)
    scope = function.__globals__
    values = {name: scope[name] for name in named if name in scope}
    for module in [value for value in values.values() if isinstance(value, ModuleType)]:
        if module.__name__.startswith("causewire"):
            values |= {name: vars(module)[name] for name in named if name in vars(module)}
    for annotation in function.__annotations__.values():
        value = scope.get(annotation) if isinstance(annotation, str) else annotation
        if fields := getattr(value, "_fields", None):
            yield f"{annotation}: {fields}"
    for name, value in values.items():
        if isinstance(value, bool | int | float | str | np.generic):
            yield f"{name} = {value!r}"
        elif callee := getattr(value, "py_func", None):
            yield from _parts(callee, seen)


def _named(code: CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _named(constant)
    return names
