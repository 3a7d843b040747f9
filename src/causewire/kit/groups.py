"""The groups of a process: joining them, and passing on what belongs to each."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from contextlib import suppress
from itertools import count

from ..core.endpoint import LocalProtocolError
from ..node import Claim, Closed, PeerGone, Superseded
from .codecs import Codec
from .entries import (
    Absent,
    Ask,
    Frame,
    Hello,
    Member,
    Poll,
    Position,
    Refused,
    SecondGroup,
    Welcome,
)
from .errors import JoinFailed, KitError
from .founding import Founding
from .frames import MARK, Kind, Reader, put_text
from .group import Group
from .machine import Machine, answer_of_stranger
from .parts import Parts
from .places import Place
from .presence import Entered
from .seeds import Seeds, read_seeds
from .tasks import Tasks
from .tracing import Tracing
from .transfer import Transfer
from .wire import get_frame, put_frame

__all__ = ["Groups"]

_log = logging.getLogger("causewire.kit")

REPORT_EVERY = 0.2
"""Seconds between two reports of what was delivered."""

BESIDES_STATE = 64 << 20
"""Bytes that a message in parts may have in addition to a state."""

GREET_EVERY = 25
"""After how many reports to look for processes that should be members and are not."""


class Groups:
    """All groups of a process."""

    def __init__(
        self,
        claim: Claim,
        codec: Codec,
        tasks: Tasks,
        tracing: Tracing,
        advertise: str,
        taken: asyncio.Event,
        history: int,
        largest_state: int,
    ) -> None:
        self._claim = claim
        self._node = claim.node
        self._codec = codec
        self._tasks = tasks
        self._tracing = tracing
        self._advertise = advertise
        self._taken = taken
        self._history = history
        self._largest_state = largest_state
        self._over: Exception | None = None
        self._rounds = count(1)
        self._places: dict[str, Place] = {}
        self._gone: dict[str, int] = {}
        """The last incarnation of each process that is known to be gone."""
        self._starts_over = False
        """Whether this process has met nobody since it goes on as a new incarnation."""

    @property
    def all(self) -> list[Group]:
        """The groups that this process is in, or was in last."""
        return [place.group for place in self._places.values() if place.group is not None]

    def reserve(self, name: str, seeds: Seeds) -> None:
        """Have this process not say that it is no member: it begins the group right now."""
        place = self._places.setdefault(name, Place())
        place.reserved = True
        place.seeds.update([seed.name for seed in read_seeds(seeds)])

    # -- joining ------------------------------------------------------------------

    async def join(
        self,
        name: str,
        seeds: Seeds,
        transfer: Transfer,
        timeout: float | None,
        retry: float,
    ) -> Group:
        """Join a group, or begin it; see `Kit.join`.

        Raises:
            Closed: The kit is being closed; or what else ended it, such as `StoreFailed`.
            JoinFailed: No seed has let this process in.
            KitError: This process is in the group already, or does not give a position.
        """
        if self._over is not None:
            raise self._over
        place = self._places.setdefault(name, Place())
        if place.group is not None and place.group.over is None:
            raise KitError(f"{self._node.name} is in {name} already")
        seeds = list(seeds)
        since = transfer.position()
        if not [seed for seed in seeds if seed != self._node.name]:
            generation = place.standing(0).generation
            return self._found(name, place, transfer, generation + 1)
        try:
            async with asyncio.timeout(timeout):
                welcome = await self._ask_around(name, place, seeds, transfer, since, retry)
        except TimeoutError:
            raise JoinFailed(
                f"nobody lets {self._node.name} into {name}: {place.answers or 'no seeds'}"
            ) from None
        finally:
            place.welcome = None
            place.parts.drop_states()
        assert place.group is not None
        if welcome.state is not None:
            await self._restore(place.group, transfer, welcome.state)
        return place.group

    def answers(self, name: str) -> str:
        """Return what those said who were asked to let this process in, in words."""
        return self._places[name].answers if name in self._places else ""

    async def _restore(self, group: Group, transfer: Transfer, data: bytes) -> None:
        """Give the state to the application; if that fails, leave the group."""
        try:
            try:
                state = self._codec.decode(data)
            except Exception as error:
                why = f"the state of {group.name} cannot be decoded: {type(error).__name__}"
                raise JoinFailed(f"{why}: {error}") from error
            await transfer.restored(state)
        except Exception:
            await group.leave()
            raise
        except BaseException:  # it was cancelled: the others learn that when they ask
            group.end("not let in")
            raise

    async def enter(
        self,
        name: str,
        seeds: Seeds,
        known: Collection[str],
        transfer: Transfer,
        retry: float,
    ) -> Entered:
        """Join a group, or begin it when nobody is a member and it falls to this process.

        Args:
            name: The name of the group.
            seeds: See `Kit.stay`.
            known: Others that may be members.
            transfer: What the application gives to have its state transferred.
            retry: After how many seconds to ask another seed.

        Raises:
            KitError: This process is in the group already.
        """
        place = self._places.setdefault(name, Place())
        asked = [*seeds, *known]
        if not [seed for seed in asked if seed != self._node.name]:
            return Entered(await self.join(name, (), transfer, None, retry), True)
        joining = asyncio.create_task(self.join(name, asked, transfer, None, retry))
        polling = asyncio.create_task(self._poll(name, place, list(seeds), set(known), retry))
        try:
            await asyncio.wait({joining, polling}, return_when=asyncio.FIRST_COMPLETED)
            if joining.done() or place.present:
                return Entered(await joining, False)
            joining.cancel()
            return Entered(self._found(name, place, transfer, polling.result()), True)
        finally:
            joining.cancel()
            polling.cancel()
            await asyncio.gather(joining, polling, return_exceptions=True)

    async def _poll(
        self, name: str, place: Place, seeds: Seeds, known: set[str], retry: float
    ) -> int:
        """Return the generation to begin, as soon as that falls to this process."""
        me = self._node.name
        founding = place.founding = Founding(me)
        while True:
            listed = frozenset([seed.name for seed in read_seeds(seeds)])
            others = (listed | known) - {me}
            if (me in listed or not seeds) and others.issubset(self._node.peers_up()):
                place.polled.clear()
                number = next(self._rounds)
                founding.ask(number, others)
                for other in sorted(others):
                    self._tasks.spawn(self._send(other, _frame(name, Poll(number))))
                with suppress(TimeoutError):
                    async with asyncio.timeout(retry):
                        await place.polled.wait()
                mine = place.standing(self._node.incarnation)
                if generation := founding.begins(mine, listed):
                    return generation
            await asyncio.sleep(min(0.1, retry))

    def _found(self, name: str, place: Place, transfer: Transfer, generation: int) -> Group:
        """Begin the group, with this process as its only member."""
        group = self._begin(name, place, transfer)
        group.found(self._advertise, generation)
        place.enter(group)
        return group

    def _begin(
        self, name: str, place: Place, transfer: Transfer, since: Position | None = None
    ) -> Group:
        """Begin another membership.

        It has another term than those in the position: a process that comes back as the same
        incarnation, from its store, may have numbered messages that reached nobody.
        """
        terms = [one.term for one in since.cut if one[:2] == self._me(0)[:2]] if since else []
        place.term = max([place.term, *terms])
        if place.group is not None and place.group.over == "left":
            place.left = place.term
        place.term += 1
        machine = Machine(self._me(place.term))
        machine.history.limit = self._history
        for other, incarnation in self._gone.items():
            machine.gone(other, incarnation)
        place.parts, place.welcome = Parts(), None
        group = place.group = Group(
            name,
            self._claim,
            self._codec,
            machine,
            transfer.snapshot,
            self._largest_state,
            self._tasks,
            self._tracing,
            self._taken,
        )
        self._tasks.spawn(group.work())
        self._tasks.spawn(self._report(place, group))
        return group

    async def _report(self, place: Place, group: Group) -> None:
        place.greeted.clear()
        for tick in count(1):
            await asyncio.sleep(REPORT_EVERY)
            if group.over is not None:
                break
            group.tick()
            if tick % GREET_EVERY == 0 and place.present:
                self._greet_all(place, group)

    async def _ask_around(
        self,
        name: str,
        place: Place,
        seeds: Seeds,
        transfer: Transfer,
        since: Position | None,
        retry: float,
    ) -> Welcome:
        """Ask one seed after the other until one has sent its state."""
        group = self._begin(name, place, transfer, since)
        place.tried.clear()
        place.refused.clear()
        try:
            while self._over is None:
                listed = read_seeds(seeds)
                place.seeds.update([seed.name for seed in listed])
                for seed in listed:
                    if group.over is not None:
                        group = self._begin(name, place, transfer, since)
                    if seed.name == self._node.name:
                        continue
                    if place.welcome is not None:  # of one that was asked before
                        return place.welcome
                    place.answered.clear()
                    place.tried[seed.name] = "does not answer"
                    ask = Ask(group.me, self._advertise, place.left, since)
                    if await self._ask(_frame(name, ask), seed.name, seed.place):
                        await self._await_answer(place, retry)
                        if place.welcome is not None:
                            return place.welcome
                await asyncio.sleep(retry if place.refused else min(0.1, retry))
            raise self._over
        except BaseException:
            group.end("not let in")
            raise

    @staticmethod
    async def _await_answer(place: Place, retry: float) -> None:
        """Wait for an answer as long as `retry`, or as parts of a state arrive that often."""
        before = -1
        while before < place.parts.states and not place.answered.is_set():
            before = place.parts.states
            with suppress(TimeoutError):
                async with asyncio.timeout(retry):
                    await place.answered.wait()

    async def _ask(self, ask: bytes, name: str, where: str | None) -> bool:
        """Ask a process to let this one in; return False if it cannot be reached."""
        try:
            if where is not None and name not in self._node.peers_up():
                await self._node.add_peer(name, where)
            await self._node.send(name, ask)
        except (LocalProtocolError, PeerGone, Superseded, OSError, ValueError):
            return False
        return True

    # -- passing on -----------------------------------------------------------------

    def received(self, source: str, reader: Reader) -> None:
        """Process a message of another process.

        Raises:
            MalformedError: It is malformed.
        """
        self._received(source, reader.text(), get_frame(reader))

    def received_part(self, source: str, reader: Reader) -> None:
        """Process a part of a message of another process.

        Raises:
            MalformedError: It is malformed.
        """
        name = reader.text()
        place = self._places.get(name)
        if place is not None and place.group is not None and place.group.over is None:
            largest = self._largest_state + BESIDES_STATE
            frame = place.parts.add(str(source), reader, largest)
            if frame is not None:
                self._received(source, name, get_frame(Reader(frame)))

    def _received(self, source: str, name: str, frame: Frame) -> None:
        place = self._places.get(name)
        if isinstance(frame, Poll | Absent):
            self._polled(name, place, source, frame)
            return
        group = None if place is None else place.group
        if place is None or group is None or group.over is not None:
            term = 0 if place is None else place.term
            answer = answer_of_stranger(self._me(term), frame)
            if answer is not None:
                self._tasks.spawn(self._send(source, _frame(name, answer)))
            return
        if isinstance(frame, Refused):
            self._was_refused(place, group, source, frame)
            return
        if isinstance(frame, Hello):
            self._greeted(place, group, source, frame)
            return
        group.received(frame)
        if isinstance(frame, Welcome) and frame.member == group.me and group.joined:
            place.welcome = place.welcome or frame
            place.enter(group)
            place.answered.set()

    def _polled(self, name: str, place: Place | None, source: str, frame: Poll | Absent) -> None:
        """Act on a question whether this process is a member, or on an answer."""
        if isinstance(frame, Poll):
            place = place or Place()
            if not place.present and not place.reserved:
                absent = Absent(frame.round, place.standing(self._node.incarnation))
                self._tasks.spawn(self._send(source, _frame(name, absent)))
        elif place is not None and place.founding is not None:
            place.founding.answered(source, frame)
            if place.founding.complete:
                place.polled.set()

    def _was_refused(self, place: Place, group: Group, source: str, frame: Refused) -> None:
        if frame.member == group.me and not group.joined:
            place.tried[str(source)] = "is not a member"
            if not frame.reason:
                place.refused.pop(str(source), None)
            else:
                place.tried[str(source)] = f"refuses: {frame.reason}"
                if place.refused.get(str(source)) != frame.reason:
                    place.refused[str(source)] = frame.reason
                    why = f"{source} does not let {self._node.name} into {group.name}"
                    _log.warning("%s: %s", why, frame.reason)
            if frame.final:
                group.end("evicted")
            place.answered.set()

    # -- other groups of the same name ------------------------------------------------

    def _greet_all(self, place: Place, group: Group) -> None:
        """Tell processes that are not members, but were or should be, which group this is.

        If one is a member of another group of that name, both sides notice. Each gets one
        message, and another one when it is back after it could not be reached.
        """
        members = [member.name for member in group.members]
        place.greeted.difference_update(members)
        absent = (place.seeds | group.former) & set(self._node.peers_up())
        for name in sorted(absent.difference(place.greeted, members)):
            self._greet(place, group, name)

    def _greet(self, place: Place, group: Group, name: str) -> None:
        place.greeted.add(name)
        self._tasks.spawn(self._send(name, _frame(group.name, Hello(group.me, group.identity))))

    def _greeted(self, place: Place, group: Group, source: str, hello: Hello) -> None:
        if not place.present or hello.identity in place.others:
            return
        if hello.identity == group.identity:
            # Removed by somebody who never reached it, a process may be alive, and not know it.
            # Or the group was divided, and no member is left of those who gave each other up.
            group.doubt(hello.sender)
            return
        place.others.add(hello.identity)
        name = group.name
        reason = (
            f"{source} is in another group that is named {name!r} too: each was begun by a process "
            f"that did not know of the other, and they never become one. Decide which state "
            f"counts; have all processes of the other group leave, and join this one with seeds"
        )
        _log.warning("%s: %s", self._node.name, reason)
        group.notice(SecondGroup(hello.sender, reason))
        self._greet(place, group, str(source))

    def _me(self, term: int) -> Member:
        return Member(self._node.name, self._node.incarnation, term)

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
        for place in self._places.values():
            place.parts.drop(name)
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
        for place in self._places.values():
            place.greeted.discard(name)

    def superseded(self) -> None:
        """End all memberships, as the others have given this process up."""
        for group in self.all:
            group.end("evicted")

    def rejoined(self) -> None:
        """End all memberships, as this process goes on as a new incarnation."""
        self.superseded()
        self._gone.clear()
        self._starts_over = True
        for place in self._places.values():
            place.term = place.left = 0

    def end(self, error: Exception) -> None:
        """End all memberships; who is joining gets the error."""
        self._over = error
        for group in self.all:
            group.end("closed" if isinstance(error, Closed) else str(error))

    async def leave(self, timeout: float) -> None:
        """Leave all groups, and join no other."""
        self._over = Closed(f"{self._node.name} leaves all groups")
        groups = [group for group in self.all if group.over is None]
        for group in groups:
            if not group.joined:
                group.end("closed")
        await asyncio.gather(*[group.leave(timeout) for group in groups if group.joined])


def _frame(group: str, frame: Frame) -> bytes:
    return MARK + bytes((Kind.GROUP,)) + put_text(group) + put_frame(frame)
