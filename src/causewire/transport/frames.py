"""What is inside a datagram: frames. This module writes and reads all of them.

The layout is in docs/wire.md. There is one writer (`put_...`) and one reader for each
type of frame, and no other module knows their bytes.

The hot path is a run (`MessageRun`): messages to one process that follow each other
without a gap. A run states its numbers once: the first message, the distance to its
predecessor, and the count. Reading or writing a run takes a fixed number of calls,
whatever its length; the work for each message is done by `struct`, `join` and slices.

A reader must not do more work, or take more memory, than in proportion to the length of
the datagram: the number of messages in it is limited (`most_messages`), and nothing is
allocated on the word of a length alone. Reading has no side effects: a datagram that is
malformed anywhere is dropped whole.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from enum import IntEnum
from functools import lru_cache
from itertools import accumulate, pairwise
from operator import sub

from ..core.run import MessageRun
from .contents import Contents, Piece
from .heads import TOKEN_BYTES
from .varint import LARGEST, MalformedError, get, get_bytes, get_text, put, put_text

__all__ = [
    "BYE", "PING", "WHY", "FrameType", "may_be_acked_late", "most_messages",
    "padded_ping", "put_ack", "put_because", "put_challenge", "put_clock", "put_control",
    "put_delivered", "put_handled", "put_obituary", "put_permit", "put_piece", "put_response",
    "put_run", "put_single", "read", "read_run",
]  # fmt: skip


class FrameType(IntEnum):
    """The first byte of a frame. MESSAGES and PIECE have flags in their low bits."""

    PADDING = 0x00
    ACK = 0x01
    DELIVERED = 0x02
    PERMIT = 0x03
    PING = 0x04
    OBITUARY = 0x05
    CLOCK = 0x06
    WHY = 0x07
    BECAUSE = 0x08
    BYE = 0x09
    CHALLENGE = 0x0A
    RESPONSE = 0x0B
    HANDLED = 0x0C
    CONTROL = 0x0D
    PATIENT = 0x0E
    MESSAGES = 0x10
    PIECE = 0x18


# Plain integers for the reader, since every datagram goes through its comparisons.
_ACK, _DELIVERED, _PERMIT, _PATIENT = 0x01, 0x02, 0x03, 0x0E
_MESSAGES, _PIECE = int(FrameType.MESSAGES), int(FrameType.PIECE)

PER, EVEN, NEXT, WITHDRAWN = 1, 2, 4, 2  # flags of MESSAGES; PIECE has the first and the last
_SINGLE = _MESSAGES | EVEN | NEXT  # the least of the two types that `put_single` writes
_new = tuple.__new__
RUN_HEAD = 1 + 4 + 8 + 8 + 4  # the most bytes of a run in addition to its arrays and payloads
PIECE_HEAD = 1 + 8 + 8 + 4 + 4 + 4  # the most bytes of a part of a message in addition to its data
CLOCK_MOST = 1 + 8  # the most bytes of a CLOCK frame
CONTROL_HEAD = 1 + 8 + 4  # the most bytes of a CONTROL frame in addition to its data
_WIDTHS = "BHIQ"


def most_messages(size: int) -> int:
    """Return how many messages a datagram of that size may have."""
    return 64 + size // 16


# -- writing ---------------------------------------------------------------------


PING = bytes([FrameType.PING])
"""Asks for an acknowledgement."""

WHY = bytes([FrameType.WHY])
"""Asks which processes the receiver's missing permits wait for."""

BYE = bytes([FrameType.BYE])
"""Says that the sender closes down."""


def padded_ping(size: int) -> bytes:
    """Return a PING that is followed by PADDING, up to `size` bytes."""
    return PING.ljust(size, b"\0")


MOST_HANDLED = 256  # the most ranges of a HANDLED frame
ACK_MOST = 128  # the most bytes of an ACK frame


def may_be_acked_late(frame: bytes) -> bool:
    """Return whether nobody needs to know soon that a frame has arrived."""
    return frame[0] <= _PERMIT or frame[0] == _PATIENT


