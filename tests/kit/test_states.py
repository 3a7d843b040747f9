"""The state for those who join: long ones, ones that cannot be given, and failures half-way."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from causewire.kit import Group, GroupMessage, Joined, JoinFailed, Kit, Left
from causewire.kit.frames import MARK, MalformedError, Reader
from causewire.kit.parts import Lane, Parts, cut
from causewire.node import TransportConfig
from causewire.testing.virtual import VirtualLoop, run

from .helper import PORTS, kit

LIMIT = 4000
SMALL = {"config": TransportConfig(message=LIMIT), "give_up_after": 3.0}


class Log:
    """An application whose state is a list of messages."""

    def __init__(self, state: Any = ()) -> None:
        self.state: Any = list(state)
        self.snapshots = 0
        self.members: list[tuple[type, str]] = []
        self.group: Group
        self.task: asyncio.Task[None]

    def snapshot(self) -> Any:
        self.snapshots += 1
        return self.state

    def restore(self, state: Any) -> None:
        self.state = state

    async def join(self, made: Kit, *seeds: str, **more: Any) -> Group:
        self.group = await made.join(
            "room", seeds, snapshot=self.snapshot, restore=self.restore, **more
        )
        self.task = asyncio.create_task(self.read())
        return self.group

    async def read(self) -> None:
        async for item in self.group:
            if isinstance(item, GroupMessage):
                self.state.append(item.payload)
            elif isinstance(item, Joined | Left):
                self.members.append((type(item), item.member.name))


def small(loop: VirtualLoop, name: str, incarnation: int = 0, **more: Any) -> Any:
    return kit(loop, name, incarnation, codec="json", node_=SMALL, **more)


LONG = [f"{k:0300}" for k in range(100)]
"""A state of some 30 kB."""


def test_a_state_may_be_longer_than_a_message() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with small(loop, "alice") as a, small(loop, "bob") as b, small(loop, "carol") as c:
            logs = [Log(LONG), Log(), Log()]
            rooms = [await logs[0].join(a)]
            rooms.append(await logs[1].join(b, "alice"))
            assert logs[1].state == LONG
            rooms.append(await logs[2].join(c, "bob"))
            assert logs[2].state == LONG
            for room in rooms:
                await room.send(room.me.name)
            await asyncio.sleep(1)
            for log in logs:
                assert log.state[:100] == LONG
                assert sorted(log.state[100:]) == ["alice", "bob", "carol"]

    run(main)


def test_what_a_new_member_may_lack_can_be_longer_than_a_message() -> None:
    """carol has delivered nothing, so all members keep everything; together that is long."""

    async def main(loop: VirtualLoop) -> None:
        async with small(loop, "alice") as a, small(loop, "bob") as b, small(loop, "carol") as c:
            alice, bob, carol = Log(), Log(), Log()
            room = await alice.join(a)
            await carol.join(c, "alice")
            loop.network.fate = lambda x, y, _: [] if PORTS["carol"] in (x[1], y[1]) else [0.001]
            for k in range(10):
                await room.send(f"{k:01000}")
            joining = asyncio.create_task(bob.join(b, "alice"))
            await asyncio.sleep(2)
            loop.network.fate = lambda *_: [0.001]
            await joining
            await asyncio.sleep(2)
            assert len(alice.state) == 10
            assert alice.state == bob.state == carol.state

    run(main)


def raise_error() -> Any:
    raise KeyError("no state today")


@pytest.mark.parametrize(
    ("snapshot", "reason"),
    [
        (raise_error, "KeyError: 'no state today'"),
        (object, "not JSON serializable"),
        (lambda: "x" * 20000, "its state has 20002 bytes, 10000 are allowed"),
    ],
)
def test_a_state_that_cannot_be_given(
    snapshot: Any, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main(loop: VirtualLoop) -> None:
        limit = {"largest_state": 10000}
        async with small(loop, "alice", **limit) as a, small(loop, "bob", **limit) as b:
            alice, bob = Log(), Log()
            alice.snapshot = snapshot  # type: ignore[method-assign]
            room = await alice.join(a)
            with pytest.raises(JoinFailed, match=f"alice refuses: .*{reason}"):
                await bob.join(b, "alice", timeout=5.0)
            errors = [r.getMessage() for r in caplog.records if r.levelname == "ERROR"]
            assert errors
            assert len(errors) < 5  # it is not asked all the time
            assert reason in errors[0]
            await room.send("alice goes on")
            await asyncio.sleep(2)
            assert alice.state == ["alice goes on"]
            assert alice.members[-1] == (Left, "bob")
            alice.snapshot = lambda: alice.state  # type: ignore[method-assign]
            await room.leave()
            await alice.join(a)
            await bob.join(b, "alice", timeout=5.0)
            assert bob.state == ["alice goes on"]

    run(main)


def slow(*_: Any) -> list[float]:
    return [0.3]


def test_a_slow_state_is_asked_for_once() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with small(loop, "alice") as a, small(loop, "bob") as b:
            alice, bob = Log(LONG * 10), Log()
            await alice.join(a)
            await asyncio.sleep(1)
            loop.network.fate = slow
            start = loop.now
            await bob.join(b, "alice", retry=1.5)
            assert loop.now - start > 2.0  # longer than `retry`
            assert bob.state == LONG * 10
            assert alice.snapshots == 1

    run(main)


def test_a_state_does_not_fill_the_send_buffer() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with small(loop, "alice") as a, small(loop, "bob") as b:
            alice, bob = Log(LONG * 10), Log()
            await alice.join(a)
            joining = asyncio.create_task(bob.join(b, "alice", timeout=20.0))
            while not alice.snapshots:
                await asyncio.sleep(0.001)
            loop.network.fate = lambda *_: []
            await asyncio.sleep(1)
            assert a.node.stats()["sent"] < 40  # of about 80 parts
            loop.network.fate = lambda *_: [0.001]
            await joining
            assert bob.state == LONG * 10

    run(main)


def test_a_join_that_is_too_short_for_the_state_says_how_far_it_came() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with small(loop, "alice") as a, small(loop, "bob") as b:
            alice, bob = Log(LONG * 10), Log()
            await alice.join(a)
            loop.network.fate = slow
            with pytest.raises(JoinFailed, match=r"alice has sent \d+ of \d+ bytes of its state"):
                await bob.join(b, "alice", timeout=3.0)
            await asyncio.sleep(5)
            assert alice.members[-1] == (Left, "bob")
            sent = a.node.stats()["sent"]
            assert sent < 100
            await bob.join(b, "alice", timeout=20.0)
            assert bob.state == LONG * 10

    run(main)


def test_the_sponsor_dies_between_two_parts() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with small(loop, "alice") as a, small(loop, "bob") as b, small(loop, "carol") as c:
            alice, bob, carol = Log(LONG * 10), Log(), Log()
            await alice.join(a)
            room = await carol.join(c, "alice")
            await asyncio.sleep(1)
            loop.network.fate = slow
            joining = asyncio.create_task(bob.join(b, "alice", "carol"))
            await asyncio.sleep(2.5)
            assert alice.snapshots == 2
            alice.task.cancel()
            await a.node.close(0, leave=False)
            loop.network.fate = lambda *_: [0.001]
            await room.send("meanwhile")
            await joining
            assert carol.snapshots == 1
            await asyncio.sleep(1)
            assert bob.state == carol.state == [*LONG * 10, "meanwhile"]
            assert [member.name for member in bob.group.members] == ["bob", "carol"]

    run(main)


def test_the_process_that_joins_dies_between_two_parts_and_comes_back() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with small(loop, "alice") as a:
            alice, bob = Log(LONG * 10), Log()
            room = await alice.join(a)
            async with small(loop, "bob") as b:
                loop.network.fate = slow
                joining = asyncio.create_task(bob.join(b, "alice"))
                await asyncio.sleep(2.5)
                joining.cancel()
                await b.node.close(0, leave=False)
            async with small(loop, "bob", 1) as b:
                loop.network.fate = lambda *_: [0.001]
                await room.send("meanwhile")
                await bob.join(b, "alice")
                await asyncio.sleep(1)
                assert bob.state == alice.state == [*LONG * 10, "meanwhile"]

    run(main)


# -- parts ------------------------------------------------------------------------


def add(parts: Parts, source: str, part: bytes, largest: int = 1000) -> bytes | None:
    reader = Reader(part, len(MARK) + 1)
    assert reader.text() == "room"
    return parts.add(source, reader, largest)


def test_parts_that_do_not_continue_what_is_there_are_dropped() -> None:
    data = bytes(range(250))
    one, two, three = cut("room", Lane.LOG, data, 120)
    states = list(cut("room", Lane.STATE, data[::-1], 120))
    parts = Parts()
    assert add(parts, "alice", two) is None
    assert add(parts, "alice", one) is None
    assert add(parts, "bob", one) is None
    assert add(parts, "alice", states[0]) is None
    assert parts.arrived("alice")
    assert not parts.arrived("bob")
    assert add(parts, "alice", three) is None  # the second is missing: all of it is dropped
    assert add(parts, "alice", two) is None
    assert [add(parts, "alice", part) for part in (one, one, two, three)][-1] == data
    assert [add(parts, "alice", part) for part in states[1:]][-1] == data[::-1]
    assert [add(parts, "bob", part) for part in (two, three)][-1] == data
    add(parts, "alice", one)
    parts.drop("alice")
    assert add(parts, "alice", two) is None
    with pytest.raises(MalformedError):
        add(parts, "alice", one, largest=249)
