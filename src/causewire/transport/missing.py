"""What messages that have arrived wait for, where a protocol holds them at their receiver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from ..core.endpoint import Blocked, Wait
from .epochs import name_of

__all__ = ["Missing", "described", "missing"]


class Missing(NamedTuple):
    """What messages of one sender wait for."""

    source: str
    """Their sender."""
    messages: int
    """How many of its messages wait."""
    origin: str
    """Whose message, or word, is missing."""
    number: int
    """Its number, as the protocol has it: what tells this wait from a later one."""
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
            found[source] = described(source, counts[source], Wait(kind, peer, mid), numbers)
    return list(found.values())


def described(source: str, messages: int, wait: Wait, numbers: bool) -> Missing:
    """Return what messages of a sender wait for, with the names that people know."""
    kind, peer, mid = wait
    origin = name_of(peer)
    what = f"message {mid} of" if numbers else "an earlier message of"
    what = f"{what if kind == 'predecessor' else 'word from'} {origin}"
    return Missing(name_of(source), messages, origin, mid, what)
