"""Long jobs for workers, one of which is killed: its job goes to another one.

    python examples/jobs.py

A request has no deadline here: a job takes as long as it takes. It fails when the worker is known
to be gone, and then another one gets it. Each worker does one job at a time.
"""

from __future__ import annotations

import asyncio
import sys

from processes import Child, start

from causewire.kit import Kit, PeerLost, Request
from causewire.node import Node, run

JOBS = ["render", "encode", "index", "compress", "train", "upload"]
WORKERS = ["w1", "w2", "w3"]


async def work(name: str) -> None:
    async with (
        Node(name, ordered_events=True) as node,
        Kit(node, codec="json", handlers=1) as kit,
    ):

        @kit.serves("job")
        async def job(request: Request) -> str:
            await asyncio.sleep(30 if (name, request.payload) == ("w2", "encode") else 0.1)
            return f"{request.payload} by {name}"

        print(f"{node.address[0]}:{node.address[1]}", flush=True)
        async for _ in kit:
            pass


async def direct(children: dict[str, Child]) -> None:
    """Give the jobs to the workers, and kill one of them in the middle of its job."""
    peers = {name: await child.line("127.") for name, child in children.items()}
    async with (
        Node("boss", peers=peers, ordered_events=True, give_up_after=1.0) as node,
        Kit(node, codec="json") as kit,
    ):
        todo = list(reversed(JOBS))
        done: list[str] = []

        async def keep_busy(worker: str) -> None:
            while len(done) < len(JOBS):
                if not todo:
                    await asyncio.sleep(0.05)  # another worker may still fail
                    continue
                job = todo.pop()
                try:
                    done.append(await kit.request(worker, job, service="job"))
                except PeerLost:
                    print(f"{worker} is gone; {job} has to be done again")
                    todo.append(job)
                    return

        async def kill() -> None:
            await asyncio.sleep(0.5)
            children["w2"].process.kill()

        await asyncio.gather(kill(), *map(keep_busy, WORKERS))
        print("done:", ", ".join(sorted(line.split()[0] for line in done)))


async def play() -> None:
    children = {name: await start(__file__, name) for name in WORKERS}
    try:
        await direct(children)
    finally:
        for child in children.values():
            if child.process.returncode is None:
                child.process.terminate()
            await child.end()


if __name__ == "__main__":
    if sys.argv[1:]:
        run(work(sys.argv[1]))
    else:
        asyncio.run(play())
