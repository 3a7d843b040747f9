"""A group chat: whoever joins late sees what was said, and answers never precede questions.

python examples/chat.py                              # three processes play a scene
python examples/chat.py ann                          # begin a chat in this terminal
python examples/chat.py bob ann@127.0.0.1:9001       # join it from another one
"""

from __future__ import annotations

import asyncio
import sys

from processes import start

from causewire.kit import Group, GroupMessage, Joined, Kit, Left
from causewire.node import Node, run

SCENE = {
    "ann": {"bob joined": "Has anybody seen my ring?", "cy joined": "Welcome, Cy."},
    "bob": {"ann: Has anybody seen my ring?": "Yes. I found it!"},
    "cy": {"ann: Welcome, Cy.": "Congratulations, Ann."},
}
"""What each process says when it reads something."""


class Chat:
    """What was said, and how it is shown."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def restore(self, said: list[str]) -> None:
        self.said = said
        for line in said:
            print(f"(earlier) {line}", flush=True)

    def show(self, item: GroupMessage | Joined | Left) -> str:
        if isinstance(item, GroupMessage):
            line = f"{item.source}: {item.payload}"
            self.said.append(line)
        else:
            line = f"{item.member} {'joined' if isinstance(item, Joined) else 'left'}"
        print(line, flush=True)
        return line


async def type_lines(room: Group) -> None:
    """Send what is typed; an empty line or the end of the input leaves."""
    while line := (await asyncio.to_thread(sys.stdin.readline)).strip():
        await room.send(line)
    await room.leave()


async def chat(name: str, seeds: list[str], scene: dict[str, str] | None) -> None:
    async with Node(name, ordered_events=True) as node, Kit(node, codec="json") as kit:
        what = Chat()
        print(f"{name}@{node.address[0]}:{node.address[1]}", flush=True)
        room = await kit.join("chat", seeds, snapshot=lambda: what.said, restore=what.restore)
        typing = None if scene is not None else asyncio.create_task(type_lines(room))
        async for item in room:
            line = what.show(item)
            if scene is not None and line in scene:
                await room.send(scene[line])
            if scene is not None and line == "cy: Congratulations, Ann.":
                break
        if typing is not None:
            await typing
        elif name == "ann":
            await asyncio.sleep(0.5)  # the others have read everything by then


async def play() -> None:
    """Start Ann and Bob, and Cy when Bob has answered."""
    ann = await start(__file__, "ann", "--scene")
    seed = await ann.line("ann@")
    bob = await start(__file__, "bob", seed, "--scene")
    await bob.line("bob: Yes")
    cy = await start(__file__, "cy", seed, "--scene")
    for child in (ann, bob, cy):
        await child.end()
    print("What Cy, who joined last, has seen:")
    print("\n".join(line for line in cy.lines if "@" not in line and " left" not in line))


def main() -> None:
    words = [word for word in sys.argv[1:] if word != "--scene"]
    if not words:
        asyncio.run(play())
        return
    name, *seeds = words
    run(chat(name, seeds, SCENE[name] if "--scene" in sys.argv else None))


if __name__ == "__main__":
    main()
