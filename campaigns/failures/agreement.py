"""What agreement costs: multicasts in a group of the kit, compared with plain ones, by counting.

    python -m campaigns.failures.agreement [--messages 200]

If any living member of a group has a message of a process that died, all members get it. For
that, a message names those that it directly follows, members keep it until all have it, and
they tell each other what they have. This program counts datagrams and bytes in virtual time, so
it prints the same on every machine.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

from causewire.kit import Group, GroupMessage, Kit
from causewire.node import Node
from causewire.testing.virtual import VirtualLoop, run

PAYLOAD = bytes(100)
QUIET = 3.0
"""Seconds in which a system comes to rest before and after counting."""

Send = Callable[[], Awaitable[object]]


class Cost(NamedTuple):
    """What the network carried while messages were sent, and until it was quiet again."""

    copies: int
    """Copies of messages that applications got, without those of the sender itself."""
    datagrams: int
    bytes: int


class _Counter:
    """Counts what a virtual network carries."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.datagrams = self.bytes = self.copies = 0
        loop.network.fate = self._carry

    def _carry(self, source: Any, to: Any, data: bytes) -> list[float]:
        self.datagrams += 1
        self.bytes += len(data)
        return [0.001]

    def cost(self) -> Cost:
        return Cost(self.copies, self.datagrams, self.bytes)


def plain_cost(members: int, messages: int, pause: float = 0.01, protocol: str = "csps") -> Cost:
    """Return the cost of messages that each process multicasts to all others by `Node.send`."""
    return run(lambda loop: _count(loop, members, messages, pause, protocol, grouped=False))


def group_cost(members: int, messages: int, pause: float = 0.01, protocol: str = "csps") -> Cost:
    """Return the cost of the same messages, sent by `Group.send`."""
    return run(lambda loop: _count(loop, members, messages, pause, protocol, grouped=True))


async def _count(
    loop: VirtualLoop, members: int, messages: int, pause: float, protocol: str, *, grouped: bool
) -> Cost:
    names = [f"p{index}" for index in range(members)]
    counter = _Counter(loop)
    readers: list[asyncio.Task[None]] = []
    senders: list[Send] = []
    async with AsyncExitStack() as stack:
        for index, name in enumerate(names):
            others = {n: f"127.0.0.1:{k + 1}" for k, n in enumerate(names) if n != name}
            sock: Any = loop.network.socket(index + 1)
            made = Node(
                name,
                sock=sock,
                peers=others,
                protocol=protocol,
                incarnation=1000 + index,
                ordered_events=grouped,
            )
            node = await stack.enter_async_context(made)
            if grouped:
                kit = await stack.enter_async_context(Kit(node))
                group = await kit.join("g", names[:1] if index else ())
                readers.append(asyncio.create_task(_read_group(group, name, counter)))
                senders.append(lambda group=group: group.send(PAYLOAD))  # type: ignore[misc]
            else:
                readers.append(asyncio.create_task(_read(node, counter)))
                senders.append(lambda node=node, to=list(others): node.send(to, PAYLOAD))  # type: ignore[misc]
        await asyncio.gather(*[send() for send in senders])
        await asyncio.sleep(QUIET)
        before = counter.cost()
        await asyncio.gather(*[_talk(send, messages, pause, k) for k, send in enumerate(senders)])
        await asyncio.sleep(QUIET)
        cost = Cost(*[now - then for now, then in zip(counter.cost(), before, strict=True)])
        for reader in readers:
            reader.cancel()
    return cost


async def _talk(send: Send, messages: int, pause: float, offset: int) -> None:
    await asyncio.sleep(pause * offset / 7)
    for _ in range(messages):
        await send()
        await asyncio.sleep(pause)


async def _read(node: Node, counter: _Counter) -> None:
    async for _ in node:
        counter.copies += 1


async def _read_group(group: Group, name: str, counter: _Counter) -> None:
    async for item in group:
        if isinstance(item, GroupMessage) and item.source != name:
            counter.copies += 1


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--messages", type=int, default=200, help="of each process (default: 200)")
    options = parser.parse_args(arguments)
    print(
        "| members | messages a second of each | datagrams for each copy, plain | in a group "
        "| bytes for each copy, plain | in a group |\n| --- | --- | --- | --- | --- | --- |"
    )
    wrong = 0
    for members in (5, 10):
        for pause in (0.001, 0.01, 0.1, 1.0):
            messages = max(20, int(options.messages * min(1.0, 0.1 / pause)))
            costs = [count(members, messages, pause) for count in (plain_cost, group_cost)]
            wrong += sum(cost.copies != members * messages * (members - 1) for cost in costs)
            datagrams = [f"{cost.datagrams / cost.copies:.2f}" for cost in costs]
            size = [f"{cost.bytes / cost.copies:.0f}" for cost in costs]
            print("|", " | ".join([str(members), f"{1 / pause:.0f}", *datagrams, *size]), "|")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
