"""A chat on a bare node: who comes late sees what was said, and no answer before its question."""

from __future__ import annotations

from typing import Any

from causewire.node import Node

from .membership import Members


class App(Members):
    """One participant, which answers to some lines of the others."""

    def __init__(self, node: Node, name: str, others: list[str], first: bool) -> None:
        super().__init__(node, name, others, first)
        self.lines: list[str] = []

    def snapshot(self) -> Any:
        return self.lines

    def restore(self, state: Any) -> None:
        self.lines = state

    def apply(self, source: str, operation: Any) -> None:
        self.lines.append(operation)
        if self.is_question(source, operation):
            self.spawn(self.send(f"{self.name} answers to {operation}"))

    def is_question(self, source: str, line: str) -> bool:
        return source != self.name and line.startswith(f"{source} says") and line.endswith("3")

    async def act(self, number: int) -> None:
        await self.send(f"{self.name} says {number}")

    def state(self) -> Any:
        return self.lines
