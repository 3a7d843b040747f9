"""The state of endpoints as text, for people who go through a counterexample.

`Counterexample.states` gives it for each step. Fields have the names that the code of
the protocol has for them, without the underscore; empty ones are left out.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..core.endpoint import Endpoint, Packet

__all__ = ["endpoint_state", "fields", "states_path"]

_DEEP = 4
"""Objects within objects that are shown."""
_LONG = 300
"""Characters of one field that are shown."""
_SKIPPED = frozenset({"me", "on_delivery", "on_release"})


def states_path(trace: str | os.PathLike[str]) -> Path:
    """Return where the states that belong to the trace of a counterexample are."""
    return Path(trace).with_suffix(".states.json")


def endpoint_state(endpoint: Endpoint) -> dict[str, str]:
    """Return the fields of an endpoint that are not empty, as text."""
    state = {}
    for name, value in fields(endpoint):
        name = name.lstrip("_")
        whole = {name: value}
        if isinstance(value, Mapping):  # a line for each peer
            whole = {f"{name}[{key}]": each for key, each in value.items()}
        for key, each in whole.items():
            text = _text(each, _DEEP)
            if text:
                state[key] = text if len(text) <= _LONG else text[: _LONG - 1] + "…"
    return state


def fields(value: object) -> Iterator[tuple[str, Any]]:
    """Yield the attributes of an object, by name, except for methods."""
    names: dict[str, None] = {}
    for kind in reversed(type(value).__mro__):
        slots = vars(kind).get("__slots__", ())
        names.update(dict.fromkeys([slots] if isinstance(slots, str) else slots))
    names.update(dict.fromkeys(vars(value) if hasattr(value, "__dict__") else ()))
    for name in names:
        field = getattr(value, name, None)
        if name not in _SKIPPED and not name.startswith("__") and not callable(field):
            yield name, field


def _text(value: Any, deep: int) -> str:
    """Return a value as text; empty if there is nothing in it."""
    if value is None or value is False or (isinstance(value, int) and value == 0):
        return ""
    if isinstance(value, Packet | str | int | float | bytes | frozenset | set):
        return repr(value) if not isinstance(value, frozenset | set) or value else ""
    if deep == 0:
        return "…"
    if isinstance(value, Mapping):
        parts = [(str(key), _text(each, deep - 1)) for key, each in value.items()]
        said = ", ".join(f"{key}: {text}" for key, text in parts if text)
        return f"{{{said}}}" if said else ""
    if isinstance(value, list | tuple | deque):
        said = ", ".join(_text(each, deep - 1) or "0" for each in value)
        return f"[{said}]" if value else ""
    if hasattr(value, "__iter__"):
        return _text(list(value), deep)
    inside = ((name.lstrip("_"), _text(each, deep - 1)) for name, each in fields(value))
    said = ", ".join(f"{name}={text}" for name, text in inside if text)
    return f"({said})" if said else ""
