"""What a transport tells its driver, beside deliveries."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from .watch import Reason

__all__ = [
    "Event",
    "MessageBlocked",
    "PeerLeft",
    "PeerMoved",
    "PeerRefused",
    "PeerRestarted",
    "PeerSilent",
    "PeerUp",
    "Superseded",
]

Address: TypeAlias = tuple[str, int]


class PeerUp(NamedTuple):
    """A peer was reached: for the first time, again after silence, or as a new one."""

    name: str


class PeerSilent(NamedTuple):
    """A peer owes an answer, and nothing has come from it for some time."""

    name: str
    seconds: float


class PeerRestarted(NamedTuple):
    """A peer is gone and came back as new, without its memory.

    `failed` messages had been accepted for it and are not known to have been
    delivered; their receipts say so.
    """

    name: str
    failed: int


class PeerLeft(NamedTuple):
    """A peer closed down, and said so. What was accepted for it has failed."""

    name: str
    failed: int


class PeerMoved(NamedTuple):
    """A peer has another address now; it goes on as before."""

    name: str
    address: Address


class PeerRefused(NamedTuple):
    """A peer cannot be talked to: it speaks another protocol, or comes back as new
    to a protocol that cannot go on with that."""

    name: str
    reason: str


class MessageBlocked(NamedTuple):
    """Messages have been held back for long; the reason says which, and why, in words."""

    reason: Reason


class Superseded(NamedTuple):
    """A later incarnation of this very process was met: nobody will listen to this one."""

    name: str
    incarnation: int


Event: TypeAlias = (
    PeerUp
    | PeerSilent
    | PeerRestarted
    | PeerLeft
    | PeerMoved
    | PeerRefused
    | MessageBlocked
    | Superseded
)