def put_ack(ranges: Sequence[Sequence[int]], space: int = ACK_MOST) -> bytes:
    """Return an ACK of ascending ranges of datagrams; the oldest are left out if need be."""
    low, high = ranges[-1]
    highest = put(high)
    head = b"\x01" + highest + (put(high - low) if low else highest)
    if len(ranges) == 1:
        return head + b"\0"
    rest: list[bytes] = []
    size = len(head) + 1
    most = min(space, ACK_MOST)
    for k in range(len(ranges) - 2, -1, -1):
        below = low
        low, high = ranges[k]
        part = put(below - high - 2) + put(high - low)
        size += len(part)
        if size > most:
            break
        rest.append(part)
    return b"%b%b%b" % (head, put(len(rest)), b"".join(rest))


def put_delivered(mid: int, patient: bool) -> bytes:
    """Return a DELIVERED or PATIENT frame: the receiver's messages up to `mid` were delivered."""
    return (b"\x0e" if patient else b"\x02") + put(mid)


def put_permit(mid: int) -> bytes:
    """Return a PERMIT frame: the sender's messages up to `mid` are permitted."""
    return b"\x03" + put(mid)


def put_clock(lamport: int) -> bytes:
    """Return a CLOCK frame with the sender's Lamport time."""
    return b"\x06" + put(lamport)


def put_obituary(name: str, incarnation: int) -> bytes:
    """Return an OBITUARY frame: all incarnations of `name` below this one are gone.

    The highest of 64 bits says whether it left properly.
    """
    return b"\x05" + put_text(name) + incarnation.to_bytes(8, "big")


def put_challenge(token: bytes) -> bytes:
    """Return a CHALLENGE frame: who gets it at an address sends `token` back."""
    return b"\x0a" + token


def put_response(token: bytes) -> bytes:
    """Return a RESPONSE frame, the answer to a CHALLENGE."""
    return b"\x0b" + token


def put_handled(ranges: Sequence[tuple[int, int]], space: int) -> tuple[bytes, int]:
    """Return a HANDLED frame of as many ranges as fit into `space` bytes, and their number."""
    parts: list[bytes] = []
    left = space - 3
    for low, high in ranges[:MOST_HANDLED]:
        part = put(low) + put(high - low)
        left -= len(part)
        if left < 0:
            break
        parts.append(part)
    return b"\x0c" + put(len(parts)) + b"".join(parts), len(parts)


def put_control(offset: int, data: bytes) -> bytes:
    """Return a CONTROL frame: a part of the stream of control packets."""
    return b"\x0d" + put(offset) + put(len(data)) + data


def put_because(names: Iterable[str], space: int) -> bytes:
    """Return a BECAUSE frame with as many of the names as fit into `space` bytes."""
    texts: list[bytes] = []
    left = space - 3
    for text in map(put_text, names):
        left -= len(text)
        if left < 0:
            break
        texts.append(text)
    return b"\x08" + put(len(texts)) + b"".join(texts)


def put_single(mid: int, pid: int, payload: bytes, per: bool) -> bytes:
    """Return a MESSAGES frame with one message, whose payload is not empty."""
    kind = b"\x17\x01" if per else b"\x16\x01"
    return b"".join((kind, put(mid), put(mid - pid - 1), put(len(payload)), payload))


def put_run(run: MessageRun, lengths: Sequence[int]) -> bytes:
    """Return a MESSAGES frame; `lengths` are those of the payloads."""
    mids, pid, payloads, per, _ = run
    count = len(mids)
    mid = mids[0]
    kind = _MESSAGES | PER if per else _MESSAGES
    head = put(count) + put(mid) + put(mid - pid - 1)
    if mids[-1] - mid == count - 1:
        kind |= NEXT
    else:
        head += _array(list(map(sub, mids[1:], mids)))
    length = lengths[0]
    if length and lengths.count(length) == count:
        kind |= EVEN
        head += put(length)
    else:
        head += _array(lengths)
    return b"".join((b"%c" % kind, head, *payloads))


def _array(numbers: Sequence[int]) -> bytes:
    """Return numbers of equal width, after a byte that states the width."""
    try:
        return b"\0" + bytes(numbers)
    except ValueError:  # one is above 255
        pass
    width = (max(numbers).bit_length() + 7) >> 3
    k = 1 if width <= 2 else 2 if width <= 4 else 3
    return b"%c%b" % (k, struct.pack(f">{len(numbers)}{_WIDTHS[k]}", *numbers))


