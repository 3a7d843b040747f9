"""The records of what an application has handled, compared with plain sets."""

from __future__ import annotations

from random import Random

import pytest

from causewire.core.endpoint import RemoteProtocolError
from causewire.transport import handling
from causewire.transport.budget import Budget
from causewire.transport.frames import put_handled, read
from causewire.transport.handling import HandledRanges, Unhandled
from causewire.transport.varint import MalformedError

from .pair import Pair, payloads


@pytest.mark.parametrize("seed", range(20))
def test_reports_in_any_order_with_losses_add_up(seed: int) -> None:
    random = Random(seed)
    here, there = Unhandled(), HandledRanges()
    mids = sorted(random.sample(range(1, 200), 40))
    waiting: list[int] = []
    done: set[int] = set()
    lost: list[tuple[int, int]] = []
    while mids or waiting or here.due or lost:
        if mids and random.random() < 0.5:
            here.delivered(mids[0])
            waiting.append(mids.pop(0))
        if waiting and random.random() < 0.5:
            mid = waiting.pop(random.randrange(len(waiting)))
            assert here.done(mid)
            assert not here.done(mid)
            done.add(mid)
        told = here.put(Budget(random.choice((3, 6, 40))))
        if random.random() < 0.3:
            lost += told
        else:
            for low, high in told:
                there.add(low, high)
        if random.random() < 0.2:
            here.report(lost)
            lost = []
        assert not any(mid in there for mid in waiting)
    assert all(mid in there for mid in done)
    assert len(there._lows) == 1  # everything is handled: one range
    assert there._lows == [1]  # whatever came before was not for this peer


def test_a_frame_has_as_many_ranges_as_fit() -> None:
    ranges = [(10 * k + 1, 10 * k + 5) for k in range(100)]
    frame, count = put_handled(ranges, 64)
    assert len(frame) <= 64
    assert 10 < count < 100
    assert read(frame).handled == ranges[:count]
    with pytest.raises(MalformedError):
        read(frame[:-1])
    with pytest.raises(MalformedError):
        read(b"\x0c\x43\xff")


def test_a_peer_cannot_make_us_keep_any_number_of_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handling, "MOST_RANGES", 10)
    ranges = HandledRanges()
    for k in range(10):
        ranges.add(3 * k + 1, 3 * k + 1)
    with pytest.raises(RemoteProtocolError):
        ranges.add(100, 100)
    ranges.add(1, 28)  # closes gaps
    ranges.add(100, 100)


def test_without_reports_there_is_no_record_and_no_frame() -> None:
    pair = Pair().meet()
    pair.send(b"x")
    pair.exchange()
    (message,) = pair.bob.messages
    message.done()  # does nothing
    with message:
        pass
    assert pair.exchange() == 0
    assert payloads(pair.bob) == [b"x"]
    session = pair.bob._peers.live["ann"]
    assert session.unhandled is None
    assert session.handled is None
