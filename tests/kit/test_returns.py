"""Replicas that come back with the state that they had, and get only what they missed."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from campaigns.returns import bytes_to_return
from causewire.kit import Group, GroupMessage, Kit, KitError, Presence
from causewire.kit.entries import Ask, Member, Missed, Position, Welcome
from causewire.kit.frames import MalformedError, Reader
from causewire.kit.history import OVERHEAD, History
from causewire.kit.wire import get_frame, get_position, put_frame, put_position
from causewire.testing.disk import Disk, DiskStore
from causewire.testing.virtual import VirtualLoop, run

from .helper import PORTS, kit

A, B = Member("a", 1, 1), Member("b", 1, 1)


class Log:
    """An application that keeps its state, a list of messages, with its position."""

    def __init__(self, state: Any = None, position: bytes | None = None) -> None:
        self.state: list[Any] = list(state or [])
        self.position = position
        self.restored = 0
        self.group: Group
        self.task: asyncio.Task[None]

    def restore(self, state: list[Any]) -> None:
        self.state = state
        self.restored += 1

    async def join(self, made: Kit, *seeds: str) -> Group:
        self.group = await made.join(
            "room",
            seeds,
            snapshot=lambda: self.state,
            restore=self.restore,
            since=lambda: self.position,
        )
        self.task = asyncio.create_task(self.read())
        return self.group

    async def read(self) -> None:
        async for item in self.group:
            if isinstance(item, GroupMessage):
                self.state.append(item.payload)
            self.position = self.group.position


async def crash(log: Log, made: Kit) -> None:
    """End a process that says nothing to the others."""
    log.task.cancel()
    await made.node.close(0, leave=False)


def come_back(history: int, lost: bool = False, while_away: int = 3) -> Log:
    """Have bob crash, miss some messages, and come back; return bob's application."""

    async def main(loop: VirtualLoop) -> Log:
        settings: dict[str, Any] = {"codec": "json", "history": history}
        alice, bob = Log(), Log()
        async with AsyncExitStack() as stack, kit(loop, "alice", **settings) as a:
            b = await stack.enter_async_context(kit(loop, "bob", **settings))
            room = await alice.join(a)
            await room.send("before bob")
            theirs = await bob.join(b, "alice")
            await theirs.send("from bob")
            await room.send("from alice")
            await asyncio.sleep(1)
            if lost:
                loop.network.fate = lambda *_: []
                await theirs.send("nobody gets this")
                await asyncio.sleep(0.1)
            await crash(bob, b)
            loop.network.fate = lambda *_: [0.001]
            for k in range(while_away):
                await room.send(k)
            back = Log(bob.state, bob.position)
            async with kit(loop, "bob", 1, **settings) as b:
                theirs = await back.join(b, "alice")
                await theirs.send("back")
                await room.send("welcome")
                await asyncio.sleep(1)
                assert sorted(map(str, back.state)) == sorted(map(str, alice.state))
                assert len(back.state) == 5 + while_away
                assert theirs.members == room.members
        return back

    return run(main)


def test_a_replica_that_comes_back_gets_the_messages_that_it_missed() -> None:
    assert come_back(1 << 20).restored == 0
    assert come_back(1 << 20, while_away=0).restored == 0


def test_it_gets_the_whole_state_if_the_others_do_not_have_all_of_these_messages() -> None:
    assert come_back(history=2 * OVERHEAD).restored == 1
    assert come_back(history=0).restored == 1


def test_it_gets_the_whole_state_if_it_has_something_that_the_group_has_lost() -> None:
    assert come_back(1 << 20, lost=True).restored == 1


class Stayer(Log):
    """The same application, with a place that is taken again."""

    def __init__(self, made: Kit, names: list[str]) -> None:
        super().__init__()
        self.room: Presence = made.stay(
            "room",
            names,
            snapshot=lambda: self.state,
            restore=self.restore,
            since=lambda: self.room.position,
        )
        self.task = asyncio.create_task(self.read())

    async def read(self) -> None:
        async for item in self.room:
            if isinstance(item, GroupMessage):
                self.state.append(item.payload)


def test_a_place_is_taken_again_without_the_whole_state() -> None:
    """bob is cut off and given up; his state is still in memory."""

    async def main(loop: VirtualLoop) -> None:
        names = ["alice", "bob", "carol"]
        node: dict[str, Any] = {"rejoin": True, "give_up_after": 1.0}
        async with AsyncExitStack() as stack:
            logs = {}
            for name in names:
                made = kit(loop, name, codec="json", node_=node)
                logs[name] = Stayer(await stack.enter_async_context(made), names)
            await asyncio.sleep(5)
            alice, bob = logs["alice"], logs["bob"]
            before = bob.restored
            port = PORTS["bob"]
            loop.network.fate = lambda x, y, _: [] if port in (x[1], y[1]) else [0.001]
            await asyncio.sleep(5)
            assert not bob.room.members
            await alice.room.send("bob misses this")
            await asyncio.sleep(1)
            loop.network.fate = lambda *_: [0.001]
            await asyncio.sleep(10)
            assert bob.state == alice.state == ["bob misses this"]
            assert bob.restored == before
            for log in logs.values():
                log.task.cancel()

    run(main)


