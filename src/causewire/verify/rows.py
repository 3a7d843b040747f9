"""What happened in a replay, as the rows of a trace (the kinds are those of a simulation)."""

from __future__ import annotations

from collections.abc import Sequence

from ..trace import DELIVER, RECEIVE, RELEASE, SEND, Event
from .obituaries import opened
from .replay import Happening

__all__ = ["rows_of"]

_STEP_NS = 1000

_SORTS = {"ack": "ack", "permit": "permit", "yct": "permit"}
"""Kinds of packets that tell the sender of a message, or its receiver, what it waits for."""


def rows_of(run: str, names: Sequence[str], happened: Sequence[Happening]) -> list[Event]:
    """The rows, with Lamport times along messages and along packets."""
    clock = [0] * len(names)
    seq = [0] * len(names)
    left: dict[tuple[int, int, int], int] = {}
    """By link and number of a packet: the Lamport time at which it left."""
    sent: dict[str, int] = {}
    known: set[tuple[str, str, int, int]] = set()
    rows = []
    for h in happened:
        if h.kind in ("tick", "pump", "forget", "stop") or (h.kind == "send" and not h.peers):
            continue
        at = h.peers[0] if h.kind == "drop" else h.process
        if h.kind == "receive":
            clock[at] = max(clock[at], left[h.peers[0], at, h.number])
        elif h.kind == "deliver":
            clock[at] = max(clock[at], sent[h.message])
        clock[at] += 1
        if h.kind == "release":
            left[at, h.peers[0], h.number] = clock[at]
        elif h.kind == "send":
            sent[h.message] = clock[at]
        copy = (h.kind, h.message, h.process, h.peers[0])
        kind = _kind(h, again=copy in known)
        known.add(copy)
        origin, mid = _about(h, names)
        peers = (h.process,) if h.kind == "drop" else h.peers
        to = tuple([names[j] for j in peers])
        rows.append(
            Event(run, names[at], seq[at], _STEP_NS * h.step, clock[at], kind, origin, mid, to)
        )
        seq[at] += 1
    return rows


def _kind(h: Happening, again: bool) -> str:
    """The kind of a row."""
    if h.kind == "send":
        return SEND
    if h.kind == "deliver":
        return DELIVER
    if h.kind == "drop":
        return "drop"
    if h.message:
        if h.kind == "release":
            return "retransmit" if again else RELEASE
        return "duplicate" if again else RECEIVE
    assert h.packet is not None
    sort = _SORTS.get((opened(h.packet)[1] or h.packet).kind, "control")
    return sort if h.kind == "release" else f"{sort}_receive"


def _about(h: Happening, names: Sequence[str]) -> tuple[str | None, int | None]:
    """The message that a row is about: an ack is of one from whom it goes to."""
    if h.message:
        origin, _, number = h.message.rpartition(":")
        return origin, int(number)
    assert h.packet is not None
    packet = opened(h.packet)[1] or h.packet
    sort = _SORTS.get(packet.kind)
    if sort is None or "mid" not in type(packet).fields:
        return None, None
    mid = packet[1 + type(packet).fields.index("mid")]
    leaves = h.kind == "release"
    sender, receiver = (h.process, h.peers[0]) if leaves else (h.peers[0], h.process)
    return names[receiver if sort == "ack" else sender], mid
