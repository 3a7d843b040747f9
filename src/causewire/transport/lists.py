"""The lists of `adaptive` as bytes: names once, then numbers. The layout is in docs/wire.md.

A list names messages by their origin, their destination or group, and their number. Both ends of
an ordered stream keep the same tables: a process or a group gets a slot when it is first
mentioned, and so does each pair of an origin and a destination. From then on an entry is the
slot of its pair and the difference to the last number of that pair, two bytes in most cases.

A process is written as its name and its incarnation, which all processes understand alike;
incarnation 0 stands for one that the origin had not met yet when it sent the message.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from ..core.adaptive import Dest, Entry
from .varint import MalformedError, get, get_text, put, put_text

__all__ = ["ListReader", "ListWriter", "Process", "Resolve"]

Process: TypeAlias = tuple[str, int]
"""A process for everybody: its name, and its incarnation."""

MOST = 4096
"""The most pairs or slots in a table; then both ends begin a new one."""

LONGEST = 1 << 20
"""The most bytes of a list that a message may have in front of its payload.

128 entries of processes that were never mentioned, with names of 255 bytes, take 68 KiB. The
rest is for groups, whose members an entry may have to name."""

_AGAIN: tuple[Any, ...] = ()
"""In the place of a pair of which has to be asked again what it is called."""

_SMALL = 64
"""Numbers below this are one byte (`varint`), which the loops over entries read and write
themselves: two calls for each entry are most of what a list costs."""


class ListWriter:
    """Writes the lists of one stream.

    Args:
        process: Returns the process that a name of the protocol stands for.
    """

    __slots__ = ("_fresh", "_last", "_pairs", "_process", "_slots")

    def __init__(self, process: Callable[[str], Process]) -> None:
        self._process = process
        self._fresh = False
        self._slots: dict[Dest, int] = {}
        self._pairs: dict[tuple[str, Dest], int] = {}
        self._last: list[int] = []
        """The last number of each pair."""

    def saved(self) -> list[Any]:
        """Return the tables as lists, strings and numbers."""
        return [list(self._slots), list(self._pairs), self._last, self._fresh]

    def restore(self, saved: list[Any]) -> None:
        """Continue with tables that were saved."""
        slots, pairs, last, self._fresh = saved
        self._slots = {_tuple(what): k for k, what in enumerate(slots)}
        self._pairs = {(origin, _tuple(dest)): k for k, (origin, dest) in enumerate(pairs)}
        self._last = list(last)

    def write(self, group: tuple[str, ...], entries: tuple[Entry, ...]) -> bytes:
        """Return a list as bytes: the group of a message, and its entries."""
        fresh = self._fresh or len(self._pairs) > MOST or len(self._slots) > MOST
        if fresh:
            self._slots, self._pairs, self._last, self._fresh = {}, {}, [], False
        out = bytearray(put(len(entries) << 2 | bool(group) << 1 | fresh))
        if group:
            self._refer(out, group)
        pairs, last = self._pairs, self._last
        for origin, dest, mid in entries:
            k = pairs.get((origin, dest))
            if k is None:
                k = pairs[origin, dest] = len(last)
                last.append(0)
                out.append(0)
                self._refer(out, origin)
                self._refer(out, dest)
            elif k < _SMALL - 1:
                out.append(k + 1)
            else:
                out += put(k + 1)
            step = mid - last[k] << 1
            last[k] = mid
            if 0 <= step < _SMALL:
                out.append(step)
            else:
                out += put(step if step >= 0 else 1 - step)
        return bytes(out)

    def begin_anew(self) -> None:
        """Use new tables from the next list on."""
        self._fresh = True

    def _refer(self, out: bytearray, what: Dest) -> None:
        """Write the slot of a process or group, and what it is if that is new."""
        slot = self._slots.get(what)
        if slot is not None:
            out += put(slot + 2)
            return
        if isinstance(what, str):
            name, incarnation = self._process(what)
            out += b"\0" + put_text(name) + incarnation.to_bytes(8, "big")
        else:
            out += b"\1" + put(len(what))
            for member in what:
                self._refer(out, member)
        self._slots[what] = len(self._slots)


def _tuple(saved: Any) -> Any:
    """Return what was a tuple of tuples before it became JSON."""
    return tuple(map(_tuple, saved)) if isinstance(saved, list) else saved


Resolve: TypeAlias = Callable[[Process, Any], tuple[Any, Any] | None]
"""Returns what a pair is called here, or None if entries of it are to be left out."""


class ListReader:
    """Reads the lists of one stream.

    Args:
        resolve: What to call a pair. It is asked when a pair is first mentioned, and again when
            it is mentioned after `resolve_again`.
    """

    __slots__ = ("_last", "_pairs", "_resolve_pair", "_resolved", "_slots")

    def __init__(self, resolve: Resolve = lambda origin, dest: (origin, dest)) -> None:
        self._resolve_pair = resolve
        self._resolved: list[tuple[Any, ...] | None] = []
        """What pairs are called here."""
        self._slots: list[Process | tuple[Process, ...]] = []
        self._pairs: list[tuple[Process, Process | tuple[Process, ...]]] = []
        self._last: list[int] = []

    def read(
        self, data: bytes, at: int
    ) -> tuple[tuple[Process, ...], list[tuple[Any, Any, int]], int]:
        """Return the group of a message, its entries, and the index after them.

        Raises:
            MalformedError: There is no list that is well formed.
        """
        head, at = get(data, at)
        if head & 1:
            self._slots, self._pairs, self._last, self._resolved = [], [], [], []
        group: tuple[Process, ...] = ()
        if head & 2:
            what, at = self._resolve(data, at)
            if isinstance(what[0], str):
                raise MalformedError("a process instead of a group")
            group = what
        pairs, last, resolved = self._pairs, self._last, self._resolved
        count = head >> 2
        if 2 * count > len(data) - at:
            raise MalformedError("cut short")
        entries = []
        try:
            for _ in range(count):
                k = data[at]
                at += 1
                if k >= _SMALL:
                    k, at = get(data, at - 1)
                if not k:
                    at = self._pair(data, at)
                    k = len(pairs)
                step = data[at]
                at += 1
                if step >= _SMALL:
                    step, at = get(data, at - 1)
                mid = last[k - 1] + (-(step >> 1) if step & 1 else step >> 1)
                if mid < 1:
                    raise MalformedError("messages are numbered from 1")
                last[k - 1] = mid
                pair = resolved[k - 1]
                if pair is _AGAIN:
                    pair = resolved[k - 1] = self._resolve_pair(*pairs[k - 1])
                if pair is not None:
                    entries.append((pair[0], pair[1], mid))
        except IndexError:
            raise MalformedError("cut short, or a pair that is not defined") from None
        return group, entries, at

    def _pair(self, data: bytes, at: int) -> int:
        origin, at = self._resolve(data, at)
        dest, at = self._resolve(data, at)
        if not isinstance(origin[0], str) or not origin[1]:
            raise MalformedError("an origin that is no process")
        if origin == dest or (not isinstance(dest[0], str) and origin not in dest):
            raise MalformedError("a message that its origin cannot have sent")
        if len(self._pairs) > 2 * MOST:
            raise MalformedError("too many pairs")
        self._pairs.append((origin, dest))
        self._last.append(0)
        self._resolved.append(self._resolve_pair(*self._pairs[-1]))
        return at

    def saved(self) -> list[Any]:
        """Return the tables as lists, strings and numbers."""
        return [self._slots, self._pairs, self._last]

    def restore(self, saved: list[Any]) -> None:
        """Continue with tables that were saved."""
        slots, pairs, last = saved
        self._slots, self._pairs = [*map(_tuple, slots)], [*map(_tuple, pairs)]
        self._last = list(last)
        self.resolve_again()

    def resolve_again(self) -> None:
        """Ask again what pairs are called here."""
        self._resolved = [_AGAIN] * len(self._pairs)

    def _resolve(
        self, data: bytes, at: int, member: bool = False
    ) -> tuple[Process | tuple[Process, ...], int]:
        slots = self._slots
        slot, at = get(data, at)
        what: Process | tuple[Process, ...]
        if slot > 1:
            if slot - 2 >= len(slots):
                raise MalformedError("a slot that is not defined")
            return slots[slot - 2], at
        if len(slots) > 4 * MOST:
            raise MalformedError("too many slots")
        if not slot:
            name, at = get_text(data, at)
            if at + 8 > len(data) or not name.isprintable():
                raise MalformedError("cut short, or a name with control characters")
            what = (name, int.from_bytes(data[at : at + 8], "big"))
            at += 8
        elif member:
            raise MalformedError("a group in a group")
        else:
            count, at = get(data, at)
            if not 3 <= count <= len(data) - at:
                raise MalformedError("a group of an impossible size")
            members = []
            for _ in range(count):
                process, at = self._resolve(data, at, True)
                members.append(process)
            what = tuple(members)  # type: ignore[arg-type]
            if len(set(what)) < count or not all(isinstance(m[0], str) and m[1] for m in what):
                raise MalformedError("a group with somebody twice, not met, or that is a group")
        slots.append(what)
        return what, at
