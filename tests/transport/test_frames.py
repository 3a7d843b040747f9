"""What is written is read again; what was never written is refused, and costs little."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from causewire.core.run import MessageRun
from causewire.transport import varint
from causewire.transport.contents import Piece
from causewire.transport.frames import (
    most_messages,
    padded_ping,
    put_ack,
    put_because,
    put_obituary,
    put_piece,
    put_run,
    read,
)
from causewire.transport.varint import LARGEST, MalformedError

NUMBERS = st.integers(0, LARGEST)


@given(NUMBERS)
def test_numbers(n: int) -> None:
    data = varint.put(n)
    assert varint.get(data, 0) == (n, len(data))
    assert varint.get(b"?" + data + b"!", 1) == (n, 1 + len(data))
    for cut in range(len(data)):
        with pytest.raises(MalformedError):
            varint.get(data[:cut], 0)


def test_numbers_are_those_of_quic() -> None:
    """The examples of RFC 9000, section A.1."""
    for text, n in (
        ("c2197c5eff14e88c", 151288809941952652),
        ("9d7f3e7d", 494878333),
        ("7bbd", 15293),
        ("25", 37),
    ):
        assert varint.put(n) == bytes.fromhex(text)
        assert varint.get(bytes.fromhex(text), 0)[0] == n
    assert varint.get(bytes.fromhex("4025"), 0) == (37, 2)


@st.composite
def runs(draw: st.DrawFn) -> tuple[list[tuple[Any, ...]], bool]:
    """Messages that follow each other, as a protocol makes them."""
    pid = draw(st.one_of(st.integers(0, 100), st.integers(0, 2**61)))
    steps = draw(st.one_of(st.integers(1, 40).map(lambda n: [1] * n), st.lists(
        st.integers(1, 2**40), min_size=1, max_size=20)))  # fmt: skip
    length = draw(st.one_of(st.none(), st.integers(0, 80)))
    per = draw(st.booleans())
    messages: list[tuple[Any, ...]] = []
    for step in steps:
        size = draw(st.integers(0, 300)) if length is None else length
        messages.append(("msg", pid + step, pid, bytes(size), per))
        pid += step
    return messages, per


def frame(messages: list[tuple[Any, ...]], per: bool) -> bytes:
    payloads = [message[3] for message in messages]
    mids = [message[1] for message in messages]
    lengths = list(map(len, payloads))
    return put_run(MessageRun(mids, messages[0][2], payloads, per, sum(lengths)), lengths)


@given(st.lists(runs(), min_size=1, max_size=3))
def test_runs(some: list[tuple[list[tuple[Any, ...]], bool]]) -> None:
    data = b"".join(frame(*one) for one in some)
    assume(sum(len(messages) for messages, _ in some) <= most_messages(len(data)))
    contents = read(data)
    assert contents.eliciting
    assert len(contents.runs) == len(some)
    for (messages, per), run in zip(some, contents.runs, strict=True):
        assert list(run.mids) == [message[1] for message in messages]
        assert run.pid == messages[0][2]
        assert list(run.payloads) == [message[3] for message in messages]
        assert run.per is per


def test_a_message_alone_costs_few_bytes() -> None:
    assert len(frame([("msg", 7, 6, bytes(50), True)], True)) == 50 + 5
    many = [("msg", mid, mid - 1, bytes(64), True) for mid in range(1001, 1201)]
    assert len(frame(many, True)) == 200 * 64 + 8


@given(st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 5000)), min_size=1, max_size=60))
def test_acks(gaps: list[tuple[int, int]]) -> None:
    ranges, at = [], 0
    for gap, size in gaps:
        ranges.append([at + gap, at + gap + size])
        at = ranges[-1][1] + 2
    data = put_ack(ranges)
    contents = read(data)
    assert len(data) <= 128
    assert not contents.eliciting
    assert contents.acked is not None
    newest = [tuple(one) for one in reversed(ranges)]
    assert contents.acked == newest[: len(contents.acked)]
    assert len(contents.acked) == len(ranges) or len(data) > 100


@given(st.binary(min_size=1, max_size=900), st.integers(1, 300), st.booleans())
def test_pieces(payload: bytes, size: int, per: bool) -> None:
    count = -(-len(payload) // size)
    parts = [payload[k * size : (k + 1) * size] for k in range(count)]
    data = b"".join(put_piece(Piece(9, 3, per, k, count, part)) for k, part in enumerate(parts))
    pieces = read(data).pieces
    assert b"".join(piece.data for piece in pieces) == payload
    assert {(p.mid, p.pid, p.per, p.parts) for p in pieces} == {(9, 3, per, count)}


def test_the_rest() -> None:
    assert read(padded_ping(1000)).eliciting
    assert len(padded_ping(1000)) == 1000
    contents = read(b"\x02\x05\x03\x07\x04\x06\x2a\x07\x09")
    assert (contents.delivered, contents.permit, contents.clock) == (5, 7, 42)
    assert contents.why
    assert contents.bye
    contents = read(put_because(["ann", "bob"], 100) + put_obituary("eve", 99))
    assert contents.because == ["ann", "bob"]
    assert contents.obituaries == [("eve", 99)]


@pytest.mark.parametrize(
    "data",
    [
        b"\x04\x00\x00\x01",  # padding that is not zeros
        b"\x02\x00",  # message 0
        b"\x10\x01\x00\x00\x00\x00",  # message 0
        b"\x17\x00\x05\x00\x01x",  # no messages
        b"\x17\x05\x05\x00\x00",  # even, and of length 0
        b"\x17\x05\x05\x00\x01xxxx",  # one short
        b"\x17\x01\x05\x05\x01x",  # predecessor -1
        b"\x12\x02\x05\x00\x00\x00\x01xx",  # two with one number
        b"\x10\x02\x05\x00\x04" + bytes(40),  # a width that is none
        b"\x01\x05\x06\x00",  # datagram -1
        b"\x18\x05\x00\x01\x01\x01x",  # part 1 of 1
        b"\x18\x05\x00\x00\x01\x00",  # an empty part
        b"\x05\x00" + bytes(8),  # a process without a name
        b"\x05\x01\xff" + bytes(8),  # a name that is not text
        b"\x13\x02\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x05\x01xx",  # beyond the largest
    ],
)
def test_malformed(data: bytes) -> None:
    with pytest.raises(MalformedError):
        read(data)


def test_a_datagram_cannot_claim_more_messages_than_fit_its_size() -> None:
    tiny = [("msg", mid, mid - 1, b"x", False) for mid in range(1, 70)]
    assert len(read(frame(tiny[:60], False)).runs[0].mids) == 60
    with pytest.raises(MalformedError):
        read(frame(tiny + [("msg", mid, mid - 1, b"x", False) for mid in range(70, 200)], False))
    assert most_messages(0) == 64


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Frames with some bytes changed, cut off, or put in."""
    data = bytearray(b"".join(frame(*one) for one in draw(st.lists(runs(), max_size=2))))
    data += draw(st.sampled_from([b"", b"\x02\x05", put_ack([[1, 4], [9, 9]]), b"\x07\x04"]))
    for _ in range(draw(st.integers(0, 4))):
        if data:
            data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.integers(0, len(data)))])


