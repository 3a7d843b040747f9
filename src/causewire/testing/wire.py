"""Whole transports in virtual time, bytes and all, on a network that does its worst.

Everything that a node does short of the socket happens here: datagrams are built,
sealed, lost, copied, delayed, damaged, opened, read; timers fire; processes stand
still, move to another address, die and come back. One seed decides everything, so
a run that goes wrong can be repeated:

    python -m causewire.testing.wire --seed 4711

The wire is its own judge. It knows for every message what had happened before it
was sent, and complains (`Verdict`) if a process gets

    a message after another that depends on it      a causal violation
    a message twice                                 a duplicate
    not at all what it should have got              a loss

where all that counts is between processes that stay up, as nobody can promise
anything about the others. At the end nothing may be left in any buffer.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import heappop, heappush
from itertools import count
from random import Random

from ..protocols import describe
from ..transport import NATIVE, Address, Config, Event, Session, Transport

__all__ = ["Faults", "Host", "Verdict", "Wire", "Workload", "play", "seeded"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """What the network and the machines do. Shares are probabilities, times in seconds."""

    loss: float = 0.0
    duplicate: float = 0.0
    corrupt: float = 0.0
    delay: tuple[float, float] = (0.001, 0.002)
    """Each datagram takes its own time; a wide range reorders."""
    partitions: int = 0
    pauses: int = 0
    moves: int = 0
    restarts: int = 0
    lasting: float = 0.5
    """How long a partition or a pause lasts, at the most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What the applications do."""

    processes: int = 4
    messages: int = 20
    """Sent by each process on its own account."""
    replies: float = 0.5
    """Share of deliveries that are answered at once, to somebody."""
    multicast: float = 0.3
    broadcast: bool = False
    """Whether everything goes to everybody."""
    payload: tuple[int, int] = (0, 40)
    pace: float = 0.02
    """Seconds between two sends of a process, on average."""
    slow: float = 0.0
    """Seconds between two looks of an application into its queue; 0: at once."""


@dataclass(slots=True)
class Verdict:
    """How a run went."""

    seed: int
    sent: int = 0
    delivered: int = 0
    datagrams: int = 0
    dropped: int = 0
    """Datagrams that transports dropped, for whatever reason."""
    concurrent: int = 0
    """Deliveries of messages that did not depend on the last one delivered."""
    seconds: float = 0.0
    complaints: list[str] = field(default_factory=list)
    log: list[tuple[object, ...]] = field(default_factory=list)
    """Sends and deliveries in their order, for comparing two runs."""

    @property
    def fine(self) -> bool:
        return not self.complaints


class Message:
    """A message, as the judge knows it."""

    __slots__ = ("arrived", "bit", "life", "mid", "number", "past", "sessions")

    def __init__(self, number: int, life: int, past: int) -> None:
        self.number = number
        self.bit = 1 << number
        self.life = life
        """The life of the process that sent it."""
        self.past = past
        """All that happened before it, as bits."""
        self.mid = 0
        self.sessions: tuple[Session, ...] = ()
        self.arrived: list[int] = []
        """The lives in which it was delivered."""


class Host:
    """A process on the wire: a transport, an application, and what the judge keeps."""

    __slots__ = (
        "address",
        "backlog",
        "delivered",
        "events",
        "knows",
        "life",
        "name",
        "overtaken",
        "paused_until",
        "timer_at",
        "to_send",
        "transport",
        "up",
    )

    def __init__(self, name: str, address: Address, transport: Transport, life: int) -> None:
        self.name = name
        self.address = address
        self.transport = transport
        self.life = life
        self.up = True
        self.paused_until = 0.0
        self.backlog: list[tuple[bytes, Address]] = []
        self.timer_at: float | None = None
        self.to_send = 0
        self.events: list[Event] = []
        self.knows = 0
        """What has happened before whatever it sends now, as bits."""
        self.delivered = 0
        self.overtaken = 0
        """What may not be delivered any more: it comes before something delivered."""


class Wire:
    """Transports joined by a network, and the time."""

    def __init__(
        self,
        seed: int,
        *,
        protocol: str = "csps",
        key: bytes | None = None,
        faults: Faults | None = None,
        workload: Workload | None = None,
        config: Config | None = None,
    ) -> None:
        self.random = Random(seed)
        self.verdict = Verdict(seed)
        self.faults = faults or Faults()
        self.workload = workload or Workload()
        self.protocol = protocol
        self.key = key
        self.config = config or Config()
        self.now = 0.0
        self.on_delivery: Callable[[Host, str, bytes], None] | None = None
        self.slow: dict[tuple[str, str], float] = {}
        """Seconds that datagrams from one process to another take longer."""
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._number = count()
        self._lives = count(1)
        self._ports = count(1)
        self._cut: frozenset[str] = frozenset()
        """One side of the partition, if there is one."""
        self._messages: list[Message] = []
        self._by_address: dict[Address, Host] = {}
        self.hosts: dict[str, Host] = {}
        names = [f"p{k}" for k in range(self.workload.processes)]
        for name in names:
            self.hosts[name] = self._start(name, names, next(self._ports))
        for host in self.hosts.values():
            self._introduce(host)

    # -- time -----------------------------------------------------------------

    def at(self, when: float, what: Callable[[], None]) -> None:
        """Let something happen at a time."""
        heappush(self._heap, (when, next(self._number), what))

    def run(self, until: float) -> None:
        """Let everything happen up to a time."""
        heap = self._heap
        while heap and heap[0][0] <= until:
            self.now, _, what = heappop(heap)
            what()
        self.now = until

    # -- hosts ----------------------------------------------------------------

    def _start(self, name: str, names: Sequence[str], port: int) -> Host:
        life = next(self._lives)
        transport = Transport(
            name,
            incarnation=1000 + life,
            protocol=self.protocol,
            peers=names,
            key=self.key,
            config=self.config,
        )
        host = Host(name, ("127.0.0.1", port), transport, life)
        self._by_address[host.address] = host
        return host

    def _introduce(self, host: Host) -> None:
        for other in self.hosts.values():
            if other is not host:
                host.transport.add_peer(other.name, other.address, self.now)
        self.turn(host)

    def turn(self, host: Host) -> None:
        """The end of a turn of a host's loop: take what was delivered, send what is due."""
        transport = host.transport
        if not self.workload.slow:
            self._take(host)
        for data, address in transport.datagrams_to_send(self.now):
            self._carry(host, data, address)
        host.events += transport.events
        transport.events.clear()
        transport.progressed.clear()
        due = transport.next_timer()
        if due is not None and (host.timer_at is None or due < host.timer_at):
            host.timer_at = due
            self.at(max(due, self.now), lambda: self._timer(host, due))

    def _timer(self, host: Host, due: float) -> None:
        if host.timer_at != due or not host.up:
            return
        if host.paused_until > self.now:
            self.at(host.paused_until, lambda: self._timer(host, due))
            return
        host.timer_at = None
        host.transport.timer_fired(self.now)
        self.turn(host)

    def _take(self, host: Host) -> None:
        """The application takes what there is; it may answer."""
        transport = host.transport
        while True:
            transport.admit()
            if not transport.queue:
                return
            source, _, payload = transport.queue.popleft()
            self._judge(host, source, payload)
            if self.on_delivery is not None:
                self.on_delivery(host, source, payload)
            if host.to_send > 0 and self.random.random() < self.workload.replies:
                host.to_send -= 1
                self.send(host, self._destinations(host))

    # -- the network ----------------------------------------------------------

    def _carry(self, host: Host, data: bytes, address: Address) -> None:
        self.verdict.datagrams += 1
        faults, random = self.faults, self.random
        for _ in range(2 if random.random() < faults.duplicate else 1):
            if random.random() < faults.loss:
                continue
            copy = data
            if random.random() < faults.corrupt:
                copy = self._damaged(data)
            when = self.now + random.uniform(*faults.delay)
            if self.slow:
                target = self._by_address.get(address)
                when += self.slow.get((host.name, target.name if target else ""), 0.0)
            self.at(when, partial(self._arrive, host.name, host.address, copy, address))

    def _damaged(self, data: bytes) -> bytes:
        random = self.random
        copy = bytearray(data)
        for _ in range(random.randint(1, 3)):
            copy[random.randrange(len(copy))] ^= random.randint(1, 255)
        if random.random() < 0.2:
            del copy[random.randrange(len(copy)) :]
        return bytes(copy)

    def _arrive(self, sender: str, source: Address, data: bytes, address: Address) -> None:
        host = self._by_address.get(address)
        if host is None or not host.up:
            return
        if (sender in self._cut) != (host.name in self._cut):
            return
        if host.paused_until > self.now:
            if len(host.backlog) < 64:
                host.backlog.append((data, source))
            return
        host.transport.datagram_received(data, source, self.now)
        self.turn(host)

    # -- faults ---------------------------------------------------------------

    def partition(self, side: Sequence[str], seconds: float) -> None:
        """Cut some processes off from the others for a while."""
        self._cut = frozenset(side)
        self.at(self.now + seconds, self.heal)

    def heal(self) -> None:
        self._cut = frozenset()

    def pause(self, host: Host, seconds: float) -> None:
        """A process stands still; what arrives waits in its socket, up to a point."""
        host.paused_until = max(host.paused_until, self.now + seconds)
        self.at(host.paused_until, lambda: self._resume(host))

    def _resume(self, host: Host) -> None:
        if host.up and host.paused_until <= self.now:
            backlog, host.backlog = host.backlog, []
            for data, source in backlog:
                host.transport.datagram_received(data, source, self.now)
            self.turn(host)

    def move(self, host: Host) -> None:
        """A process gets another address, and nobody is told."""
        del self._by_address[host.address]
        host.address = ("127.0.0.1", next(self._ports))
        self._by_address[host.address] = host

    def restart(self, host: Host) -> Host:
        """A process dies and comes back, at the same address, knowing nothing."""
        host.up = False
        new = self._start(host.name, list(self.hosts), host.address[1])
        new.to_send = host.to_send
        self.hosts[host.name] = new
        self._introduce(new)
        if self.workload.slow:
            self._look(new)
        return new

    # -- the application, and the judge ---------------------------------------

    def _destinations(self, host: Host) -> list[str]:
        others = [name for name in self.hosts if name != host.name]
        if self.workload.broadcast:
            return others
        if self.random.random() < self.workload.multicast:
            return self.random.sample(others, self.random.randint(1, len(others)))
        return [self.random.choice(others)]

    def send(self, host: Host, to: Sequence[str]) -> bool:
        """A causal send, if there is room."""
        if not host.transport.room(to):
            return False
        message = Message(len(self._messages), host.life, host.knows)
        low, high = self.workload.payload
        payload = b"%d:" % message.number + bytes(self.random.randint(low, high))
        message.mid, message.sessions = host.transport.send(to[0] if len(to) == 1 else to, payload)
        self._messages.append(message)
        host.knows |= message.bit
        self.verdict.sent += 1
        self.verdict.log.append(("send", self.now, host.name, message.number, tuple(to)))
        return True

    def _judge(self, host: Host, source: str, payload: bytes) -> None:
        message = self._messages[int(payload.partition(b":")[0])]
        verdict, number = self.verdict, message.number
        verdict.delivered += 1
        verdict.log.append(("deliver", self.now, host.name, number))
        if message.bit & host.delivered:
            verdict.complaints.append(f"{host.name} gets message {number} twice")
        if message.bit & host.overtaken:
            verdict.complaints.append(
                f"{host.name} gets message {number} of {source} after one that depends on it"
            )
        if host.delivered & ~message.past:
            verdict.concurrent += 1
        message.arrived.append(host.life)
        host.delivered |= message.bit
        host.overtaken |= message.past
        host.knows |= message.bit | message.past

    def _look(self, host: Host) -> None:
        """A slow application takes one message at a time."""
        if not host.up:
            return
        if host.paused_until <= self.now and host.transport.queue:
            source, _, payload = host.transport.queue.popleft()
            self._judge(host, source, payload)
            self.turn(host)
        self.at(self.now + self.workload.slow, lambda: self._look(host))

    def _think(self, name: str) -> None:
        """A process sends on its own account."""
        host = self.hosts[name]
        if not host.to_send:
            return
        if host.paused_until <= self.now and self.send(host, self._destinations(host)):
            host.to_send -= 1
            self.turn(host)
        pause = self.random.expovariate(1 / self.workload.pace)
        self.at(self.now + pause, lambda: self._think(name))

    def _directory(self) -> None:
        """What a resolver does in a node: says where the unreachable are by now."""
        for host in self.hosts.values():
            for name in host.transport.unreached():
                host.transport.add_peer(name, self.hosts[name].address, self.now)
            if host.paused_until <= self.now:
                self.turn(host)
        self.at(self.now + 1.0, self._directory)

    # -- a whole run ----------------------------------------------------------

    def play(self, patience: float = 300.0) -> Verdict:
        """Let the applications and the faults happen; then all must come to rest."""
        random, faults, load = self.random, self.faults, self.workload
        span = load.messages * load.pace
        for name, host in self.hosts.items():
            host.to_send = load.messages
            self.at(random.uniform(0, load.pace), partial(self._think, name))
            if load.slow:
                self.at(load.slow, partial(self._look, host))

        def some() -> Host:
            return random.choice(list(self.hosts.values()))

        def cut() -> None:
            names = list(self.hosts)
            side = random.sample(names, random.randint(1, len(names) - 1))
            self.partition(side, random.uniform(0, faults.lasting))

        for times, fault in (
            (faults.partitions, cut),
            (faults.pauses, lambda: self.pause(some(), random.uniform(0, faults.lasting))),
            (faults.moves, lambda: self.move(some())),
            (faults.restarts, lambda: self.restart(some())),
        ):
            for _ in range(times):
                self.at(random.uniform(0, span), fault)  # type: ignore[arg-type]
        if faults.moves:
            self.at(1.0, self._directory)
        step = max(span, 0.5)
        self.run(step)
        while not self._at_rest():
            if self.now > patience:
                self.verdict.complaints.append(f"not at rest after {self.now:.0f} s")
                break
            self.run(self.now + 0.5)
        self.verdict.seconds = self.now
        self._settle_accounts()
        return self.verdict

    def _at_rest(self) -> bool:
        return all(
            host.to_send == 0 and host.transport.idle and not host.transport.queue
            for host in self.hosts.values()
        )

    def _settle_accounts(self) -> None:
        """Who should have got what, and is anything left in a buffer?"""
        complaints = self.verdict.complaints
        lives = {host.life: host for host in self.hosts.values()}
        by_born = {host.transport.incarnation: host.life for host in self.hosts.values()}
        for message in self._messages:
            if message.life not in lives:
                continue
            for session in message.sessions:
                life = by_born.get(session.incarnation)
                if session.over or life is None:
                    continue
                if life not in message.arrived:
                    complaints.append(f"{session.name} never gets message {message.number}")
                elif message.mid > session.confirmed:
                    complaints.append(f"no receipt for message {message.number}")
        for host in self.hosts.values():
            transport = host.transport
            self.verdict.dropped += sum(transport.stats.dropped.values())
            if transport.ledger.messages or transport.ledger.bytes or transport.waiting_bytes:
                complaints.append(f"{host.name} still keeps messages")
            if any(session.inbound.messages for session in transport.live.values()):
                complaints.append(f"{host.name} still has messages that came in")


