"""A text that three people edit: right under the default protocol, wrong under `fifo`.

    python examples/text.py

The text is a sequence CRDT (RGA): every character has an identifier and names the one that it was
typed after. Copies need not agree on an order of all changes, but a change has to arrive after the
characters that it refers to. Ann's words are slow to reach Cy; Bob answers at once.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, NamedTuple

from causewire import Node

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


class SlowPath(asyncio.DatagramProtocol):
    """A path between two addresses on which datagrams in one direction take their time."""

    def __init__(self, to: tuple[str, int], delay: float) -> None:
        self.to = to
        self.delay = delay
        self.back: tuple[str, int] | None = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
        if address != self.to:
            self.back = address
            loop = asyncio.get_running_loop()
            loop.call_later(self.delay, self.forward, data)
        elif self.back is not None:
            self.transport.sendto(data, self.back)

    def forward(self, data: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.sendto(data, self.to)


async def edit(protocol: str) -> None:
    texts = {name: Text(name) for name in ("ann", "bob", "cy")}
    async with (
        Node("ann", protocol=protocol) as ann,
        Node("bob", protocol=protocol) as bob,
        Node("cy", protocol=protocol) as cy,
    ):
        loop = asyncio.get_running_loop()
        transport, slow = await loop.create_datagram_endpoint(
            lambda: SlowPath(cy.address, 0.0), local_addr=("127.0.0.1", 0)
        )
        await ann.add_peer("bob", bob.address)
        await ann.add_peer("cy", transport.get_extra_info("sockname"))
        await bob.add_peer("cy", cy.address)
        while not len(ann.peers_up()) == len(bob.peers_up()) == len(cy.peers_up()) == 2:
            await asyncio.sleep(0.01)
        slow.delay = 0.3

        await ann.send(["bob", "cy"], json.dumps(texts["ann"].type("To be")).encode())
        for change in json.loads((await bob.receive()).payload):
            texts["bob"].apply(change)
        answer = json.dumps(texts["bob"].type(" or not to be")).encode()
        await bob.send(["ann", "cy"], answer)
        for name, node, count in (("ann", ann, 1), ("cy", cy, 2)):
            for _ in range(count):
                for change in json.loads((await node.receive()).payload):
                    texts[name].apply(change)
        slow.delay = 0.0
    transport.close()
    print(f"{protocol}:")
    for name, text in texts.items():
        print(f"  {name:3} has '{text}'" + (f", {text.lost} lost" if text.lost else ""))


async def main() -> None:
    for protocol in ("fifo", "csps"):
        await edit(protocol)


if __name__ == "__main__":
    asyncio.run(main())