def cost(data: bytes) -> int:
    """Bytes allocated, at the most, while some bytes are read."""
    tracemalloc.start()
    try:
        read(data)
    except MalformedError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak


@settings(max_examples=300)
@given(st.one_of(st.binary(max_size=200), damaged()))
def test_any_bytes_are_read_or_refused_at_little_cost(data: bytes) -> None:
    assert cost(data) < 16384 + 40 * len(data)


def test_the_dearest_datagrams_are_cheap() -> None:
    tiny = [("msg", mid, mid - 1, b"x", False) for mid in range(1, 69)]
    for data in (
        frame(tiny[:64], False),
        frame([("msg", 3 * k, 3 * k - 3, bytes(16), True) for k in range(1, 3000)], True),
        put_ack([[3 * k, 3 * k] for k in range(100)]) * 500,
        b"\x08\x3f" + b"\x01x" * 63,
        (b"\x05\x01x" + bytes(7) + b"\x01") * 5000,
        b"\x18\x05\x00\x00\x02\x01x" * 7000,
    ):
        assert cost(data) < 16384 + 40 * len(data), data[:20]


def test_the_numbers_of_the_documentation() -> None:
    """docs/wire.md says what these take."""
    assert len(frame([("msg", 7, 6, bytes(50), False)], False)) == 55
    many = [("msg", mid, mid - 1, bytes(64), True) for mid in range(1001, 1201)]
    assert round(len(frame(many, True)) / 200, 2) == 64.04
