"""What a search relies on: that copies of an endpoint are independent, and states complete.

A search copies endpoints, and takes two of them to be the same if their values are equal.
If `_copy_into` shares a container, or `_state` leaves something out, what the search finds
means nothing. So each process watches its first events for a copy that changes its original,
and each counterexample is replayed on fresh endpoints, without copies, before it is shown.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Mapping
from copy import copy
from typing import Any

from ..core.endpoint import Endpoint
from ..core.errors import CausewireError
from .states import fields

__all__ = ["WATCHED", "EndpointError", "asked", "check_original", "copied", "examine", "shared"]

WATCHED = 50
"""The number of events of each process after which the original is compared."""

_CONTAINERS = (list, dict, set, deque, bytearray)


class EndpointError(CausewireError):
    """An endpoint that cannot be model-checked: its copies or its states are wrong."""


def examine(endpoint: Endpoint) -> None:
    """Raise an error if a new endpoint cannot be copied, compared, or asked.

    Raises:
        EndpointError: A method that the search needs raises an exception, or a copy differs
            from its original.
    """
    value = asked(endpoint, "value", "_state")
    if asked(copied(endpoint), "value", "_state") != value:
        raise EndpointError(
            f"a copy of {_name(endpoint)} differs from its original: "
            "look at `_copy_into`, which must copy every attribute"
        )
    asked(endpoint, "blocked")
    asked(endpoint, "idle")


def asked(endpoint: Endpoint, what: str, blamed: str = "") -> Any:
    """Return what a method or property of an endpoint says; it must be hashable if a value.

    Raises:
        EndpointError: The method raises an exception.
    """
    try:
        said = getattr(endpoint, what)
        said = said() if callable(said) else said
        if what == "value":
            hash(said)
    except Exception as error:
        raise _raised(endpoint, blamed or what, error) from error
    return said


def copied(endpoint: Endpoint) -> Endpoint:
    """Return a copy of an endpoint.

    Raises:
        EndpointError: Its `_copy_into` raises an exception.
    """
    try:
        return copy(endpoint)
    except Exception as error:
        raise _raised(endpoint, "_copy_into", error) from error


def check_original(original: Endpoint, before: Hashable) -> None:
    """Raise an error if an endpoint has changed since its value was `before`.

    Raises:
        EndpointError: It has changed, although only a copy of it was used.
    """
    if original.value() == before:
        return
    names = shared(original, copied(original))
    which = f"shares {_listed(names)} with it" if names else "is not independent of it"
    raise EndpointError(
        f"an event at a copy of {_name(original)} changes the original: the copy {which}; "
        "look at `_copy_into`, which must copy whatever can change"
    )


def shared(endpoint: Endpoint, twin: Endpoint) -> list[str]:
    """Return the attributes of an endpoint by which containers of a copy are reached, too."""
    others = {id(each) for _, value in fields(twin) for each in _containers(value, set())}
    return [
        name
        for name, value in fields(endpoint)
        if any(id(each) in others for each in _containers(value, set()))
    ]


def _containers(value: Any, seen: set[int]) -> Iterator[Any]:
    """Yield the containers that can change and are reached from a value."""
    if id(value) in seen or isinstance(value, str | bytes | int | float | type | None):
        return
    seen.add(id(value))
    if isinstance(value, _CONTAINERS):
        yield value
    if isinstance(value, Mapping):
        inner = [*value.keys(), *value.values()]
    elif isinstance(value, list | tuple | set | frozenset | deque):
        inner = list(value)
    else:
        inner = [each for _, each in fields(value)]
    for each in inner:
        yield from _containers(each, seen)


def _raised(endpoint: Endpoint, what: str, error: Exception) -> EndpointError:
    return EndpointError(f"`{what}` of {_name(endpoint)} raises {type(error).__name__}: {error}")


def _name(endpoint: Endpoint) -> str:
    return type(endpoint).__name__


def _listed(names: list[str]) -> str:
    return " and ".join(f"`{name}`" for name in names)
