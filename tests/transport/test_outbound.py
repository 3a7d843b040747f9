"""Datagrams are filled as far as they go, and say what was released."""

from __future__ import annotations

from itertools import accumulate, groupby, pairwise
from operator import itemgetter
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causewire.core.run import MessageRun
from causewire.transport.budget import Budget
from causewire.transport.frames import RUN_HEAD, most_messages, read
from causewire.transport.outbound import Outbound

FULL = 400
"""What every datagram has room for."""

Packet = tuple[Any, ...]


def outbound(messages: list[Packet]) -> Outbound:
    """These have been released to a peer that takes as much as comes."""
    made = Outbound()
    made.peer_messages, made.peer_bytes = 1 << 20, 1 << 30
    for flag, some in groupby(messages, itemgetter(4)):
        _, mids, pids, payloads, _ = zip(*some, strict=True)
        made.release(MessageRun(list(mids), pids[0], list(payloads), flag))
    return made


def chain(steps: list[int], payloads: list[bytes], flags: list[bool]) -> list[Packet]:
    mids = accumulate(steps, initial=0)
    parts = zip(pairwise(mids), payloads, flags, strict=True)
    return [("msg", mid, pid, payload, flag) for (pid, mid), payload, flag in parts]


@st.composite
def chains(draw: st.DrawFn) -> list[Packet]:
    count = draw(st.integers(1, 60))
    longest = draw(st.sampled_from([1, 20, 300, 1500]))
    step = st.integers(1, draw(st.sampled_from([1, 3, 2**40])))
    length = draw(st.one_of(st.none(), st.integers(0, longest)))
    lengths = [draw(st.integers(0, longest)) if length is None else length for _ in range(count)]
    steps = [draw(step) for _ in range(count)]
    flags = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    return chain(steps, [bytes([k]) * n for k, n in enumerate(lengths)], flags)


@given(chains(), st.integers(FULL, 3 * FULL))
def test_all_messages_leave_in_order_in_datagrams_that_are_not_too_long(
    messages: list[Packet], space: int
) -> None:
    out = outbound(messages)
    got: list[Packet] = []
    pieces: dict[int, list[bytes]] = {}
    while out.pending:
        budget = Budget(space)
        assert out.fill(budget, FULL, [])
        data = b"".join(budget.frames)
        assert 0 < len(data) <= space
        contents = read(data)
        for run in contents.runs:
            assert run.size == sum(map(len, run.payloads))
            pids = (run.pid, *run.mids)
            for mid, pid, payload in zip(run.mids, pids, run.payloads, strict=False):
                got.append(("msg", mid, pid, payload, run.per))
        for piece in contents.pieces:
            some = pieces.setdefault(piece.mid, [])
            some.append(bytes(piece.data))
            if len(some) == piece.parts:
                got.append(("msg", piece.mid, piece.pid, b"".join(some), piece.per))
    assert sorted(got) == messages
    assert out.departed == messages[-1][1]
    size = sum(len(message[3]) for message in messages)
    assert out.acknowledged(messages[-1][1]) == (len(messages), size)


@pytest.mark.parametrize("step", [1, 2, 2**40])
def test_a_message_that_just_fits_leaves_whatever_comes_behind_it(step: int) -> None:
    messages = chain([1, step], [bytes(FULL - RUN_HEAD)] * 2, [True] * 2)
    out = outbound(messages)
    items: list[Any] = []
    assert out.fill(Budget(FULL), FULL, items)
    assert [run.mids for run in items] == [[1]]


def test_full_datagrams() -> None:
    """Even payloads: nothing but the head of a run is lost, however the numbers are spread."""
    for step, each in ((1, 0), (7, 1)):
        out = outbound(chain([step] * 40, [bytes(64)] * 40, [True] * 40))
        items: list[Any] = []
        out.fill(Budget(1200), FULL, items)
        assert [len(run.mids) for run in items] == [(1200 - RUN_HEAD) // (64 + each)]


def test_short_messages_are_not_more_than_a_reader_takes() -> None:
    out = outbound(chain([1] * 500, [b""] * 500, [False] * 500))
    items: list[Any] = []
    budget = Budget(1200)
    out.fill(budget, FULL, items)
    parts = budget.frames
    assert 0 < sum(len(run.mids) for run in items) <= most_messages(len(b"".join(parts)))
    assert [list(run.mids) for run in read(b"".join(parts)).runs] == [run.mids for run in items]


@given(chains(), st.integers(FULL, 3 * FULL), st.integers(0, 2**32).map(Random))
def test_what_was_lost_leaves_again_unless_it_is_acked(
    messages: list[Packet], space: int, chance: Random
) -> None:
    """Datagrams get lost until all have arrived; whatever is said is what was released."""
    out = outbound(messages)
    by_mid = {message[1]: message for message in messages}
    whole: set[int] = set()
    parts_of: dict[int, dict[int, bytes]] = {}
    for _ in range(10_000):
        if not out.pending:
            break
        budget = Budget(space)
        items: list[Any] = []
        out.fill(budget, FULL, items)
        data = b"".join(budget.frames)
        assert len(data) <= space
        if chance.random() < 0.4:
            out.lost(items)
        else:
            contents = read(data)
            for run in contents.runs:
                pids = (run.pid, *run.mids)
                for mid, pid, payload in zip(run.mids, pids, run.payloads, strict=False):
                    assert ("msg", mid, pid, payload, run.per) == by_mid[mid]
                    whole.add(mid)
            for piece in contents.pieces:
                some = parts_of.setdefault(piece.mid, {})
                some[piece.part] = bytes(piece.data)
                if len(some) == piece.parts:
                    joined = b"".join(some[k] for k in range(piece.parts))
                    assert ("msg", piece.mid, piece.pid, joined, piece.per) == by_mid[piece.mid]
                    whole.add(piece.mid)
        mids = [message[1] for message in messages]
        known = next((k for k, mid in enumerate(mids) if mid not in whole), len(mids))
        if known and mids[known - 1] > out.acked and chance.random() < 0.3:
            out.acknowledged(mids[known - 1])
    assert whole == set(by_mid)
