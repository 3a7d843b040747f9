"""The heads of datagrams, and the contents of greetings. The layout is in docs/wire.md.

There are two sorts of datagram: those of a **session**, between an incarnation of one
process and one of another, and **greetings**, which establish sessions.

    A -> B   I am A, incarnation a. Who are you?
    B -> A   I am B, incarnation b; I answer A, incarnation a.
    A -> B   I am A, incarnation a; I answer B, incarnation b. We are settled.

A process that sees its own incarnation answered knows that the other side is alive now,
since nobody could know the number before: the session is established. A greeting that
answers anything else changes nothing, so a recording of an old greeting is useless to an
attacker. Every greeting is answered except those that say that the session is settled.

It knows as well where the other side is: each greeting has a *token*, which its sender makes
from the address that it sends it to, and repeats the last token that its sender got. Whoever
repeats the token of the address from which the greeting comes gets what is sent there. A greeting
with any other token may be a copy that a stranger sent from elsewhere, faster than the original.
It establishes nothing, and is answered, so that a process that has moved can repeat the right one.
With a cluster key, greetings also carry the messages of a handshake (`seal.Exchange`).
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from .varint import MalformedError, get, get_text, put, put_text

__all__ = [
    "GREETING",
    "HEAD",
    "LEAST_DATAGRAM",
    "SESSION",
    "TOKEN_BYTES",
    "Greeting",
    "greeting_head",
    "read_greeting_head",
]

VERSION = 3
GREETING = VERSION << 4 | 1
SESSION = VERSION << 4 | 2

HEAD = struct.Struct(">B8sQ")
"""Head of a session's datagram: its sort, the session's tag, its number."""

TOKEN_BYTES = 8

LEAST_DATAGRAM = 320
"""The shortest limit for datagrams: one with an obituary of the longest name fits."""


class Greeting(NamedTuple):
    """The contents of a greeting, without its sender and receiver, which are in its head."""

    answers: int
    """The incarnation of the receiver that the sender knows, or 0."""
    settled: bool
    """For the sender the session is established, and it needs no answer."""
    protocol: str
    life: int
    """How many times the sender has started, as far as it knows (for traces)."""
    messages: int
    """How many messages the sender accepts before it has acknowledged any."""
    room: int
    """The same in bytes of payload."""
    datagram: int
    """The longest datagram that the sender accepts."""
    token: bytes
    """What the receiver repeats to show that it gets what is sent to this address."""
    repeats: bytes
    """The last token that the sender got from the receiver, or zeros."""
    exchange: bytes = b""
    """The sender's message for the agreement on session keys, if there is one."""
    rival: bool = False
    """Another living process has the name of the receiver."""
    connection: int = 0
    """How many times the sender, the same incarnation, has come back with its memory."""
    reports: bool = False
    """The sender reports which messages its application has handled."""

    def encode(self) -> bytes:
        """Return the contents as bytes."""
        numbers = (self.life, self.messages, self.room, self.datagram)
        answers = self.answers.to_bytes(8, "big")
        more = bool(self.connection) << 2 | self.reports << 3
        flags = bytes((self.settled | self.rival << 1 | more,))
        parts = [answers, flags, put_text(self.protocol), *map(put, numbers)]
        if self.connection:
            parts.append(put(self.connection))
        return b"".join([*parts, self.token, self.repeats, self.exchange])

    @classmethod
    def decode(cls, data: bytes) -> Greeting:
        """Return the greeting in these bytes.

        Raises:
            MalformedError: There is none.
        """
        if len(data) < 9 or data[8] > 15:
            raise MalformedError("cut short, or an impossible flag")
        protocol, at = get_text(data, 9)
        if not protocol.isprintable():
            raise MalformedError("a protocol's name with control characters")
        numbers = []
        for _ in range(4):
            n, at = get(data, at)
            numbers.append(n)
        life, messages, room, datagram = numbers
        connection = 0
        if data[8] & 4:
            connection, at = get(data, at)
        token, repeats = data[at : at + TOKEN_BYTES], data[at + TOKEN_BYTES : at + 2 * TOKEN_BYTES]
        exchange = data[at + 2 * TOKEN_BYTES :]
        if len(repeats) < TOKEN_BYTES:
            raise MalformedError("a greeting without a token")
        if len(exchange) > 255:
            raise MalformedError("too many bytes after a greeting")
        if not life or not messages or not room or datagram < LEAST_DATAGRAM:
            raise MalformedError("a greeting that leaves no room")
        answers = int.from_bytes(data[:8], "big")
        settled, rival, reports = [bool(data[8] & bit) for bit in (1, 2, 8)]
        return cls(
            answers,
            settled,
            protocol,
            life,
            messages,
            room,
            datagram,
            token,
            repeats,
            exchange,
            rival,
            connection,
            reports,
        )


def greeting_head(source: str, born: int, target: str) -> bytes:
    """Return the head of a greeting."""
    who = put_text(source) + born.to_bytes(8, "big") + put_text(target)
    return b"%c%b" % (GREETING, who)


def read_greeting_head(data: bytes) -> tuple[str, int, str, int]:
    """Return source, its incarnation, target, and where the contents begin.

    Raises:
        MalformedError: There is no such head.
    """
    source, at = get_text(data, 1)
    born = int.from_bytes(data[at : at + 8], "big")
    target, at = get_text(data, at + 8)
    return source, born, target, at
