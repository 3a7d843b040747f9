"""A process with a store, for tests that kill it.

It sends numbers to `judge`, one after another, and prints each when it is accepted; and it
prints each message that it has handled.
"""

from __future__ import annotations

import asyncio
import sys

from causewire.node import Node


async def main(port: int, path: str, judge: int, protocol: str) -> None:
    place = ("127.0.0.1", judge)
    async with Node(
        "worker",
        listen=f"127.0.0.1:{port}",
        peers={"judge": place},
        store=path,
        protocol=protocol,
    ) as node:

        async def send() -> None:
            while True:
                receipt = await node.send("judge", b"from the worker")
                print(f"accepted {receipt.mid}\n", end="", flush=True)
                await asyncio.sleep(0.001)

        sending = asyncio.create_task(send())
        async for message in node:
            await node.done()
            print(f"handled {message.mid}\n", end="", flush=True)
        await sending


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]))
