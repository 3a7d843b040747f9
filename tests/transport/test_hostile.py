"""No input from the network makes anything but a counted drop."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causewire.core.run import MessageRun
from causewire.protocols import describe
from causewire.transport import TransportConfig
from causewire.transport.codec import Codec
from causewire.transport.contents import Piece
from causewire.transport.frames import (
    most_messages,
    put_ack,
    put_obituary,
    put_piece,
    put_run,
)
from causewire.transport.varint import MalformedError, put

from .hostile import Target

KEY = b"sixteen bytes or more"
KINDS = ["run", "run", "run", "piece", "ack", "delivered", "permit", "obituary", "rest"]
SMALL = st.integers(0, 12)
NUMBERS = st.one_of(SMALL, SMALL, st.integers(0, 2**62 - 1))


@st.composite
def frames(draw: st.DrawFn) -> bytes:
    """A frame that is well formed, and says what no correct peer may."""
    kind = draw(st.sampled_from(KINDS))
    if kind == "run":
        pid = last = draw(NUMBERS)
        mids = []
        for _ in range(draw(st.integers(1, 4))):
            mid = min(last + draw(st.integers(1, 4)), 2**62 - 1)
            if mid <= last:
                break
            mids.append(mid)
            last = mid
        if not mids:
            return b""
        payloads = [draw(st.binary(max_size=20)) for _ in mids]
        lengths = list(map(len, payloads))
        return put_run(MessageRun(mids, pid, payloads, draw(st.booleans()), sum(lengths)), lengths)
    if kind == "piece":
        pid = draw(SMALL)
        mid = pid + draw(st.integers(1, 4))
        parts = draw(st.integers(1, 6))
        withdrawn = draw(st.booleans())
        data = bytes(draw(st.integers(0 if withdrawn else 1, 100)))
        part = draw(st.integers(0, parts - 1))
        return put_piece(Piece(mid, pid, draw(st.booleans()), part, parts, data, withdrawn))
    if kind == "ack":
        low = draw(NUMBERS)
        return put_ack([[low, min(low + draw(SMALL), 2**62 - 1)]])
    if kind in ("delivered", "permit"):
        return bytes([2 if kind == "delivered" else 3]) + put(max(1, draw(NUMBERS)))
    if kind == "obituary":
        name = draw(st.sampled_from(["ann", "bob", "carol", "x\ny", "é"]))
        return put_obituary(name, draw(st.integers(0, 2**64 - 1)))
    return draw(st.sampled_from([b"\x04", b"\x06\x05", b"\x07", b"\x08\x01\x03eve"]))


def test_a_message_that_is_delivered_twice_is_noticed() -> None:
    """By `Target`, so that the tests below can fail."""
    for taken in (0, 1):
        target = Target()
        target.pair.send(b"x")
        target.raw(*target.pair.out(target.pair.ann))
        (message,) = target.bob.messages
        target.check()
        target.take(taken)
        target.bob.messages.append(message)
        with pytest.raises(AssertionError):
            target.check()
        with pytest.raises(AssertionError, match="delivered twice"):
            target.take(2)


@settings(max_examples=250)
@given(st.lists(st.lists(frames(), max_size=4).map(b"".join), max_size=12), st.booleans())
def test_a_peer_that_lies(datagrams: list[bytes], bye: bool) -> None:
    target = Target()
    for k, contents in enumerate(datagrams):
        target.hit(contents)
        if k % 4 == 3:
            target.tick()
        target.check()
    if bye:
        target.hit(b"\x09")
    target.tick()
    target.check()


@settings(max_examples=100)
@given(
    st.sampled_from(["fifo", "sps", "ks", "cykas", "newtop", "pak"]),
    st.lists(st.lists(frames(), max_size=3).map(b"".join), max_size=8),
)
def test_under_every_sort_of_protocol(protocol: str, datagrams: list[bytes]) -> None:
    target = Target(protocol)
    for contents in datagrams:
        target.hit(contents)
        target.check()
    target.tick()
    target.check()


@settings(max_examples=200)
@given(st.lists(st.binary(max_size=120), max_size=8), st.sampled_from([None, KEY]))
def test_sealed_nonsense(datagrams: list[bytes], key: bytes | None) -> None:
    target = Target(key=key)
    for contents in datagrams:
        target.hit(contents)
    target.tick()
    target.check()


@pytest.fixture(scope="module", params=[None, KEY], ids=["plain", "sealed"])
def shared(request: pytest.FixtureRequest) -> Target:
    return Target(key=request.param)


@settings(max_examples=300)
@given(head=st.sampled_from([b"", b"\x11", b"\x12", b"\x11\x03ann"]), rest=st.binary(max_size=100))
def test_any_datagram_whatever(shared: Target, head: bytes, rest: bytes) -> None:
    stats = shared.bob.stats
    before = sum(stats.dropped.values())
    shared.raw(head + rest)
    assert sum(stats.dropped.values()) == before + 1


def test_a_greeting_that_is_damaged(shared: Target) -> None:
    pair = shared.pair
    pair.ann._greeter.greet(pair.ann._peers.known["bob"], 5, False, ("127.0.0.1", 2))
    ((greeting, _),) = pair.ann._greeter.out
    pair.ann._greeter.out.clear()
    stats = shared.bob.stats
    for k in range(len(greeting)):
        before = sum(stats.dropped.values())
        shared.raw(greeting[:k] + bytes([greeting[k] ^ 4]) + greeting[k + 1 :])
        shared.raw(greeting[:k])
        assert sum(stats.dropped.values()) == before + 2


def test_strangers_cannot_fill_the_memory() -> None:
    """Without a key, anybody on the machine can make up names; not many, though."""
    target = Target()
    ann = target.pair.ann
    for k in range(100):
        ann.me.name = f"stranger {k}"
        ann._greeter.greet(ann._peers.known["bob"], 5, False, ("127.0.0.1", 2))
    for greeting, _ in ann._greeter.out:
        target.raw(greeting)
    target.check()
    assert "ann" in target.bob._peers.known
    for k in range(15):
        target.bob.add_peer(f"wanted {k}", ("127.0.0.1", 3), target.pair.now)
    for greeting, _ in ann._greeter.out:
        target.raw(greeting)
    target.check()
    assert sum(peer.wanted for peer in target.bob._peers.known.values()) == 15


SIZE = 16_000
MOST = 40
"""Bytes of memory for each byte of a datagram."""
MOST_OF_A_PACKET = 80
"""The same within a packet of a protocol on a link: three bytes may be a set of one item, and
Python takes 216 for that."""


def filled(one: Callable[[int], bytes]) -> bytes:
    """Frames up to the size of a datagram."""
    frames = bytearray()
    for k in count():
        if len(frames) >= SIZE:
            return bytes(frames)
        frames += one(k)
    raise AssertionError


def messages(first: int, step: int) -> bytes:
    """As many messages of a byte as a datagram may have, in runs without gaps or one by one."""
    mids = [first + step * k for k in range(most_messages(SIZE))]
    runs = [mids] if step == 1 else [[mid] for mid in mids]
    frames = [
        put_run(MessageRun(run, run[0] - 1, [b"x"] * len(run), True, len(run)), [1] * len(run))
        for run in runs
    ]
    return b"".join(frames).ljust(SIZE, b"\x04")


def part(mid: int, index: int) -> bytes:
    """A byte of a message that is said to have very many."""
    return put_piece(Piece(mid, mid - 1, True, index, 2**40, bytes(1)))


GREEDY = {
    "messages": lambda: messages(2, 1),
    "messages that are early": lambda: messages(5, 1),
    "messages with gaps": lambda: messages(5, 3),
    "parts of one message": lambda: filled(lambda k: part(2, k)),
    "parts of many messages": lambda: filled(lambda k: part(2 + k, 1)),
    "acks": lambda: b"\x01" + put(2**40) + b"\x00" + put(SIZE // 2) + bytes(SIZE),
    "acks that lie": lambda: b"\x01" + put(2**40) + b"\x00" + put(2**60) + bytes(SIZE),
    "names": lambda: b"\x08" + put(SIZE // 2) + b"\x01a" * (SIZE // 2),
    "obituaries": lambda: filled(lambda k: put_obituary(f"n{k}", k + 1)),
}


@pytest.mark.parametrize("what", GREEDY)
def test_a_datagram_takes_memory_in_proportion_to_its_size(what: str) -> None:
    contents = GREEDY[what]()
    target = Target(config=TransportConfig(local_datagram=SIZE + 500))
    target.hit(b"\x04")  # whatever is made once
    tracemalloc.start()
    target.hit(contents)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(contents) < peak < MOST * len(contents)


@pytest.mark.parametrize("protocol", ["rst", "ks", "bss", "pak", "mf"])
@pytest.mark.parametrize(
    "item",
    [
        b"\x00",
        b"\x02\x05",
        b"\x04\x01a",
        b"\x05\x00",
        b"\x06\x00",
        b"\x06\x01\x00",
        b"\x07\x00",
        b"\x07\x01\x00",
        b"\x07\x02\x00\x01",
    ],
)
def test_so_does_a_packet(protocol: str, item: bytes) -> None:
    """Of a protocol that runs on a link: a tuple, and a set, of very many small things."""
    for kind in (b"\x06", b"\x07"):
        for many in (SIZE // len(item), 2**50):
            data = b"\x00" + kind + put(many) + item * (SIZE // len(item))
            tracemalloc.start()
            with pytest.raises(MalformedError):
                Codec(describe(protocol)).decode(data)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak < MOST_OF_A_PACKET * len(data)
