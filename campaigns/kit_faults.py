"""A chat of whole nodes under random faults, in virtual time: kit, node, transport and protocol.

    python -m campaigns.kit_faults --runs 200            # seeds 0 to 199
    python -m campaigns.kit_faults --seed 17 --runs 1
    python -m campaigns.kit_faults --divide              # parts of two or more are cut off

`campaigns.groups` plays the machine of a group alone, much faster. Here the same application
as in the failure matrix (`campaigns.applications.kit.chat`) runs on nodes that share a network in
memory. One process at a time is cut off, takes nothing, or is given up by another one; datagrams
are lost and delayed. In the end, all processes must be members again and have the same lines, in
causal order, each once; nothing may be missing of a process that was never given up.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
from collections import Counter
from contextlib import AsyncExitStack, suppress
from random import Random
from typing import Any

from causewire import CausewireError
from causewire.kit import Kit
from causewire.node import Node, NodeRejoined
from causewire.testing.virtual import VirtualLoop, run

from .applications.kit.chat import App
from .applications.matrix import judge_chat

QUIET = 90.0
"""Virtual seconds in which everything must be right when no fault is left."""


class Process:
    """A node with the application, and what is known of it."""

    def __init__(self, loop: VirtualLoop, name: str, ports: dict[str, int], protocol: str) -> None:
        others = [other for other in ports if other != name]
        self.name = name
        self.node = Node(
            name,
            sock=loop.network.socket(ports[name]),  # type: ignore[arg-type]
            peers={other: f"127.0.0.1:{ports[other]}" for other in others},
            incarnation=1000 * ports[name],
            protocol=protocol,
            give_up_after=2.0,
            drain=1.0,
            rejoin=True,
            ordered_events=True,
        )
        self.kit = Kit(self.node, codec="json", queue=50)
        self.app = App(self.kit, name, others, ports[name] == 1)
        self.app.reading.set()
        self.acted = self.given_up = 0

    async def act(self, random: Random) -> None:
        while True:
            await asyncio.sleep(random.uniform(0.1, 0.5))
            with suppress(CausewireError):
                await self.app.act(self.acted)
                self.acted += 1

    async def watch(self) -> None:
        async for event in self.node.events():
            self.given_up += isinstance(event, NodeRejoined)


class World:
    """The processes of a run, and chance."""

    def __init__(self, loop: VirtualLoop, seed: int, divide: bool) -> None:
        self.loop, self.random, self.divide = loop, Random(seed), divide
        protocol = self.random.choice(("csps", "sps", "adaptive"))
        ports = {f"p{k}": k + 1 for k in range(self.random.choice((3, 4, 5)))}
        self.ports = ports
        self.processes = [Process(loop, name, ports, protocol) for name in ports]
        self.cut: set[int] = set()
        self.loss = self.random.choice((0.0, 0.0, 0.05, 0.2))
        self.counts: Counter[str] = Counter()
        loop.network.fate = self.fate

    def fate(self, source: Any, to: Any, _: bytes) -> list[float]:
        if (source[1] in self.cut) != (to[1] in self.cut) or self.random.random() < self.loss:
            return []
        return [self.random.uniform(0.001, 0.02)]

    async def fault(self) -> None:
        """Do something to one process, and undo it after a while."""
        victim, other = self.random.sample(self.processes, 2)
        kind = self.random.choice(("cut off", "deaf", "forget", "nothing"))
        self.counts[kind] += 1
        if kind == "cut off":
            self.cut = {self.ports[victim.name]}
            if self.divide:
                self.cut.add(self.ports[other.name])
        elif kind == "deaf":
            victim.app.reading.clear()
        elif kind == "forget":
            with suppress(CausewireError):
                await other.node.forget(victim.name)
        await asyncio.sleep(self.random.choice((0.5, 1.5, 2.5, 4.0, 8.0)))
        self.cut = set()
        victim.app.reading.set()
        await asyncio.sleep(self.random.choice((0.0, 0.3, 3.0)))

    async def play(self) -> str:
        """Play the run; return what is wrong in the end."""
        async with AsyncExitStack() as stack:
            tasks = []
            for process in self.processes:
                await stack.enter_async_context(process.node)
                await stack.enter_async_context(process.kit)
                tasks += [asyncio.create_task(process.app.run())]
                tasks += [asyncio.create_task(process.watch())]
            acting = [asyncio.create_task(p.act(Random(p.name))) for p in self.processes]
            await asyncio.sleep(self.random.choice((0.0, 2.0)))
            for _ in range(self.random.randrange(1, 5)):
                await self.fault()
            for task in acting:
                task.cancel()
            wrong = await self.until_right()
            groups = [process.app.room.group for process in self.processes]
            generations = [group.generation for group in groups if group is not None]
            self.counts["begun again"] = max(generations, default=1) - 1
            for task in tasks:
                task.cancel()
            for process in self.processes:
                self.counts["lines"] += process.acted
                self.counts["given up"] += process.given_up
                await process.node.close(0)
        return wrong

    async def until_right(self) -> str:
        end = self.loop.now + QUIET
        while True:
            wrong = self.judge()
            if not wrong or self.loop.now > end:
                return wrong
            await asyncio.sleep(1.0)

    def judge(self) -> str:
        states = {p.name: {"state": p.app.state(), "acted": p.acted} for p in self.processes}
        everybody = tuple(sorted(states))
        for process in self.processes:
            room = process.app.room
            if tuple(member.name for member in room.members) != everybody:
                return f"{process.name} knows {[str(member) for member in room.members]}"
        return judge_chat(states, [p.name for p in self.processes if not self.was_out(p)])

    def was_out(self, process: Process) -> bool:
        """Return whether a process was given up: by all, or by a member that never reached it.

        In the latter case its node is the same incarnation, and only the membership is new.
        """
        group = process.app.room.group
        return process.given_up > 0 or (group is not None and group.me.term > 1)


def play(seed: int, divide: bool = False) -> tuple[str, Counter[str]]:
    """Play one run; return what is wrong in the end, and what happened."""

    async def main(loop: VirtualLoop) -> tuple[str, Counter[str]]:
        world = World(loop, seed, divide)
        return await world.play(), world.counts

    return run(main, seed)


def main() -> int:
    """Play many runs; return 1 if one was wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--divide", action="store_true", help="cut two processes off, not one")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    counts: Counter[str] = Counter()
    failed = 0
    for seed in range(options.seed, options.seed + options.runs):
        wrong, more = play(seed, options.divide)
        counts += more
        if wrong:
            failed += 1
            print(f"seed {seed}: {wrong}", flush=True)
    text = ", ".join(f"{n} {kind}" for kind, n in counts.items())
    print(f"{options.runs} runs, {failed} wrong; {text}")
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
