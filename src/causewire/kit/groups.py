"""The groups of a process: joining them, and passing on what belongs to each."""

from __future__ import annotations

import asyncio
import inspect
from contextlib import suppress

from ..core.endpoint import LocalProtocolError
from ..node import Node, PeerGone
from .codecs import Codec
from .entries import Ask, Frame, Member, Refused, Welcome
from .errors import JoinFailed, KitError
from .frames import MARK, Kind, Reader, put_text
from .group import Group, Restore, Snapshot, stranger
from .machine import Machine
from .seeds import Seeds, read_seeds
from .tasks import Tasks
from .tracing import Tracing
from .wire import get_frame, put_frame

__all__ = ["Groups"]

REPORT_EVERY = 0.2
"""Seconds between two reports of what was delivered."""


class _Place:
    """What is known of a group by its name, whether this process is in it or not."""

    def __init__(self) -> None:
        self.group: Group | None = None
        self.term = 0
        """How many times this incarnation has begun to join."""
        self.left = 0
        """The last of these that ended with a leave."""
        self.answered = asyncio.Event()
        """A seed has sent its state, or that it is not a member."""
        self.welcome: Welcome | None = None
        """The state of the group, when it has arrived."""


class Groups:
    """All groups of a process."""

    def __init__(
        self, node: Node, codec: Codec, tasks: Tasks, tracing: Tracing, advertise: str
    ) -> None:
        self._node = node
        self._codec = codec
        self._tasks = tasks
        self._tracing = tracing
        self._advertise = advertise
        self._places: dict[str, _Place] = {}
        self._gone: dict[str, int] = {}
        """The last incarnation of each process that is known to be gone."""
        self._starts_over = False
        """Whether this process has met nobody since it goes on as a new incarnation."""

    @property
    def all(self) -> list[Group]:
        """The groups that this process is in, or was in last."""
        return [place.group for place in self._places.values() if place.group is not None]

    # -- joining ------------------------------------------------------------------

    async def join(
        self,
        name: str,
        seeds: Seeds,
        snapshot: Snapshot | None,
        restore: Restore | None,
        timeout: float,
        retry: float,
    ) -> Group:
        """Join a group, or begin it; see `Kit.join`.

        Raises:
            JoinFailed: No seed has let this process in.
            KitError: This process is in the group already.
        """
        place = self._places.setdefault(name, _Place())
        if place.group is not None and place.group.over is None:
            raise KitError(f"{self._node.name} is in {name} already")
        seeds = list(seeds)
        if not [seed for seed in seeds if seed != self._node.name]:
            group = self._begin(name, place, snapshot)
            group.found(self._advertise)
            return group
        try:
            async with asyncio.timeout(timeout):
                welcome = await self._ask_around(name, place, seeds, snapshot, retry)
        except TimeoutError:
            if place.group is not None:
                place.group.end("not let in")
            raise JoinFailed(f"nobody lets {self._node.name} into {name}") from None
        finally:
            place.welcome = None
        assert place.group is not None
        if restore is not None and welcome.state is not None:
            restored = restore(self._codec.decode(welcome.state))
            if inspect.isawaitable(restored):
                await restored
        return place.group

    def _begin(self, name: str, place: _Place, snapshot: Snapshot | None) -> Group:
        """Begin another membership."""
        if place.group is not None and place.group.over == "left":
            place.left = place.term
        place.term += 1
        me = Member(self._node.name, self._node.incarnation, place.term)
        machine = Machine(me)
        for other, incarnation in self._gone.items():
            machine.gone(other, incarnation)
        group = place.group = Group(name, self._node, self._codec, machine, snapshot, self._tracing)
        self._tasks.spawn(group.work())
        self._tasks.spawn(self._report(group))
        return group

    async def _report(self, group: Group) -> None:
        while group.over is None:
            await asyncio.sleep(REPORT_EVERY)
            group.tick()

    async def _ask_around(
        self, name: str, place: _Place, seeds: Seeds, snapshot: Snapshot | None, retry: float
    ) -> Welcome:
        """Ask one seed after the other until one has sent its state."""
        group = self._begin(name, place, snapshot)
        place.welcome = None
        while True:
            for seed in read_seeds(seeds):
                if group.over is not None:
                    group = self._begin(name, place, snapshot)
                if seed.name == self._node.name:
                    continue
                place.answered.clear()
                if await self._ask(name, group.me, place.left, seed.name, seed.place):
                    with suppress(TimeoutError):
                        async with asyncio.timeout(retry):
                            await place.answered.wait()
                    if place.welcome is not None:
                        return place.welcome
            await asyncio.sleep(min(0.1, retry))

    async def _ask(
        self, group: str, member: Member, left: int, name: str, where: str | None
    ) -> bool:
        """Ask a process to let this one in; return False if it cannot be reached."""
        try:
            if where is not None and name not in self._node.peers_up():
                await self._node.add_peer(name, where)
            await self._node.send(name, _frame(group, Ask(member, self._advertise, left)))
        except (LocalProtocolError, PeerGone, OSError, ValueError):
            return False
        return True

    # -- passing on -----------------------------------------------------------------

    def received(self, source: str, reader: Reader) -> None:
        """Process a message of another process.

        Raises:
            MalformedError: It is malformed.
        """
        name = reader.text()
        frame = get_frame(reader)
        place = self._places.get(name)
        group = None if place is None else place.group
        if place is None or group is None or group.over is not None:
            term = 0 if place is None else place.term
            me = Member(self._node.name, self._node.incarnation, term)
            answer = stranger(name, me, frame)
            if answer is not None:
                self._tasks.spawn(self._send(source, answer))
            return
        if isinstance(frame, Refused):
            self._was_refused(place, group, frame)
            return
        group.received(frame)
        if isinstance(frame, Welcome) and frame.member == group.me and group.joined:
            place.welcome = place.welcome or frame
            place.answered.set()

    def _was_refused(self, place: _Place, group: Group, frame: Refused) -> None:
        if frame.member == group.me and not group.joined:
            if frame.final:
                group.end("evicted")
            place.answered.set()

    async def _send(self, to: str, payload: bytes) -> None:
        with suppress(Exception):
            await self._node.send(to, payload)

    def lost(self, name: str, incarnation: int) -> None:
        """Act on the event that an incarnation of a process is gone.

        A process that was cut off has given up all others, starts over, and meets the same
        incarnations again. What it still hears about its former life does not count.
        """
        if self._starts_over and incarnation:
            return
        self._gone[name] = max(self._gone.get(name, 0), incarnation)
        for group in self.all:
            if group.over is None:
                group.gone(name, incarnation)

    def met(self, name: str, incarnation: int) -> None:
        """Act on the event that an incarnation of a process was reached."""
        self._starts_over = False
        if incarnation <= self._gone.get(name, 0):
            del self._gone[name]
            for group in self.all:
                if group.over is None:
                    group.met(name)

    def rejoined(self) -> None:
        """End all memberships, as this process goes on as a new incarnation."""
        self._gone.clear()
        self._starts_over = True
        for place in self._places.values():
            place.term = place.left = 0
            if place.group is not None:
                place.group.end("evicted")

    def end(self, reason: str) -> None:
        """End all memberships."""
        for group in self.all:
            group.end(reason)

    async def leave(self, timeout: float) -> None:
        """Leave all groups."""
        await asyncio.gather(*[group.leave(timeout) for group in self.all if group.over is None])


def _frame(group: str, frame: Frame) -> bytes:
    return MARK + bytes((Kind.GROUP,)) + put_text(group) + put_frame(frame)
