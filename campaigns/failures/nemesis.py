"""The nemesis: real processes, random faults of every kind, and a verdict from their traces.

    python -m campaigns.failures.nemesis [--minutes 10] [--processes 6] [--protocol P ...]
        [--seed S] [--out out/nemesis]

Processes talk to each other through a proxy while a nemesis freezes, kills, restarts and
cuts them off, kills single links, makes them leave, come back with a clock set back, forget
one another, stop reading, floods them, has strangers with another protocol and living processes
with their own names call them, and damages, loses, copies and delays their datagrams. Rounds of
a minute alternate between the protocols. At the end of a round all faults end, and then

    order       of two messages that a process delivered, the cause came first
    duplicates  no process delivered a message twice
    lost        what a process that lived to the end was sent by another one that did so,
                in the same lives, was delivered; or its receipt says that it failed, and
                one of the two reported that the other was given up
    stuck       everybody came to rest within a minute

The log says what was done, with the seed that repeats the choices (not their timing).
The exit status is 1 if anything was wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import socket
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TextIO

from causewire.node import Node
from causewire.testing.cluster import Cluster
from causewire.trace import DELIVER, SEND, Event, open_trace
from causewire.transport.heads import GREETING

WORKER = Path(__file__).with_name("talker.py")
PROTOCOLS = ("csps", "sps", "adaptive")
GIVE_UP = 4.0
"""Seconds after which a silent peer is forgotten."""
SETTLE = 60.0
"""Seconds within which everybody must have come to rest after the last fault."""


class Verdict(NamedTuple):
    """What the traces of a round say."""

    sends: int
    deliveries: int
    problems: list[str]


class Nemesis:
    """Does one thing after another to the processes of a cluster."""

    def __init__(self, cluster: Cluster, protocol: str, random: Random, log: TextIO) -> None:
        self.cluster = cluster
        self.protocol = protocol
        self.random = random
        self.log = log
        self.began = time.monotonic()
        self.frozen: set[str] = set()
        self.dead: set[str] = set()
        self.deaf: set[str] = set()
        self.setbacks: dict[str, int] = defaultdict(int)

    def note(self, text: str) -> None:
        """Write a line to the log."""
        print(f"{time.monotonic() - self.began:7.2f}  {text}", file=self.log, flush=True)

    @property
    def running(self) -> list[str]:
        """Processes that can be told something now."""
        return [n for n in self.cluster.names if n not in self.frozen and n not in self.dead]

    async def strike(self) -> None:
        """Do one random thing, or end one."""
        actions = {
            "freeze": self.freeze,
            "thaw": self.thaw,
            "kill": self.kill,
            "revive": self.revive,
            "leave": self.leave,
            "cut": self.cut,
            "kill link": self.kill_link,
            "flood": self.flood,
            "stranger": self.stranger,
            "twin": self.twin,
            "heal": self.heal,
            "weather": self.weather,
            "move": self.move,
            "deafen": self.deafen,
            "forget": self.forget,
        }
        await self.random.choice(list(actions.values()))()

    async def freeze(self) -> None:
        if len(self.running) > 3:
            name = self.random.choice(self.running)
            self.note(f"freeze {name}")
            self.frozen.add(name)
            self.cluster.processes[name].send_signal(signal.SIGSTOP)

    async def thaw(self) -> None:
        if self.frozen:
            name = self.random.choice(sorted(self.frozen))
            self.note(f"thaw {name}")
            self.frozen.discard(name)
            self.cluster.processes[name].send_signal(signal.SIGCONT)

    async def kill(self) -> None:
        if len(self.running) > 3:
            name = self.random.choice(self.running)
            self.note(f"kill {name}")
            self.cluster.processes[name].kill()
            await self.cluster.processes[name].wait()
            self.dead.add(name)

    async def leave(self) -> None:
        if len(self.running) > 3:
            name = self.random.choice(self.running)
            self.note(f"{name} leaves")
            self.dead.add(name)
            self.cluster.tell(name, "stop")
            try:
                async with asyncio.timeout(30):
                    await self.cluster.processes[name].wait()
            except TimeoutError:
                self.note(f"{name} did not end in 30 s; killed")
                self.cluster.processes[name].kill()
                await self.cluster.processes[name].wait()

    async def revive(self) -> None:
        if self.dead:
            name = self.random.choice(sorted(self.dead))
            set_back = self.random.random() < 0.3
            self.note(f"start {name}{', its clock set back' if set_back else ''}")
            settings = {"incarnation": self.random.randint(1, 1000)} if set_back else {}
            await self.cluster.start(name, **settings)
            self.dead.discard(name)
            self.deaf.discard(name)
            self.cluster.tell(name, "go")

    async def cut(self) -> None:
        names = self.cluster.names
        side = self.random.sample(names, self.random.randint(1, len(names) // 2))
        self.note(f"cut {', '.join(side)} off")
        self.cluster.proxy.partition(side)

    async def kill_link(self) -> None:
        source, target = self.random.sample(self.cluster.names, 2)
        both = self.random.random() < 0.5
        self.note(f"kill the link from {source} to {target}{' and back' if both else ''}")
        links = {(source, target), *([(target, source)] if both else [])}
        self.cluster.proxy.dead = frozenset(links)

    async def heal(self) -> None:
        self.note("heal")
        self.cluster.proxy.partition(())
        self.cluster.proxy.dead = frozenset()

    async def flood(self) -> None:
        """Send a process forged greetings, from one port."""
        name = self.random.choice(self.cluster.names)
        self.note(f"flood {name}")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            for _ in range(50):
                for _ in range(40):
                    body = self.random.randbytes(self.random.randint(20, 160))
                    sock.sendto(bytes([GREETING]) + body, self.cluster.proxy.places[name])
                await asyncio.sleep(0.01)

    async def stranger(self) -> None:
        """Have a process with another protocol call one."""
        await self.call(f"stranger {self.random.randint(1, 3)}", "fifo")

    async def twin(self) -> None:
        """Have a second living process with the name of one call another."""
        await self.call(self.random.choice(self.cluster.names), self.protocol)

    async def call(self, name: str, protocol: str) -> None:
        peer = self.random.choice([other for other in self.cluster.names if other != name])
        number = self.random.choice((None, 1000))
        self.note(f"another {name}, protocol {protocol}, number {number or 'new'}, calls {peer}")
        place = self.cluster.proxy.places[peer]
        settings: dict[str, Any] = {"incarnation": number, "drain": 0.2}
        async with Node(name, protocol=protocol, peers={peer: place}, **settings):
            await asyncio.sleep(self.random.uniform(0.2, 1.0))

    async def weather(self) -> None:
        proxy, random = self.cluster.proxy, self.random
        proxy.loss = random.choice((0.0, 0.02, 0.1, 0.3))
        proxy.duplicate = random.choice((0.0, 0.1))
        proxy.corrupt = random.choice((0.0, 0.02))
        proxy.delay = random.choice(((0.0, 0.001), (0.0005, 0.03), (0.05, 0.1)))
        self.note(
            f"loss {proxy.loss}, copies {proxy.duplicate}, damage {proxy.corrupt}, "
            f"delay {proxy.delay}"
        )

    async def move(self) -> None:
        name = self.random.choice(self.cluster.names)
        self.note(f"move {name}")
        self.cluster.proxy.move(name)

    async def deafen(self) -> None:
        if self.running:
            name = self.random.choice(self.running)
            word = "hear" if name in self.deaf else "deaf"
            self.note(f"{name}: {word}")
            self.deaf.symmetric_difference_update([name])
            self.cluster.tell(name, word)

    async def forget(self) -> None:
        if self.random.random() < 0.5 and self.running:
            name = self.random.choice(self.running)
            peer = self.random.choice([other for other in self.cluster.names if other != name])
            self.note(f"{name} forgets {peer}")
            self.cluster.tell(name, f"forget {peer}")

    async def relent(self) -> None:
        """End every fault, and start who is dead."""
        proxy = self.cluster.proxy
        proxy.partition(())
        proxy.dead = frozenset()
        proxy.loss = proxy.duplicate = proxy.corrupt = 0.0
        proxy.delay = (0.0, 0.002)
        while self.frozen:
            await self.thaw()
        for name in sorted(self.deaf - self.dead):
            self.cluster.tell(name, "hear")
        while self.dead:
            await self.revive()
        self.note("all faults have ended")


async def rest(cluster: Cluster) -> list[str]:
    """Wait until nobody has anything left to do; return the processes that have not."""
    deadline = time.monotonic() + SETTLE
    before: list[Any] = []
    while True:
        states = {name: await cluster.ask(name, "state") for name in cluster.names}
        busy = [name for name, state in states.items() if not state["quiet"]]
        now = [(state["sent"], state["got"]) for state in states.values()]
        if not busy and now == before:
            return []
        if time.monotonic() > deadline:
            return [f"{name}: {'; '.join(states[name]['blocked']) or 'busy'}" for name in busy]
        before = now
        await asyncio.sleep(0.5)


async def round_of(
    protocol: str, names: Sequence[str], seconds: float, seed: int, folder: Path
) -> list[str]:
    """Play one round; return what was wrong."""
    folder.mkdir(parents=True, exist_ok=True)
    random = Random(seed)
    each = {name: {"trace": str(folder / f"{name}.jsonl")} for name in names}
    settings = {
        "protocol": protocol,
        "give_up_after": GIVE_UP,
        "read_within": random.choice((None, GIVE_UP)),
        "rejoin": True,
        "pause": 0.05,
    }
    faults = {"seed": seed, "delay": (0.0, 0.002)}
    with (folder / "log.txt").open("w") as log:
        async with Cluster(names, WORKER, faults, each=each, **settings) as cluster:
            nemesis = Nemesis(cluster, protocol, random, log)
            nemesis.note(f"{protocol}, seed {seed}")
            for name in names:
                cluster.tell(name, "go")
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                await asyncio.sleep(random.uniform(0.2, 3.0))
                await nemesis.strike()
            await nemesis.relent()
            for name in names:
                cluster.tell(name, "quiet")
            problems = [f"stuck: {what}" for what in await rest(cluster)]
            living = {name: (await cluster.ask(name, "state"))["life"] for name in names}
            answers = [await cluster.ask(name, "failed") for name in names]
            await cluster.stop()
        failed = {tuple(entry) for answer in answers for entry in answer["failed"]}
        parted = {tuple(entry) for answer in answers for entry in answer["parted"]}
        verdict = judge(events_in(folder), living, failed, parted)
        problems += verdict.problems
        nemesis.note(f"{verdict.sends} sends, {verdict.deliveries} deliveries")
        for problem in problems[:20]:
            nemesis.note(problem)
    print(
        f"{protocol:9} seed {seed}: {verdict.sends} sends, {verdict.deliveries} deliveries, "
        f"{len(problems)} problems; {folder / 'log.txt'}",
        flush=True,
    )
    return problems


def events_in(folder: Path) -> Iterator[Event]:
    """Yield the sends and deliveries of a round, in an order that respects causality."""
    rows = [
        event
        for path in sorted(folder.glob("*.jsonl"))
        for event in open_trace(path, tolerate_cut=True).events()
        if event.kind in (SEND, DELIVER)
    ]
    return iter(sorted(rows, key=lambda event: (event.lamport, event.process, event.seq)))


def judge(
    events: Iterable[Event],
    living: dict[str, str],
    failed: Set[tuple[str, int, str]],
    parted: Set[tuple[str, str]],
) -> Verdict:
    """Judge a round from the definition of happened-before.

    Args:
        events: Sends and deliveries in an order that respects causality.
        living: The label of the last life of each process.
        failed: Messages whose receipts say that they failed: the label of the sender's
            life, the number, and the name of the receiver.
        parted: Processes, by the label of their life, and the names of peers that they
            reported as given up.
    """
    number: dict[tuple[str, int], int] = {}
    past: dict[str, int] = defaultdict(int)
    pasts: list[int] = []
    sent: list[Event] = []
    got: dict[str, dict[int, int]] = defaultdict(dict)
    problems = []
    deliveries = 0
    alive = set(living.values())
    for event in events:
        assert event.origin is not None
        assert event.mid is not None
        key = (event.origin, event.mid)
        here = past[event.process]
        if event.kind == SEND:
            number[key] = len(sent)
            pasts.append(here)
            past[event.process] |= 1 << len(sent)
            sent.append(event)
            continue
        deliveries += 1
        index = number.get(key)
        if index is None:
            # The last rows of a process that was killed may be missing from its trace.
            if event.origin in alive:
                problems.append(f"unsent: {event.process} delivered {key}, which nobody sent")
            continue
        delivered = got[event.process]
        if index in delivered:
            problems.append(f"duplicate: {event.process} delivered {key} twice")
            continue
        delivered[index] = len(delivered)
        past[event.process] |= pasts[index] | 1 << index
    for process, delivered in got.items():
        # A message may not come after one of which it is in the past.
        seen_pasts = 0
        for index in delivered:
            if seen_pasts >> index & 1:
                first = sent[index]
                problems.append(
                    f"order: {process} delivered {first.origin}:{first.mid} "
                    "after a message that depends on it"
                )
            seen_pasts |= pasts[index]
    for index, event in enumerate(sent):
        if event.process not in alive:
            continue
        for to in event.peers or ():
            if to not in alive or index in got[to]:
                continue
            name, source = to.partition("/")[0], event.process.partition("/")[0]
            told = (event.process, event.mid, name) in failed
            if not told:
                problems.append(f"lost: {event.process}:{event.mid} to {to}")
            elif (event.process, name) not in parted and (to, source) not in parted:
                problems.append(f"failed without a reason: {event.process}:{event.mid} to {to}")
    return Verdict(len(sent), deliveries, problems)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--round", type=float, default=60.0, help="seconds of faults in a round")
    parser.add_argument("--processes", type=int, default=6)
    parser.add_argument("--protocol", action="append")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("out/nemesis"))
    options = parser.parse_args(arguments)
    names = [f"p{index}" for index in range(options.processes)]
    protocols = options.protocol or PROTOCOLS
    end = time.monotonic() + 60 * options.minutes
    seed = options.seed
    wrong: dict[str, list[str]] = {}
    while time.monotonic() < end or seed == options.seed:
        protocol = protocols[(seed - options.seed) % len(protocols)]
        folder = options.out / f"{seed}-{protocol}"
        for old in folder.glob("*.jsonl"):
            old.unlink()
        problems = asyncio.run(round_of(protocol, names, options.round, seed, folder))
        if problems:
            wrong[f"{protocol}, seed {seed}"] = problems
        seed += 1
    shown = {name: problems[:5] for name, problems in wrong.items()}
    print(json.dumps({"rounds": seed - options.seed, "wrong": shown}))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
