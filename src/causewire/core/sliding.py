"""Sliding windows: Almeida, section 5.3 and figure 3.

Acks and permits come back roughly in the order in which they fell due, but not exactly.
What a protocol keeps for them is therefore a window onto an endless sequence. It grows at
one end (`next`) and shrinks at the other (`first`), and indexes are permanent: they do not
shift when the window moves.

    SlidingArray        elements by index
    SlidingMap          keys, each with an index; removed in any order, and
                        `first` moves on to the oldest key that is left
    IndexedSlidingMap   the same, and the key at an index can be looked up

All operations take amortised constant time: `first` passes each index once.

The paper builds them from a short array of pointers to chunks. In Python the window is best
kept in a dict from index to element: look-ups and removals are then single operations of
the interpreter, while arithmetic on an offset would be a function call written in Python.
A dict to which keys are added at one end and removed at the other is rebuilt, with room for
the remaining keys, each time it has used up its table. So memory follows the window, not its
past. Only a dict that becomes empty keeps its table, so a large one is replaced then.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, Self, TypeVar

__all__ = ["IndexedSlidingMap", "SlidingArray", "SlidingMap"]

E = TypeVar("E")
K = TypeVar("K", bound=Hashable)

_LARGE = 256
"""A table of this size is worth throwing away when it has run empty."""


class SlidingArray(Generic[E]):
    """Elements at the indexes `first` to `next` - 1.

    Where time matters, a protocol uses the dict `at` itself, which has exactly these
    keys. It replaces an element by assigning to its index, and moves the window by
    deleting elements from its front, after which it calls `slide`.
    """

    __slots__ = ("_emptied", "at", "first", "next")

    def __init__(self, first: int = 0) -> None:
        self.at: dict[int, E] = {}
        self.first = self.next = self._emptied = first

    def add(self, element: E) -> int:
        """Append an element and return its index."""
        k = self.next
        self.at[k] = element
        self.next = k + 1
        return k

    def peek(self) -> E:
        """Return the oldest element.

        Raises:
            IndexError: There is no element.
        """
        return self[self.first]

    def remove(self) -> E:
        """Remove the oldest element and return it.

        Raises:
            IndexError: There is no element.
        """
        element = self[self.first]
        del self.at[self.first]
        self.slide(self.first + 1)
        return element

    def slide(self, first: int) -> None:
        """Let the window start at `first`; the elements before it have been deleted."""
        self.first = first
        if first == self.next:
            if first - self._emptied > _LARGE:
                self.at = {}
            self._emptied = first

    def __getitem__(self, k: int) -> E:
        try:
            return self.at[k]
        except KeyError:
            outside = f"{k} is outside the window {self.first}..{self.next - 1}"
            raise IndexError(outside) from None

    def __setitem__(self, k: int, element: E) -> None:
        self[k]  # must be there
        self.at[k] = element

    @property
    def size(self) -> int:
        """The number of indexes in the window."""
        return self.next - self.first

    def __len__(self) -> int:
        return len(self.at)

    def __iter__(self) -> Iterator[E]:
        return iter(self.at.values())

    def items(self) -> Iterator[tuple[int, E]]:
        """Return an iterator over indexes and elements, the oldest first."""
        return iter(self.at.items())

    def copy(self) -> Self:
        """Return an independent copy."""
        twin = type(self)(self.first)
        twin.at = self.at.copy()
        twin.next = self.next
        return twin

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.first}..{self.next - 1}: {list(self)}>"


class SlidingMap(Generic[K]):
    """Keys with increasing indexes; `first` is that of the oldest key present."""

    __slots__ = ("_emptied", "_index", "_keys", "first", "next")

    def __init__(self) -> None:
        self._index: dict[K, int] = {}
        self._keys: dict[int, K] = {}
        self._emptied = 0
        self.first = 0
        self.next = 0

    def add(self, key: K) -> int:
        """Add a key that is not here; returns its index."""
        k = self.next
        if self._index.setdefault(key, k) != k:
            raise KeyError(f"{key!r} is here already, at {self._index[key]}")
        self._keys[k] = key
        self.next = k + 1
        return k

    def remove(self, key: K) -> int | None:
        """Remove a key; returns the index it had, or None if it is not here."""
        index = self._index.pop(key, None)
        if index is None:
            return None
        keys = self._keys
        del keys[index]
        if index == self.first:
            if keys:
                k = index + 1
                while k not in keys:
                    k += 1
                self.first = k
            else:
                self._run_empty()
        return index

    def _run_empty(self) -> None:
        if self.next - self._emptied > _LARGE:
            self._index = {}
            self._keys = {}
        self._emptied = self.first = self.next

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
        """Return an independent copy."""
        twin = object.__new__(type(self))
        twin._index = self._index.copy()
        twin._keys = self._keys.copy()
        twin._emptied = self._emptied
        twin.first = self.first
        twin.next = self.next
        return twin

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.first}..{self.next - 1}: {self._index}>"


class IndexedSlidingMap(SlidingMap[K]):
    """A sliding map that also tells which key has an index."""

    __slots__ = ()

    def peek(self) -> K:
        """The oldest key; KeyError if there is none."""
        return self._keys[self.first]

    def __getitem__(self, k: int) -> K | None:
        """The key at an index of the window, or None if it was removed."""
        if not self.first <= k < self.next:
            raise IndexError(f"{k} is outside the window {self.first}..{self.next - 1}")
        return self._keys.get(k)
