"""The packets of `fifo`."""

from __future__ import annotations

from typing import Any, Self

from .endpoint import Numbered, Packet, RemoteProtocolError, check_number

__all__ = ["Ack", "FifoMessage", "check_order"]

_new = tuple.__new__


def check_order(mid: int, pid: int) -> None:
    """Check the numbers of a message and of its predecessor.

    Raises:
        RemoteProtocolError: They cannot be such numbers.
    """
    check_number("mid", mid, 1)
    check_number("pid", pid, 0)
    if pid >= mid:
        raise RemoteProtocolError(f"message {mid} cannot come after message {pid}")


class FifoMessage(Packet):
    """Message `mid`, whose predecessor is message `pid`, or 0 if it is the first."""

    __slots__ = ()
    kind = "msg"
    fields = ("mid", "pid", "payload")
    numbers = ("mid", "pid")
    integers = 2

    def __new__(cls, mid: int, pid: int, payload: Any) -> Self:
        check_order(mid, pid)
        return _new(cls, ("msg", mid, pid, payload))


class Ack(Numbered):
    """Your messages to me up to `mid` have been delivered."""

    __slots__ = ()
    kind = "ack"
    numbered_by = "destination"
