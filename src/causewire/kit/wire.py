"""Frames of groups as bytes, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .entries import (
    Absent,
    Add,
    Alert,
    Ask,
    Collect,
    Cut,
    Decided,
    Entries,
    Entry,
    Evicted,
    Frame,
    Have,
    Hello,
    Leave,
    Leaving,
    Member,
    Missed,
    Op,
    Poll,
    Position,
    Post,
    Refused,
    Remove,
    Report,
    Standing,
    Stranger,
    Welcome,
)
from .frames import MalformedError, Reader, put_blob, put_number, put_text

__all__ = ["get_frame", "get_position", "put_frame", "put_position"]

_POSITION = b"\xcaP\x01"
"""What a position begins with; the last byte is the version."""


# -- pieces ---------------------------------------------------------------------


def _put_member(member: Member) -> bytes:
    name, incarnation, term = member
    return put_text(name) + put_number(incarnation) + put_number(term)


def _put_members(members: Iterable[Member]) -> bytes:
    parts = [_put_member(member) for member in members]
    return put_number(len(parts)) + b"".join(parts)


def _put_cut(cut: Cut) -> bytes:
    parts = [_put_member(member) + put_number(count) for member, count in cut.items()]
    return put_number(len(parts)) + b"".join(parts)


def _put_entry(entry: Entry) -> bytes:
    author, number, deps, op = entry
    head = _put_member(author) + put_number(number) + _put_cut(dict(deps))
    if isinstance(op, Post):
        return head + b"p" + put_blob(op.payload)
    if isinstance(op, Add):
        return head + b"a" + _put_member(op.member) + put_text(op.address) + _put_cut(op.cut)
    if isinstance(op, Leave):
        return head + b"l" + _put_cut(op.known)
    return head + b"r" + _put_members(op.members)


def _put_entries(entries: tuple[Entry, ...]) -> bytes:
    return put_number(len(entries)) + b"".join([_put_entry(entry) for entry in entries])


def _member(reader: Reader) -> Member:
    return Member(reader.text(), reader.number(), reader.number())


def _members(reader: Reader) -> frozenset[Member]:
    return frozenset([_member(reader) for _ in range(reader.number())])


def _cut(reader: Reader) -> dict[Member, int]:
    cut = {}
    for _ in range(reader.number()):
        member = _member(reader)
        cut[member] = reader.number()
    return cut


def _entry(reader: Reader) -> Entry:
    author, number, deps = _member(reader), reader.number(), _cut(reader)
    kind = reader.take(1)
    op: Op
    if kind == b"p":
        op = Post(reader.blob())
    elif kind == b"a":
        op = Add(_member(reader), reader.text(), _cut(reader))
    elif kind == b"l":
        op = Leave(_cut(reader))
    elif kind == b"r":
        op = Remove(tuple(sorted(_members(reader))))
    else:
        raise MalformedError(f"an entry of the unknown kind {kind!r}")
    return Entry(author, number, tuple(deps.items()), op)


def _entries(reader: Reader) -> tuple[Entry, ...]:
    return tuple([_entry(reader) for _ in range(reader.number())])


def put_position(position: Position) -> bytes:
    """Return a position as bytes."""
    return _POSITION + put_blob(position.identity) + _put_cut(position.cut)


def get_position(data: bytes) -> Position:
    """Return the position that bytes stand for.

    Raises:
        MalformedError: They do not stand for any.
    """
    if not data.startswith(_POSITION):
        raise MalformedError("not a position")
    reader = Reader(data, len(_POSITION))
    return Position(reader.blob(), _cut(reader))


# -- frames ---------------------------------------------------------------------


def _put_ask(frame: Ask) -> bytes:
    since = b"" if frame.since is None else put_position(frame.since)
    return _put_member(frame.member) + put_text(frame.address) + put_number(frame.left) + since


def _ask(reader: Reader) -> Ask:
    member, address, left = _member(reader), reader.text(), reader.number()
    since = reader.rest()
    return Ask(member, address, left, get_position(since) if since else None)


def _put_missed(message: Missed) -> bytes:
    return _put_member(message.author) + put_number(message.number) + put_blob(message.payload)


def _missed(reader: Reader) -> Missed:
    return Missed(_member(reader), reader.number(), reader.blob())


def _put_welcome(frame: Welcome) -> bytes:
    view = [
        _put_member(member) + put_text(address) + _put_member(author) + put_number(number)
        for member, (address, author, number) in frame.view.items()
    ]
    if frame.missed is not None:
        messages = [_put_missed(message) for message in frame.missed]
        end = b"\2" + put_number(len(messages)) + b"".join(messages)
    else:
        end = b"\0" if frame.state is None else b"\1" + frame.state
    return b"".join(
        [
            _put_member(frame.sponsor) + _put_member(frame.member),
            put_blob(frame.identity),
            _put_cut(frame.cut) + _put_cut(frame.heads),
            put_number(len(view)) + b"".join(view),
            _put_members(frame.past) + _put_entries(frame.log),
            put_number(frame.generation),
            end,
        ]
    )


def _welcome(reader: Reader) -> Welcome:
    sponsor, member, identity = _member(reader), _member(reader), reader.blob()
    cut, heads = _cut(reader), _cut(reader)
    view = {}
    for _ in range(reader.number()):
        known = _member(reader)
        view[known] = reader.text(), _member(reader), reader.number()
    past, log, generation = _members(reader), _entries(reader), reader.number()
    end = reader.number()
    missed = tuple([_missed(reader) for _ in range(reader.number())]) if end == 2 else None
    state = reader.rest() if end == 1 else None
    return Welcome(
        sponsor, member, identity, cut, heads, view, past, log, missed, state, generation
    )


def _put_ends(frame: Alert | Collect) -> bytes:
    """Return what alerts and surveys begin with: from whom, to whom, and who added the sender."""
    author, number = frame.added
    ends = _put_member(frame.sender) + _put_member(frame.to)
    return ends + _put_member(author) + put_number(number)


def _ends(reader: Reader) -> tuple[Member, Member, tuple[Member, int]]:
    return _member(reader), _member(reader), (_member(reader), reader.number())


def _standing(reader: Reader) -> Standing:
    incarnation, entered, generation, delivered, left = [reader.number() for _ in range(5)]
    return Standing(incarnation, entered, generation, delivered, bool(left))


_Put = Callable[[Any], bytes]
_Get = Callable[[Reader], Frame]

_FRAMES: list[tuple[type[Any], _Put, _Get]] = [
    (Entries, lambda f: _put_entries(f.entries), lambda r: Entries(_entries(r))),
    (Have, lambda f: _put_member(f[0]) + _put_cut(f[1]), lambda r: Have(_member(r), _cut(r))),
    (Ask, _put_ask, _ask),
    (Welcome, _put_welcome, _welcome),
    (
        Refused,
        lambda f: _put_member(f.member) + put_number(f.final) + put_text(f.reason),
        lambda r: Refused(_member(r), bool(r.number()), r.text()),
    ),
    (
        Alert,
        lambda f: _put_ends(f) + _put_members(f.dead) + _put_members(f.known),
        lambda r: Alert(*_ends(r), _members(r), _members(r)),
    ),
    (
        Collect,
        lambda f: _put_ends(f) + put_number(f.round) + _put_cut(f.counts),
        lambda r: Collect(*_ends(r), r.number(), _cut(r)),
    ),
    (
        Report,
        lambda f: (
            _put_member(f.sender)
            + put_number(f.round)
            + _put_cut(f.counts)
            + _put_entries(f.entries)
            + _put_members(f.dead)
            + _put_members(f.known)
        ),
        lambda r: Report(_member(r), r.number(), _cut(r), _entries(r), _members(r), _members(r)),
    ),
    (
        Decided,
        lambda f: (
            _put_member(f.sender)
            + put_number(f.round)
            + _put_cut(f.counts)
            + _put_entries(f.entries)
        ),
        lambda r: Decided(_member(r), r.number(), _cut(r), _entries(r)),
    ),
    (
        Leaving,
        lambda f: _put_member(f.sender) + _put_member(f.to),
        lambda r: Leaving(_member(r), _member(r)),
    ),
    (
        Evicted,
        lambda f: _put_member(f.member) + _put_cut(f.final),
        lambda r: Evicted(_member(r), _cut(r)),
    ),
    (Stranger, lambda f: _put_member(f.member), lambda r: Stranger(_member(r))),
    (Poll, lambda f: put_number(f.round), lambda r: Poll(r.number())),
    (
        Absent,
        lambda f: put_number(f.round) + b"".join(map(put_number, f.standing)),
        lambda r: Absent(r.number(), _standing(r)),
    ),
    (
        Hello,
        lambda f: _put_member(f.sender) + put_blob(f.identity),
        lambda r: Hello(_member(r), r.blob()),
    ),
]

_PUT = {kind: (bytes((k,)), put) for k, (kind, put, _) in enumerate(_FRAMES)}


def put_frame(frame: Frame) -> bytes:
    """Return a frame as bytes."""
    number, put = _PUT[type(frame)]
    return number + put(frame)


def get_frame(reader: Reader) -> Frame:
    """Return the frame that bytes stand for.

    Raises:
        MalformedError: They do not stand for any.
    """
    number = reader.number()
    if number >= len(_FRAMES):
        raise MalformedError(f"a frame of the unknown kind {number}")
    return _FRAMES[number][2](reader)