def put_piece(piece: Piece) -> bytes:
    """Return a PIECE frame."""
    mid, pid, per, index, count, data, withdrawn = piece
    numbers = (mid, mid - pid - 1, index, count, len(data))
    kind = _PIECE | per | (WITHDRAWN if withdrawn else 0)
    return b"".join((b"%c" % kind, *map(put, numbers), data))


# -- reading ---------------------------------------------------------------------


def read(data: bytes) -> Contents:
    """Return what the frames of a datagram say.

    Raises:
        MalformedError: Some frame is not well formed.
    """
    contents = Contents()
    runs = contents.runs = []
    pieces = contents.pieces = []
    acked: list[tuple[int, int]] | None = None
    eliciting = rare = False
    at, delivered, permit = 0, 0, 0
    left = 64 + ((end := len(data)) >> 4)  # `most_messages`, without a call
    while at < end:
        kind = data[at]
        at += 1
        if kind == _ACK:
            acked, at = _read_ack(data, at)
            continue
        eliciting = True
        if kind == _DELIVERED:
            delivered, at = _read_mid(data, at)
        elif kind == _PATIENT:
            contents.patient = True
            delivered, at = _read_mid(data, at)
        elif kind & 0xF8 == _MESSAGES:
            run, at = _read_run(data, at, kind, left)
            left -= len(run[0])
            runs.append(run)
        elif kind == _PERMIT:
            permit, at = _read_mid(data, at)
        elif kind & 0xFC == _PIECE:
            piece, at = _read_piece(data, at, kind)
            pieces.append(piece)
        else:
            rare = True
            at = _read_rare(data, at, kind, contents)
    contents.acked, contents.delivered, contents.permit = acked, delivered, permit
    contents.eliciting, contents.rare = eliciting, rare
    return contents


def _read_rare(data: bytes, at: int, kind: int, contents: Contents) -> int:
    if kind == FrameType.PING:
        pass
    elif kind == FrameType.PADDING:
        if bytes(data[at:]).strip(b"\0"):
            raise MalformedError("padding that is not zeros")
        at = len(data)
    elif kind == FrameType.OBITUARY:
        name, at = get_text(data, at)
        if at + 8 > len(data):
            raise MalformedError("cut short")
        if not contents.obituaries:
            contents.obituaries = []
        contents.obituaries.append((name, int.from_bytes(data[at : at + 8], "big")))
        at += 8
    elif kind == FrameType.CLOCK:
        contents.clock, at = get(data, at)
    elif kind == FrameType.WHY:
        contents.why = True
    elif kind == FrameType.BECAUSE:
        count, at = get(data, at)
        contents.because = names = []
        for _ in range(count):
            name, at = get_text(data, at)
            if not name.isprintable():
                raise MalformedError("a name with control characters")
            names.append(name)
    elif kind == FrameType.BYE:
        contents.bye = True
    elif kind == FrameType.CONTROL:
        offset, at = get(data, at)
        part, at = get_bytes(data, at, len(data))
        contents.control = [*contents.control, (offset, part)]
    elif kind == FrameType.CHALLENGE:
        contents.challenge, at = _read_token(data, at)
    elif kind == FrameType.RESPONSE:
        contents.response, at = _read_token(data, at)
    elif kind == FrameType.HANDLED:
        count, at = get(data, at)
        if count > MOST_HANDLED:
            raise MalformedError("more ranges than a HANDLED frame may have")
        contents.handled = ranges = []
        for _ in range(count):
            low, at = _read_mid(data, at)
            size, at = get(data, at)
            ranges.append((low, low + size))
    else:
        raise MalformedError(f"unknown frame type {kind:#x}")
    return at


def _read_token(data: bytes, at: int) -> tuple[bytes, int]:
    """Return the eight bytes of a challenge or a response, and the next index."""
    end = at + TOKEN_BYTES
    if end > len(data):
        raise MalformedError("cut short")
    return data[at:end], end


def _read_mid(data: bytes, at: int) -> tuple[int, int]:
    mid, at = get(data, at)
    if not mid:
        raise MalformedError("messages are numbered from 1")
    return mid, at


