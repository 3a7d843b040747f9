"""The packets of the protocols on positive acknowledgements (`pak`)."""

from __future__ import annotations

from typing import Any, Self

from .endpoint import Packet, RemoteProtocolError, check_number

__all__ = ["Ack", "PakMessage"]

_new = tuple.__new__


class PakMessage(Packet):
    """A broadcast, and the vector time of its release, modulo k."""

    __slots__ = ()
    kind = "msg"
    fields = ("vt", "payload")

    def __new__(cls, vt: tuple[int, ...], payload: Any) -> Self:
        if type(vt) is not tuple:
            raise RemoteProtocolError(f"a vector time must be a tuple, not {vt!r}")
        for count in vt:
            check_number("an entry of a vector time", count, 0)
        return _new(cls, ("msg", vt, payload))

    @property
    def integers(self) -> int:  # type: ignore[override]
        return len(self[1])


class Ack(Packet):
    """Your broadcast with this number, modulo k, has been delivered here."""

    __slots__ = ()
    kind = "ack"
    fields = ("number",)
    integers = 1

    def __new__(cls, number: int) -> Self:
        check_number("number", number, 0)
        return _new(cls, ("ack", number))