def seeded(seed: int) -> tuple[Faults, Workload, Config]:
    """Faults and a workload that depend on the seed alone: from calm to terrible."""
    random = Random(f"faults {seed}")
    slow = random.random() < 0.15
    some = random.choice((0, 0, 1, 2))
    faults = Faults(
        loss=random.choice((0.0, 0.02, 0.1, 0.3)),
        duplicate=random.choice((0.0, 0.05, 0.2)),
        corrupt=random.choice((0.0, 0.0, 0.02, 0.1)),
        delay=random.choice(((0.001, 0.001), (0.001, 0.01), (0.0005, 0.08))),
        partitions=random.choice((0, 0, 1, 2)),
        pauses=random.choice((0, 0, 1, 2)),
        moves=some,
        restarts=random.choice((0, 0, 1, 2)),
    )
    workload = Workload(
        processes=random.choice((2, 3, 3, 4)),
        messages=random.choice((3, 6, 12)),
        replies=random.choice((0.0, 0.3, 0.7)),
        multicast=random.choice((0.0, 0.4, 1.0)),
        payload=random.choice(((0, 0), (0, 40), (0, 40), (0, 2000))),
        pace=random.choice((0.002, 0.02)),
        slow=0.01 if slow else 0.0,
    )
    config = Config(
        local_datagram=random.choice((400, 1232, 16384)),
        peer_messages=random.choice((4, 64, 8192)),
        queue_messages=2 if slow else 8192,
        keepalive=2.0,
    )
    return faults, workload, config


