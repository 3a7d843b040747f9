"""Endpoints whose copies or states are wrong: the search says so, and shows nothing else."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Hashable, Iterable
from typing import Any, Self

import pytest

from causewire.core.endpoint import (
    Blocked,
    Endpoint,
    Footprint,
    Numbered,
    NumberedMessage,
    Packet,
    destinations,
)
from causewire.protocols import Protocol
from causewire.verify import EndpointError, Result, SearchOptions, Setup, Unit, check_unit, parse
from causewire.verify.selfcheck import shared

from .systems import SYSTEMS, System

PROGRAM = parse("0>2,1; 1>2; 2>")


class Letter(NumberedMessage):
    kind = "msg"


class Received(Numbered):
    kind = "ack"
    numbered_by = "destination"


class Right(Endpoint):
    """One message at a time, as in docs/write-a-protocol.md."""

    def __init__(self, me: str, group: Iterable[str] | None = None) -> None:
        super().__init__(me, group)
        self._buffer: deque[tuple[str, Letter]] = deque()
        self._unacked: dict[str, int] = {}

    def send(self, to: str | Collection[str], payload: Any) -> int:
        (name,) = destinations(to)
        self._mid += 1
        self._buffer.append((name, Letter(self._mid, payload)))
        self._release()
        return self._mid

    def _release(self) -> None:
        while self._buffer and not self._unacked:
            name, packet = self._buffer.popleft()
            self._unacked[name] = packet[1]
            self._packets.append((name, packet))

    def receive(self, source: str, packet: Packet) -> None:
        if isinstance(packet, Letter):
            self._packets.append((source, Received(packet[1])))
            self._deliver(source, packet[1], packet[2])
        elif self._unacked.get(source) == packet[1]:
            del self._unacked[source]
            self._release()

    def blocked(self) -> list[Blocked]:
        return [Blocked(self.me, packet[1], to, "sender", ()) for to, packet in self._buffer]

    @property
    def idle(self) -> bool:
        return not self._unacked and super().idle

    def footprint(self) -> Footprint:
        return Footprint(0, {})

    def _state(self) -> Hashable:
        return tuple(self._buffer), frozenset(self._unacked.items())

    def _copy_into(self, twin: Self) -> None:
        twin._buffer = self._buffer.copy()
        twin._unacked = self._unacked.copy()


class Shares(Right):
    def _copy_into(self, twin: Self) -> None:
        twin._buffer = self._buffer
        twin._unacked = self._unacked.copy()


class NoState(Right):
    def _state(self) -> Hashable:
        return ()


class Unhashable(Right):
    def _state(self) -> Hashable:
        return list(self._buffer), dict(self._unacked)


class SometimesUnhashable(Right):
    def _state(self) -> Hashable:
        return [] if self._unacked else super()._state()  # type: ignore[return-value]


class Skips(Right):
    def _copy_into(self, twin: Self) -> None:
        twin._buffer = self._buffer.copy()


class Forgets(Right):
    def _copy_into(self, twin: Self) -> None:
        twin._buffer = deque()
        twin._unacked = self._unacked.copy()


class CannotTell(Right):
    def blocked(self) -> list[Blocked]:
        raise KeyError("who")


class Stranger(Right):
    def receive(self, source: str, packet: Packet) -> None:
        self._packets.append(("p9", Received(1)))


def found(endpoint: type[Endpoint]) -> Result:
    protocol = Protocol(name="mine", endpoint=endpoint, multicast=False, broadcast=False)
    return check_unit(Unit(Setup(protocol, 3), PROGRAM, SearchOptions(engine="python")))


def test_one_that_is_right_is_checked() -> None:
    assert found(Right).violation is None


@pytest.mark.parametrize(
    ("endpoint", "told"),
    [
        (Shares, "shares `_buffer` with it; look at `_copy_into`"),
        (NoState, "`_state` or `_copy_into` of NoState is incomplete; endpoints that `_state` "),
        (Unhashable, "`_state` of Unhashable raises TypeError: unhashable type: 'list'"),
        (Skips, "`_state` of Skips raises AttributeError"),
        (Forgets, "cannot be replayed"),
        (CannotTell, "`blocked` of CannotTell raises KeyError: 'who'"),
    ],
)
def test_one_that_cannot_be_checked_is_named(endpoint: type[Endpoint], told: str) -> None:
    with pytest.raises(EndpointError) as caught:
        found(endpoint)
    assert told in str(caught.value)


@pytest.mark.parametrize("endpoint", [SometimesUnhashable, Stranger])
def test_an_exception_later_is_a_counterexample_with_its_steps(endpoint: type[Endpoint]) -> None:
    violation = found(endpoint).violation
    assert violation is not None
    assert violation.kind.startswith("error")
    assert violation.steps


@pytest.mark.parametrize("system", SYSTEMS[:1] + SYSTEMS[-1:], ids=str)
def test_copies_of_ours_share_nothing(system: System) -> None:
    endpoint = system.setup.endpoint(0)
    assert not shared(endpoint, endpoint.__copy__())
