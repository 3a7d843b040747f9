"""Work per datagram does not grow with what is in flight. Steps are counted, not seconds.

`assert_constant` runs a pattern with n items and with many times as many: if the work for
each item is constant, so is the number of steps.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from causewire.core.run import MessageRun
from causewire.transport import TransportConfig
from causewire.transport.contents import Piece
from causewire.transport.inbound import Inbound
from causewire.transport.newreno import NewReno
from causewire.transport.recovery import Recovery, RoundTrip, Sent

from ..steps import steps
from .pair import Pair, payloads

pytestmark = pytest.mark.slow

FEW, MANY = 250, 8000


def assert_constant(pattern: Callable[[int], Callable[[], object]], few: int = FEW) -> None:
    """The steps for each item are about the same for few items and for many."""
    least = steps(pattern(few)) / few
    most = steps(pattern(MANY)) / MANY
    assert most < 1.5 * least + 5, f"{least:.0f} steps each for {few}, {most:.0f} for {MANY}"


def one(mid: int, pid: int) -> MessageRun:
    return MessageRun((mid,), pid, (b"x",), False, 1)


@pytest.mark.parametrize("order", ["ascending", "descending", "odd first"])
def test_early_messages(order: str) -> None:
    """All messages but the first arrive before it."""

    def pattern(count: int) -> Callable[[], object]:
        mids = list(range(2, count + 2))
        if order == "descending":
            mids.reverse()
        elif order == "odd first":
            mids.sort(key=lambda mid: (mid % 2 == 0, mid))
        runs = [one(mid, mid - 1) for mid in [*mids, 1]]
        inbound = Inbound(100)

        def work() -> None:
            for run in runs:
                inbound.add(run)
            assert inbound.tail == count + 1
            assert inbound.messages == sum(len(run.mids) for run in inbound.ready)

        return work

    assert_constant(pattern)


def test_messages_that_arrive_twice() -> None:
    """Every early message arrives alone and in a long run."""

    def pattern(count: int) -> Callable[[], object]:
        runs = [one(mid, mid - 1) for mid in range(count, 1, -1)]
        mids = range(2, count + 1)
        runs.append(MessageRun(mids, 1, [b"x"] * len(mids), False, len(mids)))
        runs.append(one(1, 0))
        inbound = Inbound(100)

        def work() -> None:
            for run in runs:
                inbound.add(run)
            assert inbound.tail == count
            assert sum(len(run.mids) for run in inbound.ready) == inbound.messages == count

        return work

    assert_constant(pattern)


def test_messages_in_one_part_each() -> None:
    """A datagram of a member that lies: thousands of messages, each of one small part."""

    def pattern(count: int) -> Callable[[], object]:
        pieces = [Piece(mid, mid - 2, False, 0, 1, b"x") for mid in range(4, 2 * count, 2)]
        inbound = Inbound(100)

        def work() -> None:
            for piece in reversed(pieces):
                inbound.add_piece(piece)
            inbound.gap()

        return work

    assert_constant(pattern)


def recovery(count: int) -> Recovery:
    made = Recovery(RoundTrip(0.2, 0.01, 2.0), NewReno(1000))
    for _ in range(count):
        sent = Sent(0.0)
        sent.size = 10
        made.departs(sent)
    return made


@pytest.mark.parametrize("order", ["ascending", "descending", "every other"])
def test_acks_of_datagrams_in_flight(order: str) -> None:
    def pattern(count: int) -> Callable[[], object]:
        numbers = list(range(count))
        if order == "descending":
            numbers.reverse()
        elif order == "every other":
            numbers = numbers[::2]
        made = recovery(count)

        def work() -> None:
            for number in numbers:
                made.acknowledged([(number, number)], 0.1)

        return work

    assert_constant(pattern, few=1000)


class Looked(OrderedDict[int, Sent]):
    """Counts the entries that are looked at, also by a built-in function such as `list`."""

    looks = 0

    def __iter__(self) -> Iterator[int]:
        for number in super().__iter__():
            self.looks += 1
            yield number

    def items(self) -> Any:
        return ((number, self[number]) for number in self)


def test_an_ack_looks_at_few_of_the_datagrams_in_flight() -> None:
    made = recovery(1000)
    made.sent = looked = Looked(made.sent)
    for number in range(100):
        made.acknowledged([(number, number)], 0.1)
    assert len(looked) == 900
    assert looked.looks <= 3 * 100


def test_finding_the_oldest_datagram_in_flight_takes_constant_time() -> None:
    """A plain dict looks at all entries that were deleted before its first."""
    assert isinstance(recovery(1).sent, OrderedDict)


def test_a_stalled_peer_with_many_messages_behind_it() -> None:
    """Each turn costs the same, however many messages wait for a peer that takes none."""
    config = TransportConfig(
        peer_messages=1 << 16, peer_bytes=1 << 26, queue_messages=10, local_datagram=1232
    )

    def pattern(count: int) -> Callable[[], object]:
        pair = Pair(config=config).meet()
        for _ in range(count):
            pair.send(b"x")
        pair.exchange()

        def work() -> None:
            for _ in range(50):
                pair.later(0.5)
                pair.exchange()

        return work

    least = steps(pattern(320))
    most = steps(pattern(32_000))
    assert most < 1.5 * least + 5000, f"{least} steps with 320 messages, {most} with 32,000"


def test_a_stalled_peer_that_goes_on_takes_everything() -> None:
    config = TransportConfig(peer_messages=1 << 16, peer_bytes=1 << 26, local_datagram=1232)

    def pattern(count: int) -> Callable[[], object]:
        pair = Pair(config=config).meet()
        for _ in range(count):
            pair.send(b"x")

        def work() -> None:
            got = 0
            while got < count:
                pair.exchange()
                got += len(payloads(pair.bob))
                pair.now += 0.001

        return work

    assert_constant(pattern)
