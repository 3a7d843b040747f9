"""What a transport reports to its driver through `Transport.next_event`.

Three events are for the driver itself, so that it can wake whoever waits: `Delivered`,
`Confirmed` and `Room`. All others say what happened to peers and messages, and a driver
passes them on to the application.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from .watch import Reason

if TYPE_CHECKING:
    from .session import Session

__all__ = [
    "Address",
    "Confirmed",
    "Delivered",
    "Event",
    "MessageBlocked",
    "PeerEvent",
    "PeerLeft",
    "PeerMoved",
    "PeerRefused",
    "PeerRestarted",
    "PeerSilent",
    "PeerUp",
    "Room",
    "Superseded",
]

Address: TypeAlias = tuple[str, int]


class Delivered(NamedTuple):
    """`Transport.messages` was empty, and has messages now."""


class Confirmed(NamedTuple):
    """`session.confirmed` has grown, or the session is over: receipts may be settled."""

    session: Session


class Room(NamedTuple):
    """A send that was turned down for lack of room may succeed now."""


class PeerUp(NamedTuple):
    """A peer was reached: for the first time, again after silence, or as a new incarnation."""

    name: str


class PeerSilent(NamedTuple):
    """A peer has not answered for `seconds`."""

    name: str
    seconds: float


class PeerRestarted(NamedTuple):
    """A peer came back as a new incarnation, without its memory.

    `failed` messages had been accepted for the old incarnation and are not known to have
    been delivered; their receipts fail.
    """

    name: str
    failed: int


class PeerLeft(NamedTuple):
    """A peer closed down properly. `failed` messages accepted for it were not delivered."""

    name: str
    failed: int


class PeerMoved(NamedTuple):
    """A peer has another address now; its session continues."""

    name: str
    address: Address


class PeerRefused(NamedTuple):
    """This process and a peer cannot work together; `reason` says why."""

    name: str
    reason: str


class MessageBlocked(NamedTuple):
    """Messages have been held back for long; `reason` says which, and why."""

    reason: Reason


class Superseded(NamedTuple):
    """A later incarnation of this process exists: peers ignore this one."""

    name: str
    incarnation: int


PeerEvent: TypeAlias = (
    PeerUp
    | PeerSilent
    | PeerRestarted
    | PeerLeft
    | PeerMoved
    | PeerRefused
    | MessageBlocked
    | Superseded
)
"""Events that an application may want to know."""

Event: TypeAlias = Delivered | Confirmed | Room | PeerEvent
"""Everything that `Transport.next_event` returns."""