def test_a_process_with_a_store_comes_back_as_another_membership() -> None:
    """It is the same incarnation, and may have numbered messages that are not in the store."""

    async def main(loop: VirtualLoop) -> None:
        disk = Disk()
        alice, bob = Log(), Log()
        async with AsyncExitStack() as stack, kit(loop, "alice", codec="json") as a:
            node = {"store": DiskStore(disk)}
            b = await stack.enter_async_context(kit(loop, "bob", codec="json", node_=node))
            room = await alice.join(a)
            first = await bob.join(b, "alice")
            await first.send("one")
            await asyncio.sleep(1)
            await crash(bob, b)
            await room.send("two")
            back = Log(bob.state, bob.position)
            node = {"store": DiskStore(disk)}
            async with kit(loop, "bob", codec="json", node_=node) as b:
                second = await back.join(b, "alice")
                assert second.me.incarnation == first.me.incarnation
                assert second.me.term == first.me.term + 1
                await asyncio.sleep(1)
                assert back.state == alice.state == ["one", "two"]
                assert back.restored == 0
                assert room.members == second.members

    run(main)


def test_the_position_of_another_group_of_the_same_name_does_not_count() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice", codec="json") as a, kit(loop, "bob", codec="json") as b:
            first = Log()
            room = await first.join(a)
            await room.send("of the first group")
            await asyncio.sleep(1)
            second = Log(["of the second group"])
            await second.join(b)
            assert first.position is not None
            await room.leave()
            back = Log(first.state, first.position)
            await back.join(a, "bob")
            assert back.restored == 1
            assert back.state == ["of the second group"]

    run(main)


@pytest.mark.parametrize("data", [b"no position", "text", b"\xcaP\x01\x05ab"])
def test_something_else_is_not_a_position(data: Any) -> None:
    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice") as a:
            with pytest.raises(KitError, match="not a position"):
                await a.join("room", since=lambda: data)

    run(main)


def test_messages_that_the_application_has_not_taken_are_not_in_its_position() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice", codec="json") as a:
            room = await a.join("room")
            for k in range(3):
                await room.send(k)
            items = aiter(room)
            counts = []
            async for item in items:
                counts.append(get_position(room.position).cut[room.me])
                if isinstance(item, GroupMessage) and item.payload == 2:
                    break
            assert counts == [1, 2, 3, 4]  # the first one is the entry that began the group

    run(main)


Steps = st.lists(st.sampled_from([A, B]), max_size=30)


@given(Steps, st.integers(0, 30), st.integers(0, 30), st.integers(0, 12), st.data())
def test_what_was_missed_is_exact_or_nothing(
    order: list[Member], begun: int, kept: int, limit: int, data: st.DataObject
) -> None:
    """Whatever a member has dropped, and wherever it began: all messages, each once, or None."""
    counts = {A: 0, B: 0}
    messages = []
    for author in order:
        counts[author] += 1
        messages.append(Missed(author, counts[author], b""))
    begun, kept = min(begun, len(messages)), min(kept, begun, len(messages))
    history = History(limit * OVERHEAD)
    start = {author: sum(m.author == author for m in messages[:begun]) for author in (A, B)}
    history.begin(start, messages[begun - kept : begun])
    for message in messages[begun:]:
        history.add(message)
    cut = {author: data.draw(st.integers(0, counts[author] + 1)) for author in (A, B)}
    missing = tuple([m for m in messages if m.number > cut[m.author]])
    found = history.since(cut, counts)
    assert found in (None, missing)
    has_more = any(cut[author] > counts[author] for author in cut)
    there = len(messages) - begun + kept
    last = messages[len(messages) - min(there, limit) :]
    assert (found is not None) == (not has_more and set(missing) <= set(last))


def test_positions_and_what_was_missed_travel() -> None:
    position = Position(b"12345678", {A: 5, B: 300})
    assert get_position(put_position(position)) == position
    ask = Ask(A, "host:1", 2, position)
    missed = (Missed(A, 6, b"six"), Missed(B, 301, b""))
    base = Welcome(B, A, b"12345678", {A: 6}, {A: 6}, {A: ("", B, 1)}, frozenset([B]), ())
    for frame in (ask, ask._replace(since=None), base, base._replace(missed=missed)):
        assert get_frame(Reader(put_frame(frame))) == frame
    for frame in (base._replace(missed=()), base._replace(state=b"state")):
        assert get_frame(Reader(put_frame(frame))) == frame
    with pytest.raises(MalformedError):
        get_position(put_position(position)[:-1])


def test_a_replica_that_has_most_of_the_state_costs_little() -> None:
    whole, most = bytes_to_return(200, None), bytes_to_return(200, 2)
    assert most * 20 < whole
