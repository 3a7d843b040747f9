"""A text that three people edit: right under the default protocol, wrong under `fifo`.

    python examples/text.py

The text is a sequence CRDT (RGA): every character has an identifier and names the one that it was
typed after. Copies need not agree on an order of all changes, but a change has to arrive after the
characters that it refers to. Ann's words are slow to reach Cy; Bob answers at once. Each of them
is a process of its own, which runs this file with a name.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any, NamedTuple

from processes import Child, heard, introduce, meet, start

from causewire import Node

NAMES = ["ann", "bob", "cy"]

Id = tuple[int, str]
"""A count and the name of who typed it, so that later characters have higher identifiers."""


class Character(NamedTuple):
    """A character of the text."""

    id: Id
    sign: str


class Text:
    """One copy of the text."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.characters: list[Character] = []
        self.count = 0
        self.lost = 0

    def type(self, words: str) -> list[Any]:
        """Type at the end, and return the changes for the others."""
        changes = []
        for sign in words:
            after = self.characters[-1].id if self.characters else None
            self.count += 1
            change = [self.count, self.name, after, sign]
            self.apply(change)
            changes.append(change)
        return changes

    def apply(self, change: list[Any]) -> None:
        count, name, after, sign = change
        new = Character((count, name), sign)
        self.count = max(self.count, count)
        ids = [character.id for character in self.characters]
        if after is None:
            at = 0
        elif tuple(after) in ids:
            at = ids.index(tuple(after)) + 1
        else:
            self.lost += 1  # it refers to a character that is not here
            return
        while at < len(ids) and ids[at] > new.id:
            at += 1
        self.characters.insert(at, new)

    def __str__(self) -> str:
        return "".join(character.sign for character in self.characters)


async def edit(name: str, protocol: str) -> None:
    """Be one of the three: Ann begins, Bob answers, and Cy reads both."""
    text = Text(name)
    async with Node(name, protocol=protocol) as node:
        await meet(node)
        others = [other for other in NAMES if other != name]
        if name == "ann":
            await heard()
            await node.send(others, json.dumps(text.type("To be")).encode())
        for _ in range(2 if name == "cy" else 1):
            for change in json.loads((await node.receive()).payload):
                text.apply(change)
        if name == "bob":
            await node.send(others, json.dumps(text.type(" or not to be")).encode())
        print(f"{name:3} has '{text}'" + (f", {text.lost} lost" if text.lost else ""), flush=True)
        await heard()  # the others may still need this process


async def play(protocol: str, children: dict[str, Child]) -> None:
    (slow,) = await introduce(children, ("ann", "cy"))
    slow.delay = 0.3
    children["ann"].tell("begin")
    print(f"{protocol}:")
    for name, child in children.items():
        print(" ", await child.line(f"{name:3} has"))
    for child in children.values():
        child.lines.clear()
        child.tell("end")


async def main(name: str = "") -> None:
    children = {} if name else {name: await start(__file__, name) for name in NAMES}
    for protocol in ("fifo", "adaptive"):
        await (edit(name, protocol) if name else play(protocol, children))
    for child in children.values():
        await child.end()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
