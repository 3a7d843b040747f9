"""Ten processes, all alive, and one link that is dead for good, in both directions or in one.

The two ends are `p0` and `p1`. Everybody sends to everybody. With `give_up_after` set, the
eight others are themselves again after twice that time and a second: one of the two ends is
given up by the other, returns as a new incarnation, and has to find out by itself that it does not
reach the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import pytest

from causewire.core.errors import CausewireError
from causewire.node import (
    Event,
    Node,
    NodeSuperseded,
    PeerForgotten,
    PeerGone,
    PeerUp,
    Receipt,
)
from causewire.testing.virtual import VirtualLoop, run

pytestmark = pytest.mark.slow

NAMES = tuple(f"p{k}" for k in range(10))
ENDS = frozenset({"p0", "p1"})
GIVE_UP = 1.0
PAUSE = 0.2
"""Seconds between two messages of a process, on average."""
BOUND = 2 * GIVE_UP + 1.0
"""Seconds after which nobody but the two ends notices anything of the dead link."""
PROMPT = 0.2
"""Seconds that a message may take when nothing holds it up."""


class Sent(NamedTuple):
    """A message to one destination."""

    at: float
    source: str
    to: str
    number: int
    receipt: Receipt


class Ten:
    """Ten nodes whose applications send at random, and what became of each message."""

    def __init__(self, loop: VirtualLoop, seed: int) -> None:
        self.loop = loop
        self.random = Random(seed)
        self.nodes: dict[str, Node] = {}
        self.events: dict[str, list[Event]] = {name: [] for name in NAMES}
        self.sent: list[Sent] = []
        self.refused: list[tuple[float, str, str, CausewireError]] = []
        self.got: dict[tuple[str, int], float] = {}
        self.overtaken: list[str] = []
        self._pasts: list[int] = []
        self._knows = dict.fromkeys(NAMES, 0)
        self._behind: dict[str, int] = {}
        """What each incarnation may not deliver any more, as bits."""
        self._tasks: list[asyncio.Task[None]] = []
        self._talking = True

    async def start(self, protocol: str) -> None:
        places = {name: f"127.0.0.1:{k + 1}" for k, name in enumerate(NAMES)}
        for k, name in enumerate(NAMES):
            sock: Any = self.loop.network.socket(k + 1)
            self.nodes[name] = await Node(
                name,
                sock=sock,
                peers={other: place for other, place in places.items() if other != name},
                incarnation=1000 + k,
                protocol=protocol,
                give_up_after=GIVE_UP,
                rejoin=True,
            ).start()
        for name in NAMES:
            for work in (self._watch(name), self._read(name), self._talk(name)):
                self._tasks.append(asyncio.create_task(work))
        for name in ENDS:
            self._tasks.append(asyncio.create_task(self._talk_across(name)))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        for node in self.nodes.values():
            await node.close(0)

    def quiet(self) -> None:
        self._talking = False

    def cut(self, *links: tuple[str, str]) -> None:
        lost = {(NAMES.index(source) + 1, NAMES.index(to) + 1) for source, to in links}
        self.loop.network.fate = lambda source, to, _: (
            [] if (source[1], to[1]) in lost else [self.loop.random.uniform(0.001, 0.005)]
        )

    async def _watch(self, name: str) -> None:
        async for event in self.nodes[name].events():
            self.events[name].append(event)

    async def _talk(self, name: str) -> None:
        others = [other for other in NAMES if other != name]
        while self._talking:
            await asyncio.sleep(self.random.expovariate(1 / PAUSE))
            self._send(name, self.random.sample(others, self.random.choice((1, 1, 2))))

    async def _talk_across(self, name: str) -> None:
        """Use the link often, as the times count from the first message that it loses."""
        while self._talking:
            await asyncio.sleep(PAUSE / 2)
            self._send(name, list(ENDS - {name}))

    def _send(self, name: str, to: list[str]) -> None:
        number = len(self._pasts)
        try:
            receipt = self.nodes[name].send_nowait(to, b"%d" % number)
        except CausewireError as error:
            self.refused += [(self.loop.now, name, other, error) for other in to]
            return
        self.sent += [Sent(self.loop.now, name, other, number, receipt) for other in to]
        self._pasts.append(self._knows[name])
        self._knows[name] |= 1 << number

    async def _read(self, name: str) -> None:
        node = self.nodes[name]
        async for message in node:
            number = int(message.payload)
            assert (name, number) not in self.got
            self.got[name, number] = self.loop.now
            behind = self._behind.get(node.label, 0)
            if behind >> number & 1:
                self.overtaken.append(f"{node.label} got {number} too late")
            self._behind[node.label] = behind | self._pasts[number]
            self._knows[name] |= self._pasts[number] | 1 << number

    def those(self, between: Callable[[str, str], bool], since: float = 0.0) -> list[Sent]:
        """The messages between certain processes that were sent since a time."""
        return [s for s in self.sent if between(s.source, s.to) and s.at >= since]

    def delays(self, messages: list[Sent]) -> list[float]:
        return [self.got[s.to, s.number] - s.at for s in messages]


def third(source: str, to: str) -> bool:
    return source not in ENDS and to not in ENDS


def outward(source: str, to: str) -> bool:
    return (source in ENDS) != (to in ENDS)


def across(source: str, to: str) -> bool:
    return source in ENDS and to in ENDS


@pytest.mark.parametrize("protocol", ["csps", "sps", "adaptive"])
@pytest.mark.parametrize("directions", [2, 1])
@pytest.mark.parametrize("seed", range(2))
def test_one_link_of_ten_processes(protocol: str, directions: int, seed: int) -> None:
    async def main(loop: VirtualLoop) -> None:
        ten = Ten(loop, seed)
        await ten.start(protocol)
        await asyncio.sleep(2)
        cut_at = loop.now
        dead = [("p0", "p1"), ("p1", "p0")][:directions]
        ten.cut(*dead)
        await asyncio.sleep(BOUND + 3)
        again = cut_at + BOUND

        # Between third parties nothing is lost; it is late for a while at most, and under
        # adaptive not even that.
        ten.quiet()
        await asyncio.sleep(2)
        everything = ten.those(third)
        assert all((s.to, s.number) in ten.got for s in everything)
        late = [s for s in everything if ten.got[s.to, s.number] > s.at + PROMPT]
        assert all(ten.got[s.to, s.number] < again for s in late)
        assert bool(late) == (protocol != "adaptive")

        # Between a third party and an end, what was sent to or by a former incarnation may
        # have failed, and its receipt says so. After the bound all is as before.
        for s in ten.those(outward):
            assert ((s.to, s.number) in ten.got) or (s.to in s.receipt.failed)
        assert ten.delays(ten.those(outward, again))
        assert max(ten.delays(ten.those(outward, again))) < PROMPT

        # The two ends: each message is delivered or fails, and later ones are refused.
        assert not ten.those(across, again)
        for s in ten.those(across):
            assert ((s.to, s.number) in ten.got) or (s.to in s.receipt.failed)
        refused = [error for at, a, b, error in ten.refused if at > again and across(a, b)]
        assert refused
        assert all(isinstance(error, PeerGone) for error in refused)

        # One end is given up and comes back; nobody else is.
        told = {name: [type(event) for event in ten.events[name]] for name in NAMES}
        assert sum(NodeSuperseded in told[name] for name in ENDS) >= 1
        for name in NAMES[2:]:
            assert NodeSuperseded not in told[name]
            forgotten = {e.name for e in ten.events[name] if isinstance(e, PeerForgotten)}
            assert forgotten <= ENDS
        assert not ten.overtaken

        # When the link is repaired, the two find each other.
        before = {name: len(ten.events[name]) for name in ENDS}
        ten.cut()
        await asyncio.sleep(40)
        for name, other in (("p0", "p1"), ("p1", "p0")):
            assert PeerUp(other) in ten.events[name][before[name] :]
            await (await ten.nodes[name].send(other, b"0")).delivered()
        await ten.stop()

    run(main, seed)
