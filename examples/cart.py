"""A shopping cart on several devices, without tombstones: an observed-remove set.

    python examples/cart.py

Each device changes its own copy at once and tells the group. Removing an article removes the
additions that this device has seen, so somebody who adds it at the same time wins. With causal
delivery, a removal never arrives before the additions that it refers to; so a copy needs no memory
of what was removed. A device that joins late gets the cart, and nothing else.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from processes import start

from causewire.kit import GroupMessage, Kit
from causewire.node import Node, run

SHOPPING: dict[str, list[tuple[str, str]]] = {
    "phone": [("add", "milk"), ("add", "bread"), ("remove", "milk"), ("add", "tea")],
    "laptop": [("add", "milk"), ("remove", "bread"), ("add", "bread"), ("remove", "tea")],
    "tablet": [("add", "jam"), ("remove", "milk")],
}
END = 3
"""How many devices there are: each says when it has done its shopping."""


class Cart:
    """Articles, each with the marks of the additions that are still valid."""

    def __init__(self) -> None:
        self.marks: dict[str, list[str]] = {}
        self.done: list[str] = []

    def state(self) -> Any:
        return [self.marks, self.done]

    def restore(self, state: Any) -> None:
        self.marks, self.done = state

    def prepare(self, kind: str, article: str, mark: str) -> Any:
        """Return the operation for all copies."""
        return [kind, article, [mark] if kind == "add" else self.marks.get(article, [])]

    def apply(self, operation: Any) -> None:
        kind, article, marks = operation
        if kind == "done":
            self.done.append(article)
        elif kind == "add":
            self.marks.setdefault(article, []).extend(marks)
        else:
            here = self.marks.get(article, [])
            self.marks[article] = [mark for mark in here if mark not in marks]

    def __str__(self) -> str:
        return ", ".join(sorted(article for article, marks in self.marks.items() if marks))


async def shop(name: str, seeds: list[str]) -> None:
    async with Node(name, ordered_events=True) as node, Kit(node, codec="json") as kit:
        cart = Cart()
        print(f"{name}@{node.address[0]}:{node.address[1]}", flush=True)
        group = await kit.join("cart", seeds, snapshot=cart.state, restore=cart.restore)
        print(f"joins with: {cart}", flush=True)

        async def buy() -> None:
            for k, (kind, article) in enumerate(SHOPPING[name]):
                await group.send(cart.prepare(kind, article, f"{name}-{k}"))
                await asyncio.sleep(0.02)
            await group.send(["done", name, []])

        buying = asyncio.create_task(buy())
        while len(cart.done) < END:
            async for item in group:
                if isinstance(item, GroupMessage):
                    cart.apply(item.payload)
                    if len(cart.done) == END:
                        break
        await buying
        print(f"has: {cart}", flush=True)
        await asyncio.sleep(0.5)  # so that nobody leaves before all have read everything


async def play() -> None:
    phone = await start(__file__, "phone")
    seed = await phone.line("phone@")
    await phone.line("joins")
    laptop = await start(__file__, "laptop", seed)
    await laptop.line("joins")
    tablet = await start(__file__, "tablet", seed)
    carts = {}
    for name, child in (("phone", phone), ("laptop", laptop), ("tablet", tablet)):
        carts[name] = await child.line("has")
        await child.end()
    same = len(set(carts.values())) == 1
    print(f"phone, laptop and tablet: {'the same cart' if same else carts}")
    print("jam and bread are in it:", "bread, jam" in carts["phone"])


if __name__ == "__main__":
    if sys.argv[1:]:
        run(shop(sys.argv[1], sys.argv[2:]))
    else:
        asyncio.run(play())
