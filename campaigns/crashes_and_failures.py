"""Crashes among other failures: processes with a store, restarts, obituaries, two of one name.

    python -m campaigns.crashes_and_failures --protocol adaptive --runs 1000

These are the runs of `causewire.testing.wire` with failures, in which some of the processes have a
store. They crash between turns, and come back as themselves; without a word in between. Each
time, and at the end, what is in the store must lead to the state that the process has.
`campaigns.crashes` goes through the boundaries of writes instead; nobody is given up there.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

from causewire.protocols import Protocol, describe
from causewire.testing.wire.host import Host
from causewire.testing.wire.judge import Verdict
from causewire.testing.wire.runs import failing, seeded
from causewire.testing.wire.wire import Wire
from causewire.transport import Transport
from causewire.transport.listed_journal import ListedJournal
from causewire.transport.memory import Memory


class DurableWire(Wire):
    """A system in which processes with the names `durable` have a store."""

    def __init__(self, seed: int, durable: set[str], crashes: int, **settings: Any) -> None:
        self.durable = durable
        self.stores: dict[int, tuple[bytes, list[bytes]]] = {}
        """By life of a process: a snapshot, and the records since then."""
        self.opened: Counter[int] = Counter()
        self.seen: Counter[str] = Counter()
        self.chance = Random(f"stores {seed}")
        super().__init__(seed, **settings)
        for _ in range(crashes):
            when = self.chance.uniform(0.0, self.workload.span + 1.0)
            self.at(when, self.crash)

    def _start(self, name: str, index: int, port: int, incarnation: int = 0) -> Host:
        host = super()._start(name, index, port, incarnation)
        if name in self.durable:
            self.stores[host.life] = b"", []
            host.transport = self._open(host, host.transport.me.incarnation)
        return host

    def _open(self, host: Host, incarnation: int) -> Transport[Any]:
        memory = self._memory(host)
        opened = self.opened[host.life]
        self.opened[host.life] += 1
        return Transport(
            host.name,
            incarnation=memory.incarnation or incarnation,
            give_up_after=self.faults.give_up_after,
            read_within=self.faults.read_within,
            entropy=Random(f"{host.life} {opened}").randbytes,
            protocol=self.protocol,
            key=self.key,
            config=self.config,
            memory=memory,
            connection=opened if memory.incarnation else 0,
        )

    def _memory(self, host: Host) -> Memory:
        return Memory(host.name, describe(self.protocol).in_node(), *self.stores[host.life])

    # -- a turn -----------------------------------------------------------------

    def turn(self, host: Host) -> None:
        super().turn(host)
        journal = host.transport.journal
        if journal is None:
            return
        if self.chance.random() < 0.02:
            self.stores[host.life] = journal.snapshot(), []
            self.seen["snapshots"] += 1
        elif batch := journal.take():
            self.stores[host.life][1].append(batch)
        inbox = journal.inbox
        inbox.stored(inbox.unstored)
        if inbox.ready and not self.workload.slow and host.reads_at <= self.now:
            self.at(self.now, lambda: self._wake(host))

    def _take(self, host: Host) -> None:
        journal = host.transport.journal
        if journal is None:
            super()._take(host)
            return
        while journal.inbox.ready:
            self._deliver(host)
            if host.to_send > 0 and self.random.random() < self.workload.replies:
                host.to_send -= 1
                self.send(host, self._destinations(host))
        host.transport.refill()

    def _deliver(self, host: Host) -> None:
        journal = host.transport.journal
        if journal is None:
            super()._deliver(host)
        elif journal.inbox.ready:
            source, _, payload = journal.inbox.ready.popleft()
            number = int(payload.partition(b":")[0])
            self.judge.delivered(host, str(source), number, self.now)
        if journal is not None:
            journal.inbox.done()

    # -- crashes ------------------------------------------------------------------

    def crash(self) -> None:
        """One of the processes with a store crashes, and comes back."""
        able = [h for h in self.hosts.values() if h.up and not h.gone and h.life in self.stores]
        if not able:
            return
        host = self.chance.choice(able)
        self.compare(host)
        self.seen["crashes"] += 1
        former = host.transport
        host.paused_until = 0.0
        host.backlog.clear()
        host.timer_at = None
        host.transport = self._open(host, 0)
        live = {session.name: session for session in host.transport._live.values()}
        for message in self.judge._messages:
            if message.life == host.life:
                message.sessions = tuple(
                    [s if s.over else live.get(s.name, s) for s in message.sessions]
                )
        if former.me.superseded:  # which it learns again
            self.seen["superseded"] += 1
        self._introduce(host)

    def compare(self, host: Host) -> None:
        """Compare what would be read from a store now with what its process knows."""
        memory, transport = self._memory(host), host.transport
        if not isinstance(transport.journal, ListedJournal):
            return  # `campaigns.crashes` compares those of other protocols, at rest
        self.seen["stores compared"] += 1
        complaints = self.verdict.complaints
        if memory.endpoint != transport._carrier.endpoint:  # type: ignore[attr-defined]
            complaints.append(f"the store of {host.name} leads to another state")
        if memory.carried() != transport.journal.carried():
            complaints.append(f"the store of {host.name} leads to other tables")

    def play(self, patience: float = 120.0) -> Verdict:
        verdict = super().play(patience)
        for host in self.hosts.values():
            if host.life in self.stores and host.up and not host.gone:
                self.compare(host)
        return verdict


def one(seed: int, protocol: str | Protocol, failures: bool = True) -> tuple[Verdict, Counter[str]]:
    """Return the verdict on a run that the seed decides, and what was seen."""
    faults, workload, config = seeded(seed)
    if failures:
        faults, workload = failing(seed, faults, workload)
    chance = Random(f"durable {seed}")
    names = [f"p{k}" for k in range(workload.processes)]
    durable = set(chance.sample(names, chance.randint(1, len(names))))
    faults = replace(faults, collisions=0)  # of two with one store, the second does not start
    workload = replace(workload, slow=0.0)
    wire = DurableWire(
        seed,
        durable,
        chance.randint(1, 6),
        protocol=protocol,
        key=bytes(range(32)) if chance.random() < 0.1 else None,
        faults=faults,
        workload=workload,
        config=config,
    )
    verdict = wire.play()
    return verdict, wire.seen


def main() -> int:
    """Run the campaign, and return 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--protocol", default="adaptive")
    chosen = parser.parse_args()
    seen: Counter[str] = Counter()
    bad = 0
    for seed in range(chosen.first, chosen.first + chosen.runs):
        cap = Random(f"cap {seed}").choice((None, 0, 1, 128))
        about = describe(chosen.protocol)
        if about.name == "adaptive":
            about = about.with_options(cap=cap)
        verdict, found = one(seed, about)
        seen += found
        seen["sent"] += verdict.sent
        seen["delivered"] += verdict.delivered
        if verdict.complaints:
            bad += 1
            print(f"seed {seed}, {about.name} cap={cap}: " + "; ".join(verdict.complaints[:4]))
    print(f"{chosen.runs} runs, {bad} of them wrong")
    print(", ".join(f"{what}: {count:,}" for what, count in sorted(seen.items())))
    return 1 if bad or not seen["crashes"] else 0


if __name__ == "__main__":
    sys.exit(main())