def play(seed: int, protocol: str = "csps", key: bytes | None = None) -> Verdict:
    """One run that the seed decides, as far as the protocol can do what it asks for."""
    faults, workload, config = seeded(seed)
    able = describe(protocol)
    if not able.unicast:
        workload = replace(workload, broadcast=True)
    elif not able.multicast:
        workload = replace(workload, multicast=0.0)
    if protocol not in NATIVE:
        faults = replace(faults, restarts=0)
    return Wire(
        seed, protocol=protocol, key=key, faults=faults, workload=workload, config=config
    ).play()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m causewire.testing.wire", description=__doc__)
    parser.add_argument("--protocol", default="csps")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--runs", type=int, default=1, help="how many seeds")
    parser.add_argument("--encrypt", action="store_true")
    args = parser.parse_args(arguments)
    start = time.perf_counter()
    total = Verdict(args.seed)
    bad = 0
    for seed in range(args.seed, args.seed + args.runs):
        verdict = play(seed, args.protocol, b"k" * 32 if args.encrypt else None)
        total = replace(
            total,
            sent=total.sent + verdict.sent,
            delivered=total.delivered + verdict.delivered,
            datagrams=total.datagrams + verdict.datagrams,
            seconds=total.seconds + verdict.seconds,
        )
        if not verdict.fine:
            bad += 1
            print(f"seed {seed}: {'; '.join(verdict.complaints[:3])}", file=sys.stderr)
    took = time.perf_counter() - start
    print(
        f"{args.runs} runs of {args.protocol}, {bad} with complaints; {total.sent} messages, "
        f"{total.delivered} deliveries, {total.datagrams} datagrams, "
        f"{total.seconds:.0f} virtual seconds in {took:.1f} s"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
