"""Names of processes that know which incarnation they stand for.

If the driver asks for it (`ordered_events`), the source of a delivered message is such a name:
a string like any other, which also has the incarnation of the sender.
"""

from __future__ import annotations

from ..core.endpoint import Delivery

__all__ = ["PeerName", "message_id"]


class PeerName(str):
    """The name of a process, and one of its incarnations."""

    __slots__ = ("incarnation",)

    incarnation: int

    def __new__(cls, name: str, incarnation: int) -> PeerName:
        made = str.__new__(cls, name)
        made.incarnation = incarnation
        return made

    def __reduce__(self) -> tuple[type[PeerName], tuple[str, int]]:
        return PeerName, (str(self), self.incarnation)


def message_id(message: Delivery) -> tuple[str, int, int]:
    """Return what identifies a message for ever: source, incarnation of the source, number.

    The incarnation is known if the node was made with `ordered_events=True`; otherwise, and
    for a message that a node sent to itself, it may be 0.

    Example:
        seen: set[tuple[str, int, int]] = set()
        async for message in node:
            if message_id(message) not in seen: ...
    """
    source = message.source
    incarnation = source.incarnation if isinstance(source, PeerName) else 0
    return str(source), incarnation, message.mid
