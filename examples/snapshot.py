"""A consistent snapshot of a running system, by one causal multicast.

    python examples/snapshot.py

Three banks send each other money all the time. East asks for a snapshot: each bank records its
balance, what it has sent to each other and what it has received, at the moment when the request is
delivered. Nobody stops, and no further messages are needed. Money that a bank sends after that
depends on the request, so causal order delivers it after the request everywhere: what a snapshot
says was received, it also says was sent. Under `fifo`, that is not so.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import NamedTuple

from text import SlowPath

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
        self.recorded: asyncio.Future[Record] = asyncio.get_running_loop().create_future()

    def record(self) -> None:
        self.recorded.set_result(Record(self.balance, self.sent.copy(), self.received.copy()))

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


async def count_money(protocol: str) -> None:
    async with (
        Node("east", protocol=protocol) as east,
        Node("north", protocol=protocol) as north,
        Node("west", protocol=protocol) as west,
    ):
        detour, slow = await asyncio.get_running_loop().create_datagram_endpoint(
            lambda: SlowPath(west.address, 0.0), local_addr=("127.0.0.1", 0)
        )
        await east.add_peer("north", north.address)
        await east.add_peer("west", detour.get_extra_info("sockname"))
        await north.add_peer("west", west.address)
        nodes = (east, north, west)
        while not all(len(node.peers_up()) == 2 for node in nodes):
            await asyncio.sleep(0.01)
        slow.delay = 0.3

        banks = {node.name: Bank(node) for node in nodes}
        tasks = [asyncio.create_task(bank.collect()) for bank in banks.values()]
        tasks += [asyncio.create_task(bank.pay()) for bank in banks.values()]
        await asyncio.sleep(0.5)
        await banks["east"].ask()
        records = {name: await bank.recorded for name, bank in banks.items()}
        for task in tasks:
            task.cancel()
        slow.delay = 0.0
    detour.close()

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


async def main() -> None:
    for protocol in ("fifo", "csps"):
        await count_money(protocol)


if __name__ == "__main__":
    asyncio.run(main())
