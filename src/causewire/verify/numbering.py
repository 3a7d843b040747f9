"""Values as numbers, in the order in which they turn up."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

__all__ = ["Numbering"]

T = TypeVar("T", bound=Hashable)


class Numbering(Generic[T]):
    """Values as numbers, in the order in which they turn up."""

    __slots__ = ("ids", "values")

    def __init__(self) -> None:
        self.ids: dict[T, int] = {}
        self.values: list[T] = []

    def __call__(self, value: T) -> int:
        """Return the number of a value, a new one if it was not seen before."""
        k = self.ids.get(value)
        if k is None:
            k = self.ids[value] = len(self.values)
            self.values.append(value)
        return k

    def __len__(self) -> int:
        return len(self.values)
