"""Groups under random joins, leaves, crashes, forgets and state transfers, in virtual time.

    python -m campaigns.groups --runs 50000            # seeds 0 to 49999
    python -m campaigns.groups --runs 50000 --processes 20
    python -m campaigns.groups --seed 17 --runs 1 -v   # one run again, with its story

In runs with odd seeds, applications write their state and position to a disk from time to time,
and come back with it: they get the messages that they missed, or the whole state.

The machine of `causewire.kit` runs unchanged on a network in memory. That network promises less
than the transport does: messages between two processes keep their order, and nothing more, so a
run tries more than a causal network would let happen. A crash loses a random part of what was
under way. Who is gone is learnt at any time, but before anything that was sent by somebody who
knew it. The judge (`Judge`) knows nothing of the machine: it sees what each application got, and
remembers with every message what its sender had got before.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, deque
from collections.abc import Callable
from random import Random
from typing import Any

from causewire.kit.entries import (
    Ask,
    Evicted,
    Frame,
    Joined,
    Left,
    Member,
    Position,
    Posted,
    Refused,
    Sponsor,
    Stranger,
)
from causewire.kit.history import OVERHEAD
from causewire.kit.machine import Machine

from .group_judge import Judge, Replica, Wrong

Key = tuple[str, int]
"""A process and its incarnation."""


class Process:
    """One incarnation of a process, with its application."""

    def __init__(self, name: str, incarnation: int) -> None:
        self.name = name
        self.incarnation = incarnation
        self.term = self.left = 0
        self.machine: Machine | None = None
        self.replica: Replica | None = None
        self.handled = 0
        """What the application has taken of what was delivered, as the judge writes it."""
        self.known: set[Member] = set()
        self.queue: deque[Any] = deque()
        self.gone: set[Key] = set()
        """Obituaries that it knows."""
        self.leaving = False
        self.since: tuple[Position, int] | None = None
        """What it came back with: its position, and what it had handled."""
        self.missed: set[tuple[Member, int]] = set()
        """Messages that it got instead of the state."""

    @property
    def key(self) -> Key:
        return self.name, self.incarnation

    def ask(self) -> Ask:
        assert self.machine is not None
        return Ask(self.machine.me, "", self.left, self.since and self.since[0])

    @property
    def member(self) -> bool:
        return self.machine is not None and self.machine.joined


class World:
    """Processes, the network between them, and chance."""

    def __init__(
        self,
        seed: int,
        size: int,
        make: Callable[[Member], Machine] = Machine,
        returns: bool = False,
    ) -> None:
        self.random = Random(seed)
        self.disks: dict[str, tuple[Position, int]] = {}
        """The position of each application, and what it had handled then."""
        self.disk_random = Random(f"disk {seed}")
        self.writes = self.disk_random.choice((0.02, 0.3)) if returns else 0.0
        self.history = OVERHEAD * self.disk_random.choice((0, 5, 50, 500))
        self.make = make
        self.judge = Judge()
        self.counts: Counter[str] = Counter()
        self.story: list[str] | None = None
        self.links: dict[tuple[Key, Key], deque[tuple[Frame, frozenset[Key]]]] = {}
        self.processes: dict[str, Process | None] = {}
        self.incarnations: dict[str, int] = {}
        self.dead: set[Key] = set()
        """Incarnations that crashed or were given up."""
        self.polite: set[Member] = set()
        """Memberships whose `leave` succeeded while there were others, in a group that was not
        divided: all of their messages must arrive, even if the process crashed later."""
        weights = {
            "deliver": self.random.choice((30, 60, 120)),
            "consume": self.random.choice((3, 30)),
            "post": self.random.choice((3, 20)),
            "join": self.random.choice((2, 8)),
            "tick": self.random.choice((0, 2, 8)),
            "gossip": 2,
            "revive": 1,
            "notice": self.random.choice((0.3, 3)),
            "leave": self.random.choice((0, 0.2, 1)),
            "crash": self.random.choice((0, 0.2, 1)),
            "forget": self.random.choice((0, 0, 0.1, 0.5)),
        }
        self.kinds = list(weights)
        self.weights = list(weights.values())
        for k in range(size):
            self.start(f"p{k:02}")
        first = next(iter(self.alive()))
        self.begin(first).found("")
        first.replica = Replica(0, set())
        self.collect(first)

    def say(self, *words: object) -> None:
        if self.story is not None:
            self.story.append(" ".join(map(str, words)))

    # -- processes ----------------------------------------------------------------

    def alive(self) -> list[Process]:
        return [process for process in self.processes.values() if process is not None]

    def start(self, name: str) -> Process:
        number = self.incarnations[name] = self.incarnations.get(name, 0) + 1
        process = self.processes[name] = Process(name, number)
        return process

    def begin(self, process: Process) -> Machine:
        process.term += 1
        process.replica = None
        process.queue.clear()
        process.leaving = False
        machine = process.machine = self.make(
            Member(process.name, process.incarnation, process.term)
        )
        machine.history.limit = self.history
        for name, incarnation in process.gone:
            machine.gone(name, incarnation)
        if self.writes:
            back = self.disk_random.random() < 0.8
            process.since = self.disks.get(process.name) if back else None
        return machine

    def write(self, process: Process, often: float) -> None:
        """The application writes its state and its position to its disk, or does not."""
        if process.replica is not None and self.disk_random.random() < often:
            assert process.machine is not None
            waiting = [(it.author, it.number) for it in process.queue if isinstance(it, Posted)]
            self.disks[process.name] = process.machine.position(waiting), process.handled

    def crash(self, process: Process) -> None:
        """Stop a process; the network loses the last part of what it has sent to each."""
        self.say("crash", process.key)
        self.dead.add(process.key)
        for (source, _), queue in self.links.items():
            if source == process.key:
                for _ in range(self.random.randrange(len(queue) + 1)):
                    queue.pop()
        self.processes[process.name] = None
        self.counts["crashes"] += 1

    def learn(self, process: Process, key: Key) -> bool:
        """Tell a process that another is gone; return False if it is gone itself by that."""
        if key == process.key:
            self.say(process.key, "learns that it was given up")
            self.dead.add(key)
            self.counts["given up"] += 1
            fresh = self.start(process.name)
            fresh.gone = set(process.gone)
            return False
        if key not in process.gone:
            process.gone.add(key)
            self.dead.add(key)
            self.say(process.key, "learns the end of", key)
            if process.machine is not None:
                process.machine.gone(*key)
                self.collect(process)
        return True

    # -- the network --------------------------------------------------------------

    def send(self, process: Process, to: tuple[Member, ...], frame: Frame) -> None:
        gone = frozenset(process.gone)
        for member in to:
            if member[:2] not in gone and member.name != process.name:
                link = self.links.setdefault((process.key, member[:2]), deque())
                link.append((frame, gone))

    def arrive(self, source: Key, to: Key) -> None:
        """Deliver the next message of a link."""
        frame, gone = self.links[source, to].popleft()
        process = self.processes.get(to[0])
        if process is None or process.key != to or source in process.gone:
            return
        for key in sorted(gone - process.gone):
            if not self.learn(process, key):
                return
        machine = process.machine
        self.say(source, "->", to, frame)
        if isinstance(frame, Ask):
            if machine is not None and machine.joined:
                machine.ask(frame.member, "", frame.left, frame.since)
            else:
                self.send(process, (frame.member,), Refused(frame.member, False))
        elif isinstance(frame, Refused):
            waits = machine is not None and frame.member == machine.me and not machine.joined
            if frame.final and waits:  # nobody else has let it in
                process.machine = None
        elif machine is not None:
            if not machine.joined and getattr(frame, "state", None) is not None:
                process.replica = None
            was = machine.joined
            machine.received(frame)
            if machine.joined and not was:
                self.restore(process, frame)
        elif not isinstance(frame, Stranger | Evicted) and process.term:
            me = Member(process.name, process.incarnation, process.term)
            self.send(process, (Member(*source, 0),), Stranger(me))
        self.collect(process)

    def restore(self, process: Process, welcome: Any) -> None:
        if welcome.missed is not None:
            self.counts["returns by messages"] += 1
            self.counts["messages missed"] += len(welcome.missed)
            assert process.since is not None
            seen, members = process.since[1], list(welcome.view)
        else:
            self.counts["state transfers"] += 1
            self.counts["returns by state"] += process.since is not None
            seen, members = eval(welcome.state)
        process.missed = {(one.author, one.number) for one in welcome.missed or ()}
        process.replica = Replica(seen, {Member(*m) for m in members})
        process.handled = seen
        process.known = set(process.replica.members)

    def collect(self, process: Process) -> None:
        """Take what the machine has put out."""
        machine = process.machine
        if machine is None:
            return
        out, machine.out = machine.out, []
        for to, frame in out:
            self.send(process, to, frame)
        items, machine.items = machine.items, []
        for item in items:
            replica = process.replica
            assert replica is not None
            if isinstance(item, Posted):
                key = item.author, item.number
                if key not in self.judge.numbers:
                    self.judge.posted(replica, *key)
                self.judge.delivered(replica, *key, missed=key in process.missed)
                self.counts["deliveries"] += 1
            elif isinstance(item, Joined | Left):
                self.judge.changed(replica, item.member, isinstance(item, Joined))
            if isinstance(item, Sponsor) and item.welcome.missed is not None:
                self.send(process, (item.welcome.member,), item.welcome)
            else:
                process.queue.append(item)
        if machine.over is not None:
            self.say(process.key, machine.over)
            self.counts[machine.over] += 1
            if machine.over == "left":
                if machine.peers and not self.divided(process, machine):
                    self.polite.add(machine.me)
                process.left = process.term
            if self.writes:
                self.write(process, 0.5)
            process.machine = None
            process.queue.clear()

    def divided(self, process: Process, machine: Machine) -> bool:
        """Return whether a process and a living member take each other for dead.

        The group has branches then, and one branch knows nothing of what the other did.
        """
        return any(
            other.key in process.gone
            or process.key in other.gone
            or other.machine.me in machine.past | machine.dead
            for other in self.alive()
            if other is not process and other.machine is not None and other.member
        )

    def consume(self, process: Process) -> None:
        """The application takes one item."""
        item = process.queue.popleft()
        if isinstance(item, Posted):
            process.handled |= 1 << self.judge.numbers[item.author, item.number]
        elif isinstance(item, Joined):
            process.known.add(item.member)
        elif isinstance(item, Left):
            process.known.discard(item.member)
        elif isinstance(item, Sponsor):
            state = repr((process.handled, [tuple(m) for m in sorted(process.known)])).encode()
            self.send(process, (item.welcome.member,), item.welcome._replace(state=state))
        if self.writes:
            self.write(process, self.writes)

    # -- chance -------------------------------------------------------------------

    def step(self) -> None:
        """Let something happen."""
        process = self.random.choice(self.alive())
        machine = process.machine
        kind = self.random.choices(self.kinds, self.weights)[0]
        if kind == "deliver":
            self.deliver_any()
        elif kind == "consume":
            if process.queue:
                self.consume(process)
        elif kind == "join":
            self.ask_in(process)
        elif kind == "gossip":
            self.gossip(process)
        elif kind == "revive":
            self.revive()
        elif kind == "notice":
            if self.dead:
                self.learn(process, self.random.choice(sorted(self.dead)))
        elif machine is None or not machine.joined:
            if len(self.alive()) > 1 and kind == "crash":
                self.crash(process)
        elif kind == "post":
            if not process.leaving:
                self.counts["messages"] += 1
                machine.post(b"")
                self.collect(process)
        elif kind == "tick":
            machine.tick()
            self.collect(process)
        elif len([other for other in self.alive() if other.member]) > 1:
            if kind == "leave" and not process.leaving:
                process.leaving = True
                machine.leave()
                self.collect(process)
            elif kind == "crash":
                self.crash(process)
            elif kind == "forget":
                self.learn(process, self.random.choice(self.alive()).key)

    def deliver_any(self) -> bool:
        full = [link for link, queue in self.links.items() if queue]
        if not full:
            self.links.clear()
            return False
        self.arrive(*self.random.choice(full))
        return True

    def ask_in(self, process: Process) -> None:
        """Have a process ask some other one to let it in."""
        if process.member:
            return
        machine = process.machine
        if machine is None:
            machine = self.begin(process)
        members = [other for other in self.alive() if other.member] or self.alive()
        seed = self.random.choice(members)
        self.counts["asked"] += 1
        self.send(process, (Member(*seed.key, 0),), process.ask())

    def gossip(self, process: Process) -> None:
        other = self.random.choice(self.alive())
        for key in sorted(other.gone):
            if not self.learn(process, key):
                return

    def revive(self) -> None:
        stopped = [name for name, process in self.processes.items() if process is None]
        if stopped:
            self.start(self.random.choice(stopped))

    # -- the end ------------------------------------------------------------------

    def quiet(self) -> None:
        """Let everybody learn everything, and let everything arrive."""
        for turn in range(60):
            for key in sorted(self.dead):
                for process in self.alive():
                    if process.key != key or turn == 0:
                        self.learn(process, key)
            for process in self.alive():
                if process.machine is not None and not process.member:
                    members = [other for other in self.alive() if other.member]
                    if members:
                        seed = self.random.choice(members)
                        self.send(process, (Member(*seed.key, 0),), process.ask())
                if process.machine is not None:
                    process.machine.tick()
                    self.collect(process)
            for _ in range(200_000):
                busy = self.deliver_any()
                for process in self.alive():
                    while process.queue:
                        self.consume(process)
                        busy = True
                if not busy:
                    break
            else:
                raise Wrong("it never becomes quiet")
            joining = [p for p in self.alive() if p.machine is not None and not p.member]
            if turn > 3 and not joining:
                return
        if any(process.member for process in self.alive()):
            raise Wrong(f"{joining[0].key} is not let in")

    def check(self) -> None:
        """Compare all replicas, and see that nothing is left over."""
        finals = {
            process.machine.me: process.replica
            for process in self.alive()
            if process.machine is not None and process.member and process.replica is not None
        }
        if finals:
            self.judge.compare(finals, self.polite)
        self.counts["members at the end"] += len(finals)


def play(
    seed: int,
    make: Callable[[Member], Machine] = Machine,
    story: bool = False,
    returns: bool = False,
    processes: int | None = None,
) -> World:
    """Play one run, and judge it.

    Args:
        seed: Which run.
        make: Makes the machine of a member.
        story: Whether to print what happened, if it is wrong.
        returns: Whether applications come back with the state that they had.
        processes: How many processes there are; by default the seed decides, from 2 to 20.

    Raises:
        Wrong: A promise was broken.
    """
    random = Random(-seed - 1)
    size = random.choice((2, 3, 3, 4, 5, 8, 20))
    world = World(seed, processes or size, make, returns)
    if story:
        world.story = []
    try:
        for _ in range(random.choice((100, 500, 1500, 3000))):
            world.step()
        world.quiet()
        world.check()
    except Wrong:
        if world.story is not None:
            print("\n".join(world.story), file=sys.stderr)
        raise
    return world


def main() -> int:
    """Play many runs; return 1 if one was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, help="by default 2 to 20, as the seed decides")
    parser.add_argument("-v", "--verbose", action="store_true", help="print the story of a run")
    args = parser.parse_args()
    counts: Counter[str] = Counter()
    wrong = 0
    for seed in range(args.seed, args.seed + args.runs):
        try:
            returns = seed % 2 == 1
            world = play(seed, story=args.verbose, returns=returns, processes=args.processes)
            counts += world.counts
        except Exception as error:
            wrong += 1
            print(f"seed {seed}: {error!r}")
    print(f"{args.runs} runs, {wrong} wrong; " + ", ".join(f"{n} {k}" for k, n in counts.items()))
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
