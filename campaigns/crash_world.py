"""Runs with processes that crash and come back with their memory, in virtual time.

Nodes with a store (`Node(store=...)`) and nodes without one send each other messages, answer
some of those that they receive, and crash at arranged or random points. The oracle judges
what their applications see:

- what a node accepted, so that `send` has returned, is delivered to everybody;
- what an application has seen and not handled is delivered to it again;
- what it has handled (`done` has returned) is not;
- causal order holds, across crashes;
- nobody takes a process that crashed for a new one;
- at the end, `adaptive` remembers nothing of messages that are delivered;
- at the end, what is in a store leads to the state that its process has.

What a process did and had not stored when it crashed has not happened. The oracle learns
of a send when it is in the store; nobody can have seen it before.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from contextlib import suppress
from random import Random
from typing import Any, NamedTuple

from causewire.core.adaptive import Adaptive
from causewire.node import Full, Message, Node, NodeError, PeerForgotten, PeerRestarted
from causewire.protocols import describe
from causewire.store import StoreError
from causewire.testing.disk import BOUNDARIES, Disk, DiskStore
from causewire.testing.oracle import Oracle
from causewire.testing.virtual import VirtualLoop, run
from causewire.transport import TransportConfig
from causewire.transport.listed_journal import ListedJournal
from causewire.transport.memory import Memory

__all__ = ["Crash", "CrashRun", "Outcome", "crash_run", "random_crashes"]

QUIET = 60.0
"""Virtual seconds in which everything must be delivered when nobody crashes any more."""


class Crash(NamedTuple):
    """When a process crashes: at which of its writes, and where in it."""

    process: str
    write: int
    boundary: str


class Outcome(NamedTuple):
    """What a run has shown."""

    faults: list[str]
    """What was wrong; empty if all is well."""
    seen: Counter[str]
    """How often each thing happened, to tell that the run was worth something."""
    writes: dict[str, int]
    """How many writes each process made."""

    @property
    def ok(self) -> bool:
        """Whether nothing was wrong."""
        return not self.faults


class _Process:
    """One process: its node, which may be replaced, and what its application did."""

    def __init__(self, run: CrashRun, name: str, port: int, durable: bool) -> None:
        self.run = run
        self.name = name
        self.port = port
        self.disk = Disk(lambda: run.random.choice((0.0005, 0.002, 0.02))) if durable else None
        self.node: Node
        self.tasks: list[asyncio.Task[None]] = []
        self.crashed = asyncio.Event()
        self.left_to_send = run.messages
        # What its application did, and the oracle does not know yet.
        self.untold: deque[tuple[str, int, Any]] = deque()
        self.accepted = 0
        """The last message of which the application knows that it is in the store."""
        self.handled: set[tuple[str, int]] = set()
        self.delivered: set[tuple[str, int]] = set()
        if self.disk is not None:
            self.disk.crash = self.crash

    # -- from start to crash ----------------------------------------------------

    async def start(self) -> None:
        run = self.run
        peers = {p: ("127.0.0.1", k) for p, k in run.ports.items() if p != self.name}
        store = None if self.disk is None else DiskStore(self.disk)
        self.node = Node(
            self.name,
            sock=run.loop.network.socket(self.port),  # type: ignore[arg-type]
            peers=peers,
            protocol=run.protocol,
            protocol_options=run.options,
            key=run.key,
            config=run.config,
            give_up_after=None,
            store=store,
            incarnation=1000 * self.port,
            reports_handled=run.explicit,
        )
        if store is not None:
            self.recall()
        await self.node.start()
        self.tasks = [asyncio.create_task(each) for each in (self.write(), self.read())]
        for task in self.tasks:
            task.add_done_callback(self.ended)

    def ended(self, task: asyncio.Task[None]) -> None:
        """Report an application that has failed."""
        if not task.cancelled() and task.exception() is not None:
            self.run.fault(f"the application of {self.name} failed: {task.exception()!r}")

    def recall(self) -> None:
        """Compare what the node knows after a crash with what its application did."""
        gate = self.node._gate
        assert gate is not None
        survived = gate.inbox.journal.last  # type: ignore[union-attr]
        if survived < self.accepted:
            self.run.fault(f"{self.name} has lost message {self.accepted}, which it accepted")
        if gate.inbox.handled + len(gate.inbox.unhandled) < len(self.delivered):
            self.run.fault(f"{self.name} has forgotten a message that its application has seen")
        self.tell(survived)
        seen = [event for event in self.untold if event[0] != "send"]
        self.run.seen["sends that a crash undid"] += len(self.untold) - len(seen)
        self.untold = deque(seen)
        self.tell(survived)
        self.run.seen["redelivered"] += sum(
            (str(m.source), m.mid) in self.delivered for m in gate.inbox.ready
        )

    def crash(self) -> None:
        """Stop at once, without a word."""
        self.run.seen["crashes"] += 1
        bridge = self.node._bridge
        if bridge is not None:
            bridge.stop()
            self.node._bridge = None
        gate = self.node._gate
        assert gate is not None
        gate.store.close()
        Node._started.discard(self.node)
        for task in self.tasks:
            task.cancel()
        self.crashed.set()

    # -- what its application does ------------------------------------------------

    def tell(self, stored: int | None = None) -> None:
        """Tell the oracle what is known to have happened."""
        if stored is None:
            gate = self.node._gate
            stored = 1 << 62 if gate is None else gate.stored
        untold, oracle = self.untold, self.run.oracle
        while untold and (untold[0][0] != "send" or untold[0][1] <= stored):
            kind, mid, what = untold.popleft()
            if kind == "send":
                oracle.sent(self.name, mid, what[0], what[1])
            else:
                oracle.delivered(self.name, what.source, mid, what.payload)

    async def send(self, wait: bool) -> None:
        run = self.run
        others = [name for name in run.ports if name != self.name]
        count = 1 if run.random.random() < 0.6 else run.random.randint(1, len(others))
        to = run.random.sample(others, count)
        payload = run.random.randbytes(run.random.choice((4, 4, 40, 3000)))
        try:
            receipt = self.node.send_nowait(to, payload)
        except Full:
            return
        self.left_to_send -= 1
        self.untold.append(("send", receipt.mid, (to, payload)))
        if self.disk is None:
            self.tell()
        elif wait:
            await receipt.stored()
            self.accepted = max(self.accepted, receipt.mid)
            self.tell()
            run.seen["accepted"] += 1

    async def write(self) -> None:
        with suppress(NodeError, StoreError):
            while self.left_to_send > 0:
                await asyncio.sleep(self.run.random.expovariate(1 / self.run.pause))
                for _ in range(self.run.random.choice((1, 1, 1, 5))):
                    await self.send(wait=self.run.random.random() < 0.5)

    async def read(self) -> None:
        run = self.run
        in_hand: list[Message] = []
        with suppress(NodeError, StoreError):
            while True:
                if run.explicit and (len(in_hand) > 3 or run.random.random() < 0.3):
                    await self.finish(in_hand)
                try:
                    message = await self.node.receive(timeout=0.3)
                except TimeoutError:
                    await self.finish(in_hand)
                    continue
                self.took(message)
                if run.explicit:
                    in_hand.append(message)
                if run.random.random() < 0.2:
                    await asyncio.sleep(run.random.random() * 0.01)
                if run.random.random() < 0.3 and self.left_to_send > 0:
                    await self.send(wait=False)
                if self.disk is not None and not run.explicit and run.random.random() < 0.5:
                    await self.node.done()
                    self.handled.add((str(message.source), message.mid))
                    run.seen["handled"] += 1

    async def finish(self, in_hand: list[Message]) -> None:
        """Handle messages that were taken, in any order."""
        self.run.random.shuffle(in_hand)
        while in_hand:
            message = in_hand.pop()
            message.done()
            if self.disk is not None and self.run.random.random() < 0.5:
                await self.node.done()
                self.handled.add((str(message.source), message.mid))
                self.run.seen["handled"] += 1

    def took(self, message: Message) -> None:
        key = str(message.source), message.mid
        self.run.seen["delivered"] += 1
        if key in self.handled:
            self.run.fault(f"{key} was handled by {self.name}, and came again")
        if key in self.delivered:
            return  # it was not handled, so it may come again
        self.delivered.add(key)
        if key[0] in self.run.processes:
            self.run.processes[key[0]].tell()
        self.untold.append(("deliver", message.mid, message))
        self.tell()

    async def watch(self) -> None:
        """Note what nobody may notice."""
        while True:
            async for event in self.node.events():
                if isinstance(event, PeerRestarted | PeerForgotten):
                    self.run.fault(f"{self.name} took a crash for an end: {event}")
            await asyncio.sleep(0.001)


class CrashRun:
    """A run of several processes of which some crash.

    Args:
        seed: Everything that is drawn at random follows from it.
        crashes: When which process crashes; later ones count writes from the first start.
        protocol: The protocol.
        options: Its options.
        key: The cluster key.
        durable: The names of the processes that have a store, among `a`, `b` and `c`.
        loss: How many of the datagrams are lost.
        messages: How many messages each process sends.
        explicit: Whether applications say which messages they have handled.
    """

    def __init__(
        self,
        seed: int,
        crashes: list[Crash],
        *,
        protocol: str = "csps",
        options: dict[str, Any] | None = None,
        key: bytes | None = None,
        durable: str = "b",
        processes: int = 3,
        loss: float = 0.0,
        messages: int = 8,
        pause: float = 0.01,
        explicit: bool = False,
    ) -> None:
        self.random = Random(seed)
        self.crashes = crashes
        self.protocol = protocol
        self.options = options
        self.key = key
        self.loss = loss
        self.messages = messages
        self.pause = pause
        self.explicit = explicit
        self.oracle = Oracle()
        self.faults: list[str] = []
        self.seen: Counter[str] = Counter()
        self.ports = {name: k for k, name in enumerate("abcdefgh"[:processes], 1)}
        self.durable = durable
        self.config = TransportConfig(local_datagram=1232)
        self.loop: VirtualLoop
        self.processes: dict[str, _Process] = {}

    def fault(self, what: str) -> None:
        """Note something that is wrong."""
        self.faults.append(what)

    def _fate(self, source: Any, to: Any, data: bytes) -> list[float]:
        draw = self.random.random
        if draw() < self.loss:
            return []
        copies = 2 if draw() < self.loss / 2 else 1
        return [0.0005 + draw() * (0.003 if draw() < 0.9 else 0.05) for _ in range(copies)]

    async def main(self, loop: VirtualLoop) -> Outcome:
        """Run, and judge."""
        self.loop = loop
        loop.network.fate = self._fate
        processes = self.processes
        for name, port in self.ports.items():
            processes[name] = _Process(self, name, port, name in self.durable)
        for process in processes.values():
            await process.start()
        background = [asyncio.create_task(p.watch()) for p in processes.values()]
        background += [
            asyncio.create_task(self._revive(p)) for p in processes.values() if p.disk is not None
        ]
        await self._finish(processes)
        for process in processes.values():
            process.tell(1 << 62)
        self.faults += [
            f"{v.kind}: {v.message} at {v.process}" + (f", before {v.earlier}" if v.earlier else "")
            for v in [*self.oracle.violations, *self.oracle.undelivered()]
        ]
        for process in processes.values():
            self.faults += [*self._left_over(process), *self._compare(process)]
        for task in [*background, *[t for p in processes.values() for t in p.tasks]]:
            task.cancel()
        for process in processes.values():
            with suppress(NodeError, StoreError):
                await process.node.close(0.0)
        writes = {n: p.disk.writes for n, p in processes.items() if p.disk is not None}
        self.seen["messages"] = len(self.oracle.messages)
        self.seen["concurrent"] = self.oracle.concurrent()
        return Outcome(self.faults, self.seen, writes)

    async def _finish(self, processes: dict[str, _Process]) -> None:
        """Wait until everybody has sent everything, and everything is delivered."""
        deadline = self.loop.time() + QUIET
        while self.loop.time() < deadline:
            await asyncio.sleep(0.05)
            writing = any(p.left_to_send > 0 or p.crashed.is_set() for p in processes.values())
            if not writing and all(self._settled(p) for p in processes.values()):
                break

    def _settled(self, process: _Process) -> bool:
        node = process.node
        gate = node._gate
        stored = gate is None or (gate.idle and not gate.inbox.unhandled)
        return node.idle and not node._messages and stored and not self._left_over(process)

    def _left_over(self, process: _Process) -> list[str]:
        """Return what `adaptive` still remembers; at rest that must be nothing."""
        endpoint = _endpoint(process.node)
        if not isinstance(endpoint, Adaptive):
            return []
        peers = endpoint._peers.values()
        kept = {
            "past": list(endpoint._past),
            "owed": list(endpoint._past.owed()),
            "groups": endpoint._open or endpoint._copies,
            "lists": [peer.name for peer in peers if peer.sent or peer.parts or peer.lane],
            "news": [peer.name for peer in peers if peer.news or peer.unseen],
            "waiting": endpoint._held._queues or endpoint._held._runs,
        }
        return [f"{process.name} keeps {what}: {some}" for what, some in kept.items() if some]

    def _compare(self, process: _Process) -> list[str]:
        """Compare what would be read from the store now with what the process knows."""
        if process.disk is None or process.crashed.is_set():
            return []
        about = describe(self.protocol).with_options(**(self.options or {})).in_node()
        memory = Memory(process.name, about, process.disk.snapshot, process.disk.batches)
        faults = []
        if memory.endpoint != _endpoint(process.node):
            faults.append(f"the store of {process.name} leads to another state")
        journal = process.node._transport.journal
        if isinstance(journal, ListedJournal) and memory.carried() != journal.carried():
            faults.append(f"the store of {process.name} leads to other tables")
        self.seen["stores compared"] += 1
        return faults

    async def _revive(self, process: _Process) -> None:
        """Arrange crashes of a process, and start it again after each."""
        disk = process.disk
        assert disk is not None
        for crash in [c for c in self.crashes if c.process == process.name]:
            disk.crash_at = crash.write, crash.boundary
            if crash.write <= disk.writes:
                disk.crash_at = disk.writes + 1, crash.boundary
            await process.crashed.wait()
            await asyncio.gather(*process.tasks, return_exceptions=True)
            await asyncio.sleep(self.random.choice((0.001, 0.05, 1.0)))
            await process.start()
            process.crashed.clear()


def _endpoint(node: Node) -> Any:
    return node._transport._carrier.endpoint  # type: ignore[attr-defined]


def crash_run(seed: int, crashes: list[Crash], **options: Any) -> Outcome:
    """Return what a run shows; see `CrashRun`."""
    return run(CrashRun(seed, crashes, **options).main, seed)


def random_crashes(seed: int, durable: str, most: int, writes: int) -> list[Crash]:
    """Return crashes at random points of the processes with a store."""
    random = Random(f"crashes {seed}")
    return [
        Crash(name, write, random.choice(BOUNDARIES))
        for name in durable
        for write in sorted(random.randint(1, writes) for _ in range(random.randint(1, most)))
    ]
