"""A group chat: whoever joins late sees what was said, and answers never precede questions.

python examples/chat.py                              # three processes play a scene
python examples/chat.py ann                          # begin a chat in this terminal
python examples/chat.py bob ann@127.0.0.1:9001       # join it from another one
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from contextlib import suppress
from typing import Any
from zlib import crc32

from processes import start

from causewire.kit import Entered, GroupClosed, GroupMessage, Interrupted, Joined, Kit, Presence
from causewire.node import Node, run

try:
    import readline
except ImportError:  # Windows
    readline = None  # type: ignore[assignment]

SCENE = {
    "ann": {"bob joined": "Has anybody seen my ring?", "cy joined": "Welcome, Cy."},
    "bob": {"ann: Has anybody seen my ring?": "Yes. I found it!"},
    "cy": {"ann: Welcome, Cy.": "Congratulations, Ann."},
}
"""What each process says when it reads something."""


class Terminal:
    """Shows lines above the one that is being typed; on a terminal, every name has a colour."""

    def __init__(self, name: str) -> None:
        self.fancy = sys.stdout.isatty() and sys.stdin.isatty()
        self.prompt = f"{name}: " if self.fancy else ""

    def show(self, line: str, *, note: bool = False) -> None:
        if not self.fancy:
            print(line, flush=True)
            return
        name, colon, text = line.partition(": ")
        if note or not colon:
            line = f"\033[2m{line}\033[0m"
        else:
            line = f"\033[1;{31 + crc32(name.encode()) % 6}m{name}\033[0m: {text}"
        typed = "" if readline is None else readline.get_line_buffer()
        clock = time.strftime("\033[2m%H:%M\033[0m")
        print(f"\r\033[K{clock} {line}\n{self.prompt}{typed}", end="", flush=True)

    async def type(self, room: Presence) -> None:
        """Send what is typed; an empty line or the end of the input leaves."""
        prompt = (
            f"\001\r\033[K\002{self.prompt}" if self.fancy else ""
        )  # `show` may have printed it
        with suppress(EOFError):
            while line := (await asyncio.to_thread(input, prompt)).strip():
                if self.fancy:
                    print("\033[A\033[K", end="", flush=True)  # it comes back from the group
                if line == "/who":
                    self.show(", ".join(map(str, room.members)) + " are here", note=True)
                    continue
                try:
                    await room.send(line)
                except GroupClosed:
                    self.show("not sent: the others cannot be reached", note=True)
        await room.leave()


class Chat:
    """What was said."""

    def __init__(self, terminal: Terminal) -> None:
        self.said: list[str] = []
        self.terminal = terminal

    def restore(self, said: list[str]) -> None:
        """Show what was said while this process was not there."""
        for line in [line for line in said if line not in self.said]:
            self.terminal.show(f"(earlier) {line}")
        self.said = said

    def heard(self, item: Any) -> str:
        """Show what has happened, and return the line."""
        if isinstance(item, Entered):
            return ""
        if isinstance(item, GroupMessage):
            line = f"{item.source}: {item.payload}"
            self.said.append(line)
        elif isinstance(item, Interrupted):
            line = "the others cannot be reached; trying to come back"
        else:
            line = f"{item.member} {'joined' if isinstance(item, Joined) else 'left'}"
        self.terminal.show(line)
        return line


async def chat(name: str, seeds: list[str], scene: dict[str, str] | None) -> None:
    where = os.environ.get("CHAT_LISTEN", "127.0.0.1:0")
    key = bytes.fromhex(os.environ.get("CHAT_KEY", "")) or None  # needed beyond this machine
    trace = f"{name}.jsonl" if "CHAT_TRACE" in os.environ else None  # for `causewire check`
    node = Node(name, listen=where, key=key, trace=trace, ordered_events=True, rejoin=True)
    async with node, Kit(node, codec="json") as kit:
        chat = Chat(Terminal(name))
        print(f"{name}@{node.address[0]}:{node.address[1]}", flush=True)
        room = kit.stay("chat", seeds, snapshot=lambda: chat.said, restore=chat.restore)
        typing = None if scene is not None else asyncio.create_task(chat.terminal.type(room))
        async for item in room:
            line = chat.heard(item)
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
