"""Groups of nodes: joining, leaving, failing, state transfer, stability."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from causewire.kit import (
    Group,
    GroupClosed,
    GroupMessage,
    Joined,
    JoinFailed,
    Kit,
    KitError,
    Left,
    SeedFile,
)
from causewire.testing.virtual import VirtualLoop, run

from .helper import PORTS, kit


class Log:
    """An application whose state is the list of messages that it has seen."""

    def __init__(self) -> None:
        self.state: list[Any] = []
        self.items: list[Any] = []
        self.error: Exception | None = None
        self.group: Group
        self.task: asyncio.Task[None]

    async def join(self, made: Kit, name: str = "room", seeds: Sequence[Any] = ()) -> Group:
        self.group = await made.join(
            name, seeds, snapshot=lambda: self.state, restore=self.state.extend
        )
        self.task = asyncio.create_task(self.read())
        return self.group

    async def read(self) -> None:
        try:
            async for item in self.group:
                if isinstance(item, GroupMessage):
                    self.state.append(item.payload)
                    self.items.append(item.payload)
                else:
                    self.items.append((type(item), item.member.name))
        except GroupClosed as closed:
            self.error = closed


def names(group: Group) -> list[str]:
    return [member.name for member in group.members]


def test_a_late_joiner_gets_the_state_and_then_every_message() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice", codec="json") as a, kit(loop, "bob", codec="json") as b:
            alice, bob = Log(), Log()
            room = await alice.join(a)
            for k in range(3):
                await room.send(k)
            theirs = await bob.join(b, seeds=["alice"])
            assert bob.state == [0, 1, 2]
            await room.send(3)
            await theirs.send("from bob")
            await asyncio.sleep(1)
            assert sorted(map(str, alice.state)) == sorted(map(str, bob.state))
            assert names(room) == names(theirs) == ["alice", "bob"]
            assert alice.items[:5] == [(Joined, "alice"), 0, 1, 2, (Joined, "bob")]
            assert set(map(str, bob.items)) == {"3", "from bob"}
            assert await theirs.leave()
            await asyncio.sleep(1)
            assert alice.items[-1] == (Left, "bob")
            assert names(room) == ["alice"]
            with pytest.raises(GroupClosed):
                await theirs.send("too late")
            await bob.task

    run(main)


def test_the_iteration_ends_when_the_process_closes_its_own_node() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice", codec="json") as made:
            alice = Log()
            room = await alice.join(made)
            await made.node.close()
            await alice.task
            assert alice.error is None
            with pytest.raises(GroupClosed, match="left"):
                await room.send("too late")

    run(main)


def test_a_message_knows_its_group_and_answers_go_to_all() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with (
            kit(loop, "alice", codec="json") as a,
            kit(loop, "bob", codec="json") as b,
            kit(loop, "carol", codec="json") as c,
        ):
            alice, carol = Log(), Log()
            room = await alice.join(a)
            theirs = await b.join("room", ["alice"])
            await carol.join(c, seeds=["bob"])
            await room.send("question", headers={"n": 1})
            async for item in theirs:
                if isinstance(item, GroupMessage):
                    assert (item.source, item.headers, item.group) == ("alice", {"n": 1}, theirs)
                    assert [m.name for m in item.members] == ["alice", "bob", "carol"]
                    await item.reply("answer")
                    break
            await asyncio.sleep(1)
            assert carol.state == ["question", "answer"]

    run(main)


def test_a_member_that_dies_is_removed_after_its_last_message() -> None:
    async def main(loop: VirtualLoop) -> None:
        soon = {"give_up_after": 5.0}
        async with (
            kit(loop, "alice", codec="json", node_=soon) as a,
            kit(loop, "bob", codec="json", node_=soon) as b,
        ):
            alice, bob, carol = Log(), Log(), Log()
            await alice.join(a)
            await bob.join(b, seeds=["alice"])
            async with kit(loop, "carol", codec="json", node_=soon) as c:
                room = await carol.join(c, seeds=["bob"])
                await asyncio.sleep(1)
                await room.send("everybody gets this")
                await asyncio.sleep(1)
                # From now on, carol reaches alice only, and then nobody.
                loop.network.fate = lambda x, y, _: [] if (x[1], y[1]) == (3, 2) else [0.001]
                await room.send("alice gets this")
                await asyncio.sleep(0.01)
                loop.network.fate = lambda x, y, _: [] if 3 in (x[1], y[1]) else [0.001]
                await asyncio.sleep(30)
                carol.task.cancel()
                for log in (alice, bob):
                    assert log.state == ["everybody gets this", "alice gets this"]
                    assert log.items[-2:] == ["alice gets this", (Left, "carol")]
                    assert names(log.group) == ["alice", "bob"]

    run(main)


def test_a_member_that_was_given_up_learns_that_and_joins_again() -> None:
    async def main(loop: VirtualLoop) -> None:
        rejoin = {"rejoin": True}
        async with (
            kit(loop, "alice", codec="json") as a,
            kit(loop, "bob", codec="json", node_=rejoin) as b,
        ):
            alice, bob, again = Log(), Log(), Log()
            room = await alice.join(a)
            await bob.join(b, seeds=["alice"])
            await room.send(1)
            await asyncio.sleep(1)
            await a.node.forget("bob")
            await bob.task
            assert isinstance(bob.error, GroupClosed)
            await room.send(2)
            await again.join(b, seeds=["alice"])
            await room.send(3)
            await asyncio.sleep(1)
            assert again.state == alice.state == [1, 2, 3]
            assert again.items == [3]

    run(main)


def test_a_member_that_was_cut_off_joins_again_those_whom_it_gave_up_itself() -> None:
    """bob takes alice and carol for dead, starts over, and meets the same incarnations again."""

    async def main(loop: VirtualLoop) -> None:
        settings = {"rejoin": True, "give_up_after": 1.0}
        async with (
            kit(loop, "alice", codec="json", node_=settings) as a,
            kit(loop, "bob", codec="json", node_=settings) as b,
            kit(loop, "carol", codec="json", node_=settings) as c,
        ):
            alice, bob, carol, again = Log(), Log(), Log(), Log()
            room = await alice.join(a)
            await bob.join(b, seeds=["alice"])
            await carol.join(c, seeds=["alice"])
            await asyncio.sleep(1)
            port = PORTS["bob"]
            loop.network.fate = lambda x, y, _: [] if port in (x[1], y[1]) else [0.001]
            await bob.task
            assert isinstance(bob.error, GroupClosed)
            joining = asyncio.create_task(again.join(b, seeds=["alice", "carol"]))
            await asyncio.sleep(3)
            loop.network.fate = lambda *_: [0.001]
            theirs = await joining
            await theirs.send("from bob")
            await room.send("from alice")
            await asyncio.sleep(2)
            assert names(theirs) == names(room) == ["alice", "bob", "carol"]
            assert sorted(again.state) == sorted(alice.state) == sorted(carol.state)
            assert sorted(alice.state) == ["from alice", "from bob"]

    run(main)


def test_a_group_can_be_left_and_joined_again() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice", codec="json") as a, kit(loop, "bob", codec="json") as b:
            alice = Log()
            room = await alice.join(a)
            for k in range(3):
                bob = Log()
                theirs = await bob.join(b, seeds=["alice"])
                with pytest.raises(KitError, match="already"):
                    await b.join("room", ["alice"])
                await theirs.send(k)
                assert await theirs.leave()
            await asyncio.sleep(1)
            assert alice.state == [0, 1, 2]
            assert names(room) == ["alice"]
            assert await room.leave()

    run(main)


def test_nobody_is_there() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice") as a, kit(loop, "bob"):
            with pytest.raises(JoinFailed, match="nobody lets alice into room"):
                await a.join("room", ["bob", "nobody"], timeout=5)
            group = await a.join("room", ["alice"])
            assert names(group) == ["alice"]

    run(main)


def test_seeds_by_address_and_from_a_file_that_changes(tmp_path: Path) -> None:
    async def main(loop: VirtualLoop) -> None:
        alone: dict[str, Any] = {"peers": {}}
        async with (
            kit(loop, "alice", node_=alone) as a,
            kit(loop, "bob", node_=alone) as b,
            kit(loop, "carol", node_=alone) as c,
            kit(loop, "dave", node_=alone) as d,
        ):
            room = await a.join("room")
            await b.join("room", ["alice@127.0.0.1:1"])
            path = tmp_path / "seeds"
            joining = asyncio.create_task(c.join("room", [SeedFile(path)]))
            await asyncio.sleep(1)
            path.write_text("# members\n\nbob@127.0.0.1:2\n")
            theirs = await joining
            await d.join("room", ["carol@127.0.0.1:3"])
            await asyncio.sleep(1)
            assert names(room) == names(theirs) == ["alice", "bob", "carol", "dave"]
            await theirs.send(b"hello")  # to processes that nobody has introduced by hand
            await asyncio.sleep(1)
            assert a.node.peers_up() == ["bob", "carol", "dave"]

    run(main)


def test_a_host_name_is_looked_up_at_each_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(loop: VirtualLoop) -> None:
        answers = [OSError("no such host"), PORTS["bob"], PORTS["alice"]]
        asked: list[str] = []

        async def getaddrinfo(host: str, port: int, **_: Any) -> list[Any]:
            asked.append(host)
            answer = answers[min(len(asked), len(answers)) - 1]
            if isinstance(answer, OSError):
                raise answer
            return [(0, 0, 0, "", (f"127.0.0.{answer}", port))]

        monkeypatch.setattr(loop, "getaddrinfo", getaddrinfo)
        # Everybody has the same port here: 127.0.0.2 is not there, and 127.0.0.1 is alice.
        async with kit(loop, "alice", node_={"peers": {}}) as a:
            await a.join("room")
            async with kit(loop, "carol", node_={"peers": {}}) as c:
                theirs = await c.join("room", ["alice@members.example:1"], retry=1.0)
                assert names(theirs) == ["alice", "carol"]
        assert len(asked) >= 3
        assert set(asked) == {"members.example"}

    run(main)


def test_what_everybody_has_delivered_is_stable() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice") as a, kit(loop, "bob") as b, kit(loop, "carol") as c:
            room = await a.join("room")
            await b.join("room", ["alice"])
            await c.join("room", ["bob"])
            await asyncio.sleep(1)
            seen: list[int] = []
            room.on_stable(lambda cut: seen.append(cut.get(room.me, 0)))
            slow = {(1, 3)}
            loop.network.fate = lambda x, y, _: [3.0 if (x[1], y[1]) in slow else 0.001]
            start = loop.now
            sent = await room.send(b"x")
            await room.until_stable(sent)
            assert loop.now - start > 3
            assert room.stable[room.me] == sent.number == seen[-1]
            await room.leave()
            with pytest.raises(GroupClosed):
                await room.until_stable(sent._replace(number=99))

    run(main)


def test_an_application_that_does_not_read_slows_its_senders_down() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice") as a, kit(loop, "bob", queue=10) as b:
            room = await a.join("room")
            theirs = await b.join("room", ["alice"])
            for _ in range(100):
                await room.send(b"x")
            await asyncio.sleep(5)
            assert theirs.backlog <= 12
            got = 0
            async for item in theirs:
                got += isinstance(item, GroupMessage)
                if got == 100:
                    break

    run(main)
