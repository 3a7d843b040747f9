"""What it costs to come back: bytes sent to a replica that has most of the state, or nothing.

    python -m campaigns.returns
    python -m campaigns.returns --messages 20000 --size 500

A group of two runs in virtual time, on a network in memory, so the numbers are counts and repeat
exactly, apart from a few bytes. The state is the list of all messages.
"""

from __future__ import annotations

import argparse
import asyncio
from typing import Any

from causewire import Node
from causewire.kit import GroupMessage, Kit
from causewire.testing.virtual import VirtualLoop, run


def _node(loop: VirtualLoop, name: str, port: int) -> Node:
    peers = {} if port == 1 else {"ann": "127.0.0.1:1"}
    sock: Any = loop.network.socket(port)
    return Node(name, sock=sock, peers=peers, incarnation=port, ordered_events=True, drain=1.0)


def bytes_to_return(messages: int, missed: int | None, size: int = 100) -> int:
    """Return how many bytes are sent to a replica until it has the state.

    Args:
        messages: How many messages the state has.
        missed: How many of them the replica lacks, or None if it comes without any state.
        size: Bytes of each message.
    """

    async def main(loop: VirtualLoop) -> int:
        def fate(_: Any, to: Any, data: bytes) -> list[float]:
            counted[to[1]] = counted.get(to[1], 0) + len(data)
            return [0.001]

        counted: dict[int, int] = {}
        loop.network.fate = fate
        state: list[str] = []
        ann_node, bob_node = _node(loop, "ann", 1), _node(loop, "bob", 2)
        async with ann_node, Kit(ann_node, codec="json") as ann:
            room = await ann.join("room", snapshot=lambda: state)
            ready = asyncio.Event()
            kept: dict[str, Any] = {"state": [], "position": None}

            async def listen() -> None:
                async for item in room:
                    if isinstance(item, GroupMessage):
                        state.append(item.payload)
                        if missed is not None and len(state) == messages - missed:
                            kept.update(state=list(state), position=room.position)
                        if len(state) == messages:
                            ready.set()

            listening = asyncio.create_task(listen())
            for number in range(messages):
                await room.send(f"{number:0{size}}")
            await ready.wait()
            await asyncio.sleep(1.0)  # then ann has noticed that everybody has all of them
            async with bob_node, Kit(bob_node, codec="json") as bob:
                theirs = await bob.join(
                    "room",
                    ["ann"],
                    restore=lambda state: kept.update(state=state),
                    since=lambda: kept["position"],
                )
                if missed:
                    async for item in theirs:
                        if isinstance(item, GroupMessage):
                            kept["state"].append(item.payload)
                            if len(kept["state"]) == messages:
                                break
                assert kept["state"] == state
                sent = counted[2]
                listening.cancel()
        return sent

    return run(main)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--messages", type=int, default=5000)
    parser.add_argument("--size", type=int, default=100)
    args = parser.parse_args()
    whole = bytes_to_return(args.messages, None, args.size)
    print("| the replica has | bytes sent to it | share |")
    print("| --- | ---: | ---: |")
    print(f"| no state | {whole:,} | 100% |")
    for share in (0.1, 0.01, 0.001, 0.0):
        lacks = round(args.messages * share)
        sent = bytes_to_return(args.messages, lacks, args.size)
        print(f"| all but {lacks:,} messages | {sent:,} | {sent / whole:.1%} |")