def _read_ack(data: bytes, at: int) -> tuple[list[tuple[int, int]], int]:
    high, at = get(data, at)
    size, at = get(data, at)
    low = high - size
    if data[at : at + 1] == b"\0" and low >= 0:
        return [(low, high)], at + 1
    more, at = get(data, at)
    if more > ACK_MOST // 2:
        raise MalformedError("more ranges than an ACK may have")
    ranges = [(low, high)]
    for _ in range(more):
        gap, at = get(data, at)
        size, at = get(data, at)
        high = low - gap - 2
        low = high - size
        ranges.append((low, high))
    if low < 0:
        raise MalformedError("datagrams are numbered from 0")
    return ranges, at


def read_run(data: bytes, at: int) -> tuple[MessageRun, int]:
    """Return the messages of a MESSAGES frame, however many they are, and the next index.

    Raises:
        MalformedError: There is no such frame.
    """
    if at >= len(data) or data[at] & 0xF8 != _MESSAGES:
        raise MalformedError("no messages")
    return _read_run(data, at + 1, data[at], LARGEST)


def _read_run(data: bytes, at: int, kind: int, left: int) -> tuple[MessageRun, int]:
    if kind >= _SINGLE and left > 0 and data[at : at + 1] == b"\x01":
        mid, at = get(data, at + 1)
        back, at = get(data, at)
        size, at = get(data, at)
        pid, end = mid - back - 1, at + size
        if pid < 0 or not size or end > len(data):
            raise MalformedError("cut short, or not numbered from 1")
        return _new(MessageRun, ((mid,), pid, (data[at:end],), kind > _SINGLE, size)), end
    count, at = get(data, at)
    mid, at = get(data, at)
    back, at = get(data, at)
    pid = mid - back - 1
    if pid < 0 or not 0 < count <= left:
        raise MalformedError("no messages, or too many, or not numbered from 1")
    mids: Sequence[int]
    if kind & NEXT:
        mids = range(mid, mid + count)
    else:
        steps, at = _read_array(data, at, count - 1)
        if 0 in steps:
            raise MalformedError("two messages with one number")
        mids = tuple(accumulate(steps, initial=mid))
    payloads: Sequence[bytes]
    if mids[-1] > LARGEST:
        raise MalformedError("a message number that is too large")
    if kind & EVEN:
        length, start = get(data, at)
        end = start + length * count
        if end > len(data) or not length:
            raise MalformedError("cut short")
        payloads = _cut_evenly(data, start, count, length)
    else:
        lengths, start = _read_array(data, at, count)
        ends = list(accumulate(lengths, initial=start))
        end = ends[-1]
        if end > len(data):
            raise MalformedError("cut short")
        payloads = [data[a:b] for a, b in pairwise(ends)]
    return MessageRun(mids, pid, payloads, bool(kind & PER), end - start), end


_BLOCK = 64
"""Payloads taken out at a time, so that few different `_even` structs are made."""


def _cut_evenly(data: bytes, at: int, count: int, length: int) -> list[bytes]:
    """Return `count` payloads of one length."""
    payloads: list[bytes] = []
    while count > _BLOCK:
        payloads += _even(_BLOCK, length).unpack_from(data, at)
        at += _BLOCK * length
        count -= _BLOCK
    payloads += _even(count, length).unpack_from(data, at)
    return payloads


@lru_cache(256)
def _even(count: int, length: int) -> struct.Struct:
    return struct.Struct(f"{length}s" * count)


def _read_array(data: bytes, at: int, count: int) -> tuple[Sequence[int], int]:
    if at >= len(data) or data[at] > 3:
        raise MalformedError("cut short, or an unknown width")
    k = data[at]
    end = at + 1 + (count << k)
    if end > len(data):
        raise MalformedError("cut short")
    if not k:
        return data[at + 1 : end], end
    return struct.unpack_from(f">{count}{_WIDTHS[k]}", data, at + 1), end


def _read_piece(data: bytes, at: int, kind: int) -> tuple[Piece, int]:
    mid, at = get(data, at)
    back, at = get(data, at)
    index, at = get(data, at)
    count, at = get(data, at)
    part, at = get_bytes(data, at, len(data))
    pid, withdrawn = mid - back - 1, bool(kind & WITHDRAWN)
    if pid < 0 or index >= count or not (part or withdrawn):
        raise MalformedError("an impossible part of a message")
    return Piece(mid, pid, bool(kind & PER), index, count, part, withdrawn), at
