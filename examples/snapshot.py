"""A consistent snapshot of a running system, by one causal multicast.

    python examples/snapshot.py

Three banks send each other money all the time. East asks for a snapshot: each bank records its
balance, what it has sent to each other and what it has received, at the moment when the request is
delivered. Nobody stops, and no further messages are needed. Money that a bank sends after that
depends on the request, so causal order delivers it after the request everywhere: what a snapshot
says was received, it also says was sent. Under `fifo`, that is not so. Each bank is a process of
its own, which runs this file with a name.
"""

from __future__ import annotations

import asyncio
import json
import sys
from random import Random
from typing import NamedTuple

from processes import Child, everywhere, heard, introduce, meet, start

from causewire.node import Node

BANKS = ["east", "north", "west"]
EACH = 1000
REQUEST = b"snapshot"


class Record(NamedTuple):
    """What a bank records."""

    balance: int
    sent: dict[str, int]
    received: dict[str, int]


class Bank:
    """Sends and receives money, and records when it is asked to."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.balance = EACH
        self.others = [name for name in BANKS if name != node.name]
        self.sent = dict.fromkeys(self.others, 0)
        self.received = dict.fromkeys(self.others, 0)

    def record(self) -> None:
        print(json.dumps(Record(self.balance, self.sent, self.received)), flush=True)

    async def ask(self) -> None:
        """Ask all others for a snapshot."""
        self.record()
        await self.node.send(self.others, REQUEST)

    async def pay(self) -> None:
        random = Random(self.node.name)
        while True:
            to, amount = random.choice(self.others), random.randrange(1, 10)
            if amount <= self.balance:
                self.balance -= amount
                self.sent[to] += amount
                await self.node.send(to, str(amount).encode())
            await asyncio.sleep(0.002)

    async def collect(self) -> None:
        async for message in self.node:
            if message.payload == REQUEST:
                self.record()
            else:
                self.balance += int(message.payload)
                self.received[message.source] += int(message.payload)


async def be(name: str, protocol: str) -> None:
    """Be one of the banks."""
    async with Node(name, protocol=protocol) as node:
        bank = Bank(node)
        await meet(node)
        collecting = asyncio.create_task(bank.collect())
        await heard()
        paying = asyncio.create_task(bank.pay())
        while await heard() == "ask":
            await bank.ask()
        paying.cancel()
        while not node.idle:
            await asyncio.sleep(0.01)
        print("settle", flush=True)
        await heard()
    await collecting


async def count_money(protocol: str, children: dict[str, Child]) -> None:
    (slow,) = await introduce(children, ("east", "west"))
    slow.delay = 0.3
    for child in children.values():
        child.tell("pay")
    await asyncio.sleep(0.5)
    children["east"].tell("ask")
    records = {name: Record(*json.loads(await child.line("["))) for name, child in children.items()}
    await everywhere(children, "settle")
    for child in children.values():
        child.lines.clear()
        child.tell("end")

    print(f"{protocol}:")
    under_way = {
        (one, other): records[one].sent[other] - records[other].received[one]
        for one in BANKS
        for other in BANKS
        if one != other
    }
    for (one, other), money in under_way.items():
        if money < 0:
            print(f"  {other} has received money from {one} that {one} has not sent")
    if min(under_way.values()) >= 0:
        total = sum(record.balance for record in records.values()) + sum(under_way.values())
        print(f"  balances and money under way: {total}")


async def main(name: str = "") -> None:
    children = {} if name else {name: await start(__file__, name) for name in BANKS}
    for protocol in ("fifo", "adaptive"):
        await (be(name, protocol) if name else count_money(protocol, children))
    for child in children.values():
        await child.end()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
