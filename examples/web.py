"""An auction on the web: browsers at three servers, and a service that takes the bids.

    python examples/web.py           # what three people see
    python examples/web.py --open    # print addresses for a browser, and stay

The servers are ASGI applications (here under uvicorn). A bid is a request of a server to the
house, which accepts it and announces it to all servers, or refuses it. What people say goes from
server to server. Whoever comments on a bid has seen it, so nobody sees the comment before the bid.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from contextlib import suppress
from typing import Any

import uvicorn
from processes import start
from websockets.asyncio.client import ClientConnection, connect

from causewire.kit import Group, GroupMessage, Kit, Request, RequestFailed
from causewire.node import Node, run

PAGE = b"""<!doctype html><meta charset="utf-8"><title>Auction</title><h1>Auction</h1>
<ul></ul><form><input size="40" placeholder="a number to bid, or a comment"></form><script>
const socket = new WebSocket("ws://" + location.host), [list, form, input] =
  ["ul", "form", "input"].map((name) => document.querySelector(name));
socket.onmessage = ({data}) => list.append(JSON.parse(data), document.createElement("br"));
form.onsubmit = () => { const name = location.hash.slice(1) || "guest";
  socket.send(JSON.stringify([name, input.value])); input.value = ""; return false; };</script>"""


async def house() -> None:
    """Serve bids, and announce those that are accepted."""
    bids = [0]
    lines: list[str] = []
    async with Node("house", ordered_events=True) as node, Kit(node, codec="json") as kit:
        room = await kit.join("room", snapshot=lambda: lines)

        @kit.serves("bid")
        async def bid(request: Request) -> None:
            name, amount = request.payload
            if amount <= bids[-1]:
                raise ValueError(f"{amount} is not more than {bids[-1]}")
            bids.append(amount)
            await room.send(f"{name} bids {amount}")

        print(f"{node.address[0]}:{node.address[1]}", flush=True)
        async for item in room:
            lines += [item.payload] if isinstance(item, GroupMessage) else []


class Site:
    """The ASGI application of one server."""

    def __init__(self, kit: Kit) -> None:
        self.kit = kit
        self.lines: list[str] = []
        self.browsers: set[asyncio.Queue[str]] = set()

    async def follow(self, room: Group) -> None:
        """Pass on to the browsers what the group delivers, in its order."""
        self.room = room
        async for item in room:
            if isinstance(item, GroupMessage):
                self.lines.append(item.payload)
                for browser in self.browsers:
                    browser.put_nowait(item.payload)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": PAGE})
            return
        await receive()
        await send({"type": "websocket.accept"})
        mine: asyncio.Queue[str] = asyncio.Queue()
        for line in self.lines:
            mine.put_nowait(line)
        self.browsers.add(mine)
        writing = asyncio.create_task(self.write(mine, send))
        while (event := await receive())["type"] == "websocket.receive":
            await self.heard(mine, *json.loads(event["text"]))
        self.browsers.discard(mine)
        writing.cancel()

    async def write(self, lines: asyncio.Queue[str], send: Any) -> None:
        while True:
            await send({"type": "websocket.send", "text": json.dumps(await lines.get())})

    async def heard(self, mine: asyncio.Queue[str], name: str, text: str) -> None:
        """Act on a line of a browser: a number is a bid, anything else is said to all."""
        try:
            if text.isdigit():
                await self.kit.request("house", [name, int(text)], service="bid", timeout=10)
            else:
                await self.room.send(f"{name}: {text}")
        except RequestFailed as failed:
            mine.put_nowait(f"refused: {failed.message}")


async def serve(name: str, place: str) -> None:
    node = Node(name, peers={"house": place}, ordered_events=True)
    async with asyncio.TaskGroup() as tasks, node, Kit(node, codec="json") as kit:
        site = Site(kit)
        kept: Any = {"snapshot": lambda: site.lines, "restore": lambda x: setattr(site, "lines", x)}
        tasks.create_task(site.follow(await kit.join("room", ["house"], **kept)))
        listening = socket.create_server(("127.0.0.1", 0))
        print(f"127.0.0.1:{listening.getsockname()[1]}", flush=True)
        config = uvicorn.Config(site, log_level="error", ws="websockets-sansio", lifespan="off")
        await uvicorn.Server(config).serve([listening])


async def sees(browser: ClientConnection, last: str) -> list[str]:
    """Return what a browser sees, up to a line that begins so."""
    lines = [json.loads(await browser.recv())]
    return lines if lines[0].startswith(last) else lines + await sees(browser, last)


async def play(stay: bool) -> None:
    children = [await start(__file__, "house")]
    address = await children[0].line("127.")
    children += [await start(__file__, name, address) for name in ("west", "east", "north")]
    west, east, north = [f"ws://{await child.line('127.')}" for child in children[1:]]
    if stay:
        print(*[place.replace("ws", "http") for place in (west, east, north)], sep="\n")
        await asyncio.Event().wait()
    async with connect(west) as ann, connect(east) as bob, connect(north) as cy:
        await ann.send('["ann", "10"]')
        await sees(bob, "ann bids")
        await bob.send('["bob", "5"]')
        print("Bob sees:", *await sees(bob, "refused"))
        await bob.send('["bob", "20"]')
        await sees(ann, "bob bids")
        await ann.send('["ann", "Too much for me."]')
        print("Cy sees:", " | ".join(await sees(cy, "ann:")))
    for child in reversed(children):
        child.process.terminate()
        await child.end()


if __name__ == "__main__":
    words = sys.argv[1:]
    with suppress(KeyboardInterrupt):
        part = house() if words == ["house"] else serve(*words) if words[1:] else None
        run(part or play(stay=words == ["--open"]))
