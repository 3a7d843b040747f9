"""Long messages of a group, in parts.

A node takes messages up to a limit (`TransportConfig.message`). What one member has to tell
another may be longer: a state, above all. It then travels in parts, each of which is a message.
Messages from one process to another arrive in the order in which they were sent, so the receiver
only has to put the parts together.

Each member sends its long messages in two lanes, one for states, which may take a while, and one
for everything else. Within a lane, one long message follows the other. A first part replaces
what is incomplete in its lane, as the sender has given that up. A part that does not continue
what is there is dropped: its beginning went to an earlier incarnation of the receiver.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

from ..node import Node
from .frames import MARK, Kind, MalformedError, Reader, put_number, put_text

__all__ = ["PART", "Lane", "Parts", "cut", "part_size"]

PART = 64 << 10
"""The length of a part, in bytes, unless the node only takes shorter messages."""


class Lane(IntEnum):
    """What a part belongs to."""

    LOG = 0
    STATE = 1


def part_size(node: Node) -> int:
    """Return how long a part may be, with its head."""
    return min(PART, node.longest_message)


def cut(group: str, lane: Lane, data: bytes, size: int) -> Iterator[bytes]:
    """Yield the parts of a frame.

    Args:
        group: The name of the group.
        lane: Where it belongs.
        data: The frame as bytes.
        size: How long a part may be, with its head.
    """
    begin = MARK + bytes((Kind.PART,)) + put_text(group) + put_number(lane)
    end = put_number(len(data))
    step = max(1, size - len(begin) - 2 * len(end))
    view = memoryview(data)
    for at in range(0, len(data), step):
        yield begin + put_number(at) + end + view[at : at + step]


class Parts:
    """What has arrived of long messages that are not complete."""

    def __init__(self) -> None:
        self.states = 0
        """How many parts of states have arrived."""
        self._begun: dict[tuple[str, int], tuple[int, int, list[bytes]]] = {}
        """The length, how much is there, and the parts; by sender and lane."""

    def add(self, source: str, reader: Reader, largest: int) -> bytes | None:
        """Add a part, and return the frame if that completes it.

        Args:
            source: Who has sent it.
            reader: The part, after the name of the group.
            largest: How long a frame may be.

        Raises:
            MalformedError: The frame is longer than that.
        """
        lane, at, length = reader.number(), reader.number(), reader.number()
        data = reader.rest()
        key = source, lane
        before, there, parts = self._begun.pop(key, (0, 0, []))
        if at == 0:
            before, there, parts = length, 0, []
        if (before, there) != (length, at):
            return None
        there += len(data)
        if length > largest or there > length:
            raise MalformedError(f"{length} bytes in parts, more than {largest}")
        parts.append(data)
        self.states += lane == Lane.STATE
        if there == length:
            return b"".join(parts)
        self._begun[key] = length, there, parts
        return None

    def arrived(self, source: str) -> str:
        """Return how much of a state is there, in words; empty if there is nothing."""
        length, there, _ = self._begun.get((source, Lane.STATE), (0, 0, []))
        return f"has sent {there} of {length} bytes of its state" if there else ""

    def drop(self, source: str) -> None:
        """Drop what is incomplete, as its sender is gone."""
        for lane in Lane:
            self._begun.pop((source, lane), None)

    def drop_states(self) -> None:
        """Drop incomplete states, as this process needs none."""
        for key in [key for key in self._begun if key[1] == Lane.STATE]:
            del self._begun[key]
