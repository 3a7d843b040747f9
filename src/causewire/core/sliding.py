"""Sliding windows: Almeida, section 5.3 and figure 3.

Acks and permits come back roughly in the order in which they fell due, but not
quite. What a protocol keeps for them is therefore a window onto an endless
sequence: it grows at one end (`next`), shrinks at the other (`first`), and
indexes are for ever: they do not shift when the window moves.

    SlidingArray        elements by index
    SlidingMap          keys, each with an index; removed in any order, and
                        `first` moves on to the oldest key that is left
    IndexedSlidingMap   the same, and the key at an index can be asked for

All operations take amortised constant time: `first` passes each index once. The
paper keeps a short array of pointers to chunks. In Python a flat array whose
dead front is cut off whenever it makes up half of it serves the same end with
one indirection less: each cut of k dead slots moves at most k live ones, and
memory stays within about twice the window. The maps keep their keys in place of
the paper's bits: a key costs no more than a reference, and one class serves for
both.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, Self, TypeVar

__all__ = ["IndexedSlidingMap", "SlidingArray", "SlidingMap"]

E = TypeVar("E")
K = TypeVar("K", bound=Hashable)

_CUT = 32
"""Dead slots that are not worth a cut."""

_LARGE = 256
"""A dict keeps its table when keys are removed; one this large is made anew."""


class SlidingArray(Generic[E]):
    """Elements at the indexes `first` to `next` - 1."""

    __slots__ = ("_base", "_slots", "first", "next")

    def __init__(self, first: int = 0) -> None:
        self._slots: list[E | None] = []
        self._base = first
        """The index of `_slots[0]`; slots below `first` are dead."""
        self.first = first
        self.next = first

    def add(self, element: E) -> int:
        """Append; returns the index of the element."""
        self._slots.append(element)
        k = self.next
        self.next = k + 1
        return k

    def peek(self) -> E:
        """The oldest element; IndexError if there is none."""
        return self._slots[self.first - self._base]  # type: ignore[return-value]

    def remove(self) -> E:
        """Remove the oldest element and return it; IndexError if there is none."""
        slots = self._slots
        first = self.first
        dead = first - self._base
        element = slots[dead]
        slots[dead] = None
        self.first = first + 1
        if dead >= _CUT and dead * 2 >= len(slots):
            del slots[: dead + 1]
            self._base = first + 1
        return element  # type: ignore[return-value]

    def __getitem__(self, k: int) -> E:
        if k < self.first:
            raise IndexError(f"{k} is before the window, which starts at {self.first}")
        return self._slots[k - self._base]  # type: ignore[return-value]

    def __setitem__(self, k: int, element: E) -> None:
        if k < self.first:
            raise IndexError(f"{k} is before the window, which starts at {self.first}")
        self._slots[k - self._base] = element

    def __len__(self) -> int:
        return self.next - self.first

    @property
    def size(self) -> int:
        return self.next - self.first

    def __iter__(self) -> Iterator[E]:
        return iter(self._slots[self.first - self._base :])  # type: ignore[arg-type]

    def copy(self) -> Self:
        twin = object.__new__(type(self))
        twin._slots = self._slots[self.first - self._base :]
        twin._base = twin.first = self.first
        twin.next = self.next
        return twin

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.first}..{self.next - 1}: {list(self)}>"


class SlidingMap(Generic[K]):
    """Keys with increasing indexes; `first` is that of the oldest key present."""

    __slots__ = ("_base", "_index", "_slots", "first", "next")

    def __init__(self) -> None:
        self._index: dict[K, int] = {}
        self._slots: list[K | None] = []
        """The keys from index `_base` on, None for one that was removed."""
        self._base = 0
        self.first = 0
        self.next = 0

    def add(self, key: K) -> int:
        """Add a key that is not here; returns its index."""
        k = self.next
        if self._index.setdefault(key, k) != k:
            raise KeyError(f"{key!r} is here already, at {self._index[key]}")
        self._slots.append(key)
        self.next = k + 1
        return k

    def remove(self, key: K) -> int | None:
        """Remove a key; returns the index it had, or None if it is not here."""
        k = self._index.pop(key, None)
        if k is None:
            return None
        slots = self._slots
        slot = k - self._base
        slots[slot] = None
        if k == self.first:
            if self._index:
                while slots[slot] is None:
                    slot += 1
                self.first = self._base + slot
                if slot > _CUT and slot * 2 >= len(slots):
                    del slots[:slot]
                    self._base = self.first
                    if slot > _LARGE:
                        self._index = dict(self._index)
            else:
                if len(slots) > _LARGE:
                    self._index = {}
                slots.clear()
                self._base = self.first = self.next
        return k

    def index(self, key: K) -> int | None:
        """The index of a key, or None if it is not here."""
        return self._index.get(key)

    def items(self) -> Iterator[tuple[K, int]]:
        """Keys and their indexes, oldest first."""
        return iter(self._index.items())

    def __iter__(self) -> Iterator[K]:
        return iter(self._index)

    def __contains__(self, key: object) -> bool:
        return key in self._index

    def __len__(self) -> int:
        return len(self._index)

    def copy(self) -> Self:
        twin = object.__new__(type(self))
        twin._index = self._index.copy()
        twin._slots = self._slots[self.first - self._base :]
        twin._base = twin.first = self.first
        twin.next = self.next
        return twin

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.first}..{self.next - 1}: {self._index}>"


class IndexedSlidingMap(SlidingMap[K]):
    """A sliding map that also tells which key has an index."""

    __slots__ = ()

    def peek(self) -> K:
        """The oldest key; IndexError if there is none."""
        return self._slots[self.first - self._base]  # type: ignore[return-value]

    def __getitem__(self, k: int) -> K | None:
        """The key at an index of the window, or None if it was removed."""
        if k < self.first:
            raise IndexError(f"{k} is before the window, which starts at {self.first}")
        return self._slots[k - self._base]
