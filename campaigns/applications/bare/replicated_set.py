"""A replicated set on a bare node: a removal removes the additions that its author has seen."""

from __future__ import annotations

from typing import Any

from causewire.node import Node

from .membership import Members


class App(Members):
    """One replica. Each process adds elements of its own, and removes older ones."""

    def __init__(self, node: Node, name: str, others: list[str], first: bool) -> None:
        super().__init__(node, name, others, first)
        self.marks: dict[str, list[str]] = {}

    def snapshot(self) -> Any:
        return self.marks

    def restore(self, state: Any) -> None:
        self.marks = state

    def apply(self, source: str, operation: Any) -> None:
        kind, element, marks = operation
        here = self.marks.pop(element, [])
        left = here + marks if kind == "add" else [mark for mark in here if mark not in marks]
        if left:
            self.marks[element] = left

    async def act(self, number: int) -> None:
        old = f"{self.name}-{number - 3}"
        await self.send(["add", f"{self.name}-{number}", [f"{self.name}{number}"]])
        await self.send(["remove", old, self.marks.get(old, [])])

    def state(self) -> Any:
        return sorted(self.marks)
