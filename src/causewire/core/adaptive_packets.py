"""The packets of `adaptive`, and the entries in them.

An entry names a message, and who is to deliver it: (origin, dest, mid). `dest` is the
name of the only destination or, for a multicast to a group, the group: the names of its
members in order, the origin included, so that all members of a group give it the same
name. On the wire a group is written out once for each pair of processes, and referred to
by a number from then on; so it counts as one identifier here.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple, Self, TypeAlias

from .endpoint import Numbered, Packet, RemoteProtocolError, check_number
from .fifo import check_order

__all__ = [
    "UNMET",
    "AdaptiveMessage",
    "Checked",
    "Dest",
    "Entries",
    "Entry",
    "Got",
    "Listed",
    "News",
    "Part",
    "Seen",
    "is_alias",
]

_new = tuple.__new__

Dest: TypeAlias = str | tuple[str, ...]
"""The destination of a message, or the group to which it was sent."""

Entry: TypeAlias = tuple[str, Dest, int]
"""A message: its origin, its destination or group, and its number."""

Entries: TypeAlias = tuple[Entry, ...]


UNMET = "\0"
"""In news, in the place of a destination: all aliases (`adaptive_aliases`)."""


def is_alias(dest: Dest) -> bool:
    """Return whether a destination is a process that its sender had not met: it ends in NUL."""
    return dest.__class__ is str and dest[-1] == "\0"


class Listed(NamedTuple):
    """What a run has as the payload of a message with a list."""

    payload: Any
    dests: tuple[str, ...]
    entries: Entries


class Checked(Listed):
    """The same, with entries that the driver knows to be well formed."""

    __slots__ = ()


def _check_group(group: object) -> None:
    if (
        type(group) is not tuple
        or len(group) < 3
        or not all(isinstance(name, str) and name for name in group)
        or not all(one < other for one, other in pairwise(group))
    ):
        raise RemoteProtocolError(f"a group must have three or more names in order, not {group!r}")


def _check_entries(entries: object) -> None:
    if type(entries) is not tuple:
        raise RemoteProtocolError(f"entries must be a tuple, not {entries!r}")
    for entry in entries:
        if type(entry) is not tuple or len(entry) != 3:
            raise RemoteProtocolError(f"an entry has an origin, a destination, a number: {entry!r}")
        origin, dest, mid = entry
        check_number("the number in an entry", mid, 1)
        if not isinstance(origin, str) or not origin:
            raise RemoteProtocolError(f"an origin must be a name, not {origin!r}")
        if isinstance(dest, str):
            if dest in ("", origin):
                raise RemoteProtocolError(f"{origin!r} sends nothing to {dest!r}")
        else:
            _check_group(dest)
            if origin not in dest:
                raise RemoteProtocolError(f"{origin!r} is no member of the group {dest!r}")


class _WithEntries(Packet):
    """A packet whose last field is a list of entries."""

    __slots__ = ()

    @property
    def integers(self) -> int:  # type: ignore[override]
        own = sum(type(field) is int for field in self[1:3])
        return own + len(self[-1])

    @property
    def identifiers(self) -> int:  # type: ignore[override]
        return 2 * len(self[-1])


class AdaptiveMessage(_WithEntries):
    """Message `mid`, next after `pid`, with what its sender knows to be undelivered.

    `dests` is the group to which it goes. It is empty if there is no destination but the
    receiver, or `entries` list the others.
    """

    __slots__ = ()
    kind = "msg"
    fields = ("mid", "pid", "payload", "dests", "entries")
    numbers = ("mid", "pid")

    def __new__(
        cls, mid: int, pid: int, payload: Any, dests: tuple[str, ...], entries: Entries
    ) -> Self:
        check_order(mid, pid)
        if dests != ():
            _check_group(dests)
        _check_entries(entries)
        return _new(cls, ("msg", mid, pid, payload, dests, entries))

    @property
    def identifiers(self) -> int:  # type: ignore[override]
        return 2 * len(self[5]) + bool(self[4])


class Part(_WithEntries):
    """Part `number` of the entries of message `mid`, ahead of it; part 0 is empty."""

    __slots__ = ()
    kind = "part"
    fields = ("mid", "number", "entries")
    numbers = ("mid",)

    def __new__(cls, mid: int, number: int, entries: Entries) -> Self:
        check_number("mid", mid, 1)
        check_number("number", number, 0)
        _check_entries(entries)
        if bool(number) != bool(entries):
            raise RemoteProtocolError(f"part {number} cannot have {len(entries)} entries")
        return _new(cls, ("part", mid, number, entries))


class Got(Packet):
    """Part `number` of the entries of message `mid` is here."""

    __slots__ = ()
    kind = "got"
    fields = ("mid", "number")
    numbers = ("mid",)
    numbered_by = "destination"
    integers = 2

    def __new__(cls, mid: int, number: int) -> Self:
        check_number("mid", mid, 1)
        check_number("number", number, 0)
        return _new(cls, ("got", mid, number))


class News(_WithEntries):
    """The messages in `entries` have been delivered to all their destinations."""

    __slots__ = ()
    kind = "news"
    fields = ("number", "entries")

    def __new__(cls, number: int, entries: Entries) -> Self:
        check_number("number", number, 1)
        _check_entries(entries)
        if not entries:
            raise RemoteProtocolError("news without an entry")
        return _new(cls, ("news", number, entries))


class Seen(Numbered):
    """The news of that number have arrived."""

    __slots__ = ()
    kind = "seen"
