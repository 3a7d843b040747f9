"""What messages that have arrived wait for, where a protocol holds them at their receiver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from ..core.endpoint import Blocked
from .epochs import name_of

__all__ = ["Missing", "missing"]


class Missing(NamedTuple):
    """What messages of one sender wait for."""

    source: str
    """Their sender."""
    messages: int
    """How many of its messages wait."""
    origin: str
    """Whose message, or word, is missing."""
    what: str
    """What it is, in words."""


def missing(blocked: Iterable[Blocked], numbers: bool) -> list[Missing]:
    """Return the first thing that is not here, for each sender of messages that wait for one.

    Messages that only wait for others that are here as well are counted, but are not a reason.

    Args:
        blocked: What the protocol says, in the order of messages.
        numbers: Whether its numbers are those of the application's messages.
    """
    held = [message for message in blocked if message.where == "receiver"]
    here = {(message.origin, message.mid) for message in held}
    counts = Counter(message.origin for message in held)
    found: dict[str, Missing] = {}
    for source, _, _, _, waits in held:
        for kind, peer, mid in waits:
            if source in found or (peer, mid) in here:
                continue
            origin = name_of(peer)
            what = f"message {mid} of" if numbers else "an earlier message of"
            what = f"{what if kind == 'predecessor' else 'word from'} {origin}"
            found[source] = Missing(name_of(source), counts[source], origin, what)
    return list(found.values())
