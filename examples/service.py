"""A service with request and reply: a bank whose errors reach the client that caused them.

    python examples/service.py

Requests keep causal order: Carl pays, and writes to Dora that he has paid. When she then asks for
the balance, the bank has seen his payment.
"""

from __future__ import annotations

import asyncio
import sys

from processes import start

from causewire.kit import Kit, Request, RequestFailed
from causewire.node import Node, run


async def serve() -> None:
    balance = 100
    async with Node("bank", ordered_events=True) as node, Kit(node, codec="json") as kit:

        @kit.serves("pay")
        async def pay(request: Request) -> int:
            nonlocal balance
            if request.payload > balance:
                raise ValueError(f"{request.payload} is more than {balance}")
            balance -= int(request.payload)
            return balance

        @kit.serves("balance")
        async def ask(request: Request) -> int:
            return balance

        print(f"{node.address[0]}:{node.address[1]}", flush=True)
        async for _ in kit:
            pass


async def client(name: str, bank: str) -> None:
    async with (
        Node(name, peers={"bank": bank}, ordered_events=True) as node,
        Kit(node, codec="json") as kit,
    ):
        if name == "ann":
            print("ann sees", await kit.request("bank", None, service="balance", timeout=10))
        try:
            if name == "bob":
                await kit.request("bank", 1000, service="pay", timeout=10)
        except RequestFailed as failed:
            print(f"bob gets {failed.kind}: {failed.message}")


async def friends(bank: str) -> None:
    """Carl pays and tells Dora, without waiting for the bank; Dora asks for the balance."""
    peers = {"bank": bank}
    async with (
        Node("carl", peers=peers, ordered_events=True) as one,
        Node("dora", peers=peers, ordered_events=True) as two,
        Kit(one, codec="json") as carl,
        Kit(two, codec="json") as dora,
    ):
        await one.add_peer("dora", two.address)
        paying = asyncio.create_task(carl.request("bank", 30, service="pay", timeout=10))
        await asyncio.sleep(0)
        await one.send("dora", b"I have paid.")
        async for message in dora:
            print(f"{message.source} tells dora: {message.payload.decode()}")
            break
        print("dora sees", await dora.request("bank", None, service="balance", timeout=10))
        await paying


async def play() -> None:
    bank = await start(__file__, "bank")
    address = await bank.line("127.")
    for name in ("ann", "bob", "friends"):
        child = await start(__file__, name, address)
        await child.end()
        print("\n".join(child.lines))
    bank.process.terminate()
    await bank.end()


if __name__ == "__main__":
    if not sys.argv[1:]:
        asyncio.run(play())
    elif sys.argv[1] == "bank":
        run(serve())
    else:
        run(friends(sys.argv[2]) if sys.argv[1] == "friends" else client(*sys.argv[1:3]))
