"""When to give up a peer that does not answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

__all__ = ["GiveUpAfter", "policy"]

GiveUpAfter: TypeAlias = float | Mapping[str, float | None] | None
"""Seconds for all peers, or for each by name, with `""` for all others; None for never."""


def policy(given: GiveUpAfter) -> Callable[[str], float | None]:
    """Return after how many seconds to give up a peer, as a function of its name.

    Args:
        given: What the user asked for.

    Raises:
        ValueError: A time is not positive.
    """
    times = list(given.values()) if isinstance(given, Mapping) else [given]
    for seconds in times:
        if seconds is None:
            continue
        if not seconds > 0:
            raise ValueError(f"give_up_after must be above 0, not {seconds!r}")
    if isinstance(given, Mapping):
        named = dict(given)
        others = named.pop("", None)
        return lambda name: named.get(name, others)
    return lambda name: given
