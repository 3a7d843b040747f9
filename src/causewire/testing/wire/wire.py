"""Transports, joined by the simulator's network and driven by its clock.

The simulator schedules, delays, loses, copies and cuts. What it does not know is here:
bytes that get damaged, addresses, timers, and processes that stop, move and die.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from random import Random
from typing import Any

from ...protocols import DEFAULT, Protocol
from ...sim import Fault
from ...sim.faults import Timeline
from ...sim.links import Links
from ...sim.scheduler import ARRIVAL, FAULT, Scheduler
from ...transport import (
    Accepted,
    Address,
    Confirmed,
    Delivered,
    Handled,
    MessageWithdrawn,
    NodeCutOff,
    NodeRenumbered,
    NodeSuperseded,
    PeerGone,
    Room,
    Superseded,
    Transport,
    TransportConfig,
    UnknownPeer,
)
from .host import Host
from .judge import Judge, Verdict
from .scenes import Scene, chain, orphan
from .settings import Faults, WireWorkload, nanoseconds
from .strangers import Strangers, damaged, fill_disk

__all__ = ["Wire"]

SOCKET = 64
"""Datagrams that wait for a process that stands still."""


class Wire:
    """A whole system; `timeline` has faults of the simulator, added to those that are drawn."""

    def __init__(
        self,
        seed: int,
        *,
        protocol: str | Protocol = DEFAULT,
        key: bytes | None = None,
        faults: Faults | None = None,
        workload: WireWorkload | None = None,
        config: TransportConfig | None = None,
        timeline: Sequence[Fault] = (),
    ) -> None:
        self.random = Random(seed)
        self.faults = faults = faults or Faults()
        self.judge = Judge(seed, faults.resolver)
        self.verdict = self.judge.verdict
        self.workload = workload or WireWorkload()
        self.protocol = protocol
        self.key = key
        self.config = config or TransportConfig()
        self._scheduler = Scheduler()
        self._lives = count(1)
        self._ports = count(1)
        self.owners: dict[Address, str] = {}
        """Who has an address, or had it last."""
        self.hosts: dict[str, Host] = {}
        self._rivals: dict[Address, Host] = {}
        """Living processes whose name another one has taken, by address."""
        names = [f"p{k}" for k in range(self.workload.processes)]
        coming = [*timeline, *self.faults.cuts(names, self.workload.span, self.random)]
        self._scenes: list[tuple[float, Scene]] = []
        """Scenes, and when they may begin."""
        for times, scene, actors in ((faults.orphans, orphan, 3), (faults.chains, chain, 4)):
            for _ in range(times if len(names) >= actors else 0):
                begin = self.random.uniform(0.05, self.workload.span + 0.3)
                steps = scene(self, *self.random.sample(names, actors))
                self._scenes.append((begin, Scene(self, steps)))
        self._held: dict[tuple[str, str], list[tuple[Any, Any, Any, int]]] = {}
        """Datagrams that wait on a link until it is released, by its two ends."""
        self.lossy: dict[tuple[str, str], float] = {}
        """Links that lose every other datagram, and until when."""
        self._timeline = Timeline(coming, names)
        self._links = Links(
            self.faults.network(),
            False,
            self._timeline,
            names,
            self._scheduler,
            self.random.random,
        )
        self._carry: Callable[[Any, Any, Any, int, int], int] = self._links.carry
        """Packets are datagrams here, each with the address that it is for and comes from."""
        for fault in coming:
            self._scheduler.at(fault.at, FAULT, fault)
        self._disks = Random(f"disks {seed}")
        self.strangers: Strangers | None = None
        for index, name in enumerate(names):
            self.hosts[name] = self._start(name, index, next(self._ports))
        if faults.floods or faults.diversions or faults.misfit or faults.absent:
            self.strangers = Strangers(self, seed, faults)
        for host in self.hosts.values():
            self._introduce(host)

    # -- time -----------------------------------------------------------------

    @property
    def now(self) -> float:
        """Seconds, as transports have them."""
        return self._scheduler.now / 1e9

    def at(self, when: float, what: Callable[[], object]) -> None:
        """Let something happen at a time."""
        self._scheduler.at(max(nanoseconds(when), self._scheduler.now), what)

    def run(self, until: float) -> None:
        """Let everything happen up to a time."""
        reached: list[bool] = []
        self.at(until, lambda: reached.append(True))
        for _, _, what, a, b, c, d in self._scheduler:
            if what is ARRIVAL:
                self._arrive(a, b, c, d)
            elif what is FAULT:
                for arrival in self._links.strike(a, self._timeline.apply(a)):
                    self._arrive(*arrival)
            else:
                what()
            self.verdict.lost = self._links.lost
            self._links.dropped.clear()
            if reached:
                break

    # -- hosts ----------------------------------------------------------------

    def _start(self, name: str, index: int, port: int, incarnation: int = 0) -> Host:
        life = next(self._lives)
        transport: Transport[Accepted] = Transport(
            name,
            incarnation=incarnation or life << 20 | self.random.getrandbits(20),
            give_up_after=self.faults.give_up_after,
            read_within=self.faults.read_within,
            entropy=Random(life).randbytes,
            protocol=self.protocol,
            key=self.key,
            config=self.config,
        )
        host = Host(name, index, self._address(port), transport, life)
        self.judge.incarnations[name, transport.me.incarnation] = host
        self.owners[host.address] = name
        if self._disks.random() < self.faults.full_disks:
            fill_disk(host, self._disks.randrange(200))
        return host

    def _address(self, port: int) -> Address:
        return "192.0.2.1" if self.faults.remote else "127.0.0.1", port

    def _introduce(self, host: Host) -> None:
        for other in self.hosts.values():
            if other.name != host.name and not other.gone:
                host.transport.add_peer(other.name, other.address, self.now)
        self.turn(host)

    def turn(self, host: Host) -> None:
        """The end of a turn of a host's loop: take what was delivered, send what is due."""
        transport = host.transport
        if not self.workload.slow and host.reads_at <= self.now:
            self._take(host)
        for data, address in transport.datagrams_to_send(self.now):
            self.verdict.datagrams += 1
            if self.strangers is not None and self.strangers.sees(host, data, address):
                continue
            target = self.hosts[self.owners[address]]
            self._carry(host, target, (data, host.address, address), len(data), 0)
        while (event := transport.next_event()) is not None:
            if not isinstance(event, Delivered | Confirmed | Handled | MessageWithdrawn | Room):
                host.events.append(event)
                if self.strangers is not None:
                    self.strangers.notice(host, event)
                if isinstance(event, NodeRenumbered):
                    self.judge.incarnations[host.name, event.incarnation] = host
                if isinstance(event, NodeSuperseded | NodeCutOff):
                    later = self.random.uniform(0.0, 2.0) if transport.me.unread else 0.0
                    self.at(self.now + later, lambda: self._superseded(host))
        if transport.messages and not self.workload.slow and host.reads_at <= self.now:
            self.at(self.now, lambda: self._wake(host))
        due = transport.next_timer()
        if due is not None and (host.timer_at is None or due < host.timer_at):
            host.timer_at = due
            self.at(due, lambda: self._timer(host, due))

    def _wake(self, host: Host) -> None:
        """The application finds messages that came at the end of a turn."""
        if host.up and host.paused_until <= self.now and host.transport.messages:
            self.turn(host)

    def _timer(self, host: Host, due: float) -> None:
        if host.timer_at != due or not host.up:
            return
        if host.paused_until > self.now:
            self.at(host.paused_until, lambda: self._timer(host, due))
            return
        host.timer_at = None
        host.transport.timer_fired(max(self.now, due))
        self.turn(host)

    # -- the network ----------------------------------------------------------

    def _arrive(self, sender: Any, target: Any, packet: Any, _: int) -> None:
        """A datagram is there: if its receiver still is."""
        if not self._links.admits(sender, target, packet, 0):
            return
        link = sender.name, target.name
        if link in self._held:
            self._held[link].append((sender, target, packet, 0))
            return
        if self.lossy.get(link, 0.0) > self.now and self.random.random() < 0.5:
            return
        data, source, address = packet
        if len(data) > self.faults.narrow > 0 and self.now >= self.faults.narrow_from:
            return
        host = self._rivals.get(address) or self.hosts[target.name]
        if host.address != address or not host.up:
            return
        if self.faults.corrupt and self.random.random() < self.faults.corrupt:
            data = damaged(data, self.random)
        self._receive(host, data, source)

    def _receive(self, host: Host, data: bytes, source: Address) -> None:
        if host.paused_until > self.now:
            if len(host.backlog) < SOCKET:
                host.backlog.append((data, source))
            return
        host.transport.datagram_received(data, source, self.now)
        self.turn(host)

    def intrude(
        self, name: str, data: bytes, source: Address, address: Address | None = None
    ) -> None:
        """A datagram of a stranger arrives at a process, if that has the address."""
        host = self._rivals.get(address) if address is not None else None
        host = host or self.hosts[name]
        if host.up and address in (None, host.address):
            self._receive(host, data, source)

    def hold(self, source: str, target: str) -> None:
        """Let nothing arrive on a link until it is released."""
        self._held.setdefault((source, target), [])

    def release(self, source: str, target: str) -> None:
        """Let everything arrive that was held on a link."""
        for arrival in self._held.pop((source, target), ()):
            self._arrive(*arrival)

    # -- faults ---------------------------------------------------------------

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

    def deafen(self, host: Host, seconds: float) -> None:
        """An application reads nothing for a while."""
        host.reads_at = max(host.reads_at, self.now + seconds)
        self.at(host.reads_at, lambda: self._wake(host))

    def move(self, host: Host) -> None:
        """A process gets another address, without an announcement."""
        host.address = self._address(next(self._ports))
        self.owners[host.address] = host.name

    def restart(self, host: Host, incarnation: int = 0) -> Host:
        """A process dies and comes back, at the same address, knowing nothing."""
        if not host.up or host.gone:
            return host
        host.up = False
        return self._replace(host, host.address[1], incarnation)

    def _replace(self, host: Host, port: int, incarnation: int) -> Host:
        new = self._start(host.name, host.index, port, incarnation)
        new.to_send = host.to_send
        self.hosts[host.name] = new
        self._introduce(new)
        if self.workload.slow:
            self._look(new)
        return new

    def set_clock_back(self, host: Host) -> None:
        """A process restarts, and its clock is behind: its number is lower than before."""
        former = host.transport.me.incarnation
        self.restart(host, max(1, former - self.random.randint(1, former)))

    def collide(self, host: Host) -> None:
        """A second process with the same name starts elsewhere, while the first one lives."""
        if host.up and not host.gone:
            self._rivals[host.address] = host
            host.to_send = 0
            self._replace(host, next(self._ports), self.random.choice((0, 5)))

    def _superseded(self, host: Host) -> None:
        """A process learns that it was given up: it comes back as a new incarnation."""
        if self.hosts[host.name] is host:
            floor = host.transport.me.superseded
            self.restart(host, max(floor + 2 + self.random.getrandbits(20), host.life + 1 << 20))
        else:
            host.up = False

    def forget(self, host: Host) -> None:
        """A process gives up another one, most likely one that it waits for."""
        peers = host.transport.status().peers
        waits = [name for name, peer in peers.items() if peer.messages]
        names = waits if waits and self.random.random() < 0.8 else list(peers)
        if host.up and not host.gone and names:
            self.give_up(host, self.random.choice(names))

    def give_up(self, host: Host, name: str) -> None:
        """Let a process give up another one, if it can."""
        able = host.up and not host.gone and not host.transport.me.superseded
        if able and name in host.transport.status().peers:
            host.transport.forget(name, self.now)
            self.turn(host)

    def betray(self) -> None:
        """A process with messages under way dies, or is given up by somebody it wrote to."""
        owing = {
            host.name: [
                name
                for name, peer in host.transport.status().peers.items()
                if peer.messages and name in self.hosts
            ]
            for host in self.hosts.values()
            if host.up and not host.gone
        }
        names = [name for name, owed in owing.items() if owed]
        if not names:
            return
        victim = self.hosts[self.random.choice(names)]
        others = [name for name in owing if name != victim.name and name not in owing[victim.name]]
        if self.random.random() < 0.4:
            self.restart(victim)
            return
        # Whoever has everything from it will not wait for those who have not.
        host = self.hosts[self.random.choice(others or owing[victim.name])]
        self.give_up(host, victim.name)

    def leave(self, host: Host) -> None:
        """A process leaves properly; a second later it is gone."""
        living = [other for other in self.hosts.values() if not other.gone]
        if len(living) > 2 and host.up and not host.gone:
            host.gone = True
            host.to_send = 0
            host.transport.close()
            self.turn(host)
            self.at(self.now + 1.0, lambda: setattr(host, "up", False))

    # -- applications ---------------------------------------------------------

    def send(self, host: Host, to: Sequence[str]) -> bool:
        """A causal send, if there is room."""
        message = self.judge.announce(host)
        low, high = self.workload.payload
        payload = b"%d:" % message.number + bytes(self.random.randint(low, high))
        try:
            accepted = host.transport.send(to[0] if len(to) == 1 else to, payload)
        except (PeerGone, Superseded, UnknownPeer):
            return True  # the application got an error, and gives the message up
        if accepted is None:
            return False
        message.mid, message.sessions = accepted.mid, accepted.sessions
        self.judge.sent(message, host, to, self.now)
        return True

    def _destinations(self, host: Host) -> list[str]:
        others = [
            name for name, other in self.hosts.items() if name != host.name and not other.gone
        ]
        if self.workload.broadcast:
            return others
        if self.random.random() < self.workload.multicast:
            return self.random.sample(others, self.random.randint(1, len(others)))
        return [self.random.choice(others)]

    def _take(self, host: Host) -> None:
        """The application takes what there is; it may answer."""
        transport = host.transport
        while True:
            transport.refill()
            if not transport.messages:
                return
            self._deliver(host)
            if host.to_send > 0 and self.random.random() < self.workload.replies:
                host.to_send -= 1
                self.send(host, self._destinations(host))

    def _deliver(self, host: Host) -> None:
        source, _, payload = host.transport.messages.popleft()
        self.judge.delivered(host, source, int(payload.partition(b":")[0]), self.now)

    def _look(self, host: Host) -> None:
        """A slow application takes one message at a time."""
        if not host.up:
            return
        if max(host.paused_until, host.reads_at) <= self.now and host.transport.messages:
            self._deliver(host)
            self.turn(host)
        self.at(self.now + self.workload.slow, lambda: self._look(host))

    def _think(self, name: str) -> None:
        """A process sends on its own account."""
        host = self.hosts[name]
        if not host.to_send or host.gone:
            return
        if host.paused_until <= self.now and self.send(host, self._destinations(host)):
            host.to_send -= 1
            self.turn(host)
        pause = self.random.expovariate(1 / self.workload.pace)
        self.at(self.now + pause, lambda: self._think(name))

    def _directory(self) -> None:
        """What a resolver does in a node: says where the unreachable are by now."""
        for host in self.hosts.values():
            for name, peer in host.transport.status().peers.items():
                if peer.up or name not in self.hosts or self.hosts[name].gone:
                    continue
                host.transport.add_peer(name, self.hosts[name].address, self.now)
            if host.paused_until <= self.now:
                self.turn(host)
        self.at(self.now + 1.0, self._directory)

    # -- a whole run ----------------------------------------------------------

    def play(self, patience: float = 120.0) -> Verdict:
        """Let the applications and the faults happen; then all must come to rest.

        Liveness is judged as well: everything between living processes must have arrived,
        and nothing may wait for anything, `patience` virtual seconds after the last fault.
        """
        random, faults, load = self.random, self.faults, self.workload
        for host in self.hosts.values():
            host.to_send = load.messages
            self.at(random.uniform(0, load.pace), lambda name=host.name: self._think(name))  # type: ignore[misc]
            if load.slow:
                self.at(load.slow, lambda host=host: self._look(host))  # type: ignore[misc]

        def some() -> Host:
            return random.choice(list(self.hosts.values()))

        happenings: tuple[tuple[int, Callable[[], object]], ...] = (
            (faults.pauses, lambda: self.pause(some(), random.uniform(0, faults.lasting))),
            (faults.moves, lambda: self.move(some())),
            (faults.restarts, lambda: self.restart(some())),
            (faults.forgets, lambda: self.forget(some())),
            (faults.betrayals, self.betray),
            (faults.leaves, lambda: self.leave(some())),
            (faults.clocks_set_back, lambda: self.set_clock_back(some())),
            (faults.collisions, lambda: self.collide(some())),
            (faults.unread, lambda: self.deafen(some(), random.uniform(0, faults.lasting))),
        )
        for times, happening in happenings:
            for _ in range(times):
                self.at(random.uniform(0, load.span), happening)
        for begin, scene in self._scenes:
            self.at(begin, scene.play)
        if faults.resolver and (faults.moves or faults.collisions):
            self.at(1.0, self._directory)
        self.run(max(load.span, 0.5))
        last = self.now + faults.lasting
        while not (self._at_rest() and self.judge.content(self.hosts.values())):
            if self.now > last + patience:
                self.verdict.complaints.append(f"not at rest after {self.now:.0f} s")
                break
            self.run(self.now + 0.5)
        return self.judge.settle(self.hosts.values(), self.now)

    def _at_rest(self) -> bool:
        """Nobody has anything to do, and what the dead left behind is cleared away as well."""
        transports = [host.transport for host in self.hosts.values() if not host.gone]
        if any(host.to_send for host in self.hosts.values()):
            return False
        return all(scene.over for _, scene in self._scenes) and all(
            transport.idle and not transport.messages and not transport.status().waiting
            for transport in transports
        )
