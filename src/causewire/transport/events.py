"""What a transport reports to its driver through `Transport.next_event`.

Five events are for the driver itself, so that it can wake whoever waits: `Delivered`,
`Confirmed`, `Handled`, `MessageWithdrawn` and `Room`. All others say what happened to peers and
messages, and a driver passes them on to the application.
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
    "Handled",
    "MessageBlocked",
    "MessageWithdrawn",
    "NameInUse",
    "NodeCutOff",
    "NodeRejoined",
    "NodeRenumbered",
    "NodeSuperseded",
    "NodeUnread",
    "PeerEvent",
    "PeerForgotten",
    "PeerLeft",
    "PeerMoved",
    "PeerRefused",
    "PeerRestarted",
    "PeerSilent",
    "PeerUp",
    "Room",
    "TraceFailed",
    "VerificationFailed",
]

Address: TypeAlias = tuple[str, int]


class Delivered(NamedTuple):
    """`Transport.messages` was empty, and has messages now."""


class Confirmed(NamedTuple):
    """`session.confirmed` has grown, or the session is over: receipts may be settled."""

    session: Session


class Handled(NamedTuple):
    """The peer's application has handled the messages to it from `low` to `high`."""

    session: Session
    low: int
    high: int


class MessageWithdrawn(NamedTuple):
    """A message to the peer was cancelled, or has expired, before it left."""

    session: Session
    mid: int


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
    been delivered; their receipts fail. `unhandled` is that of `PeerLeft`.
    """

    name: str
    failed: int
    unhandled: int | None = None


class PeerForgotten(NamedTuple):
    """A peer was given up, by this process or another one, or by itself.

    `failed` messages accepted for it are not known to have been delivered. `reason` says why if
    the peer has said so itself: its application does not read (`read_within`). `unhandled` is
    that of `PeerLeft`.
    """

    name: str
    failed: int
    reason: str = ""
    unhandled: int | None = None


class PeerLeft(NamedTuple):
    """A peer closed down properly. `failed` messages accepted for it were not delivered.

    At most `unhandled` messages were delivered, and its application is not known to have handled
    them; None if it does not report that (`reports_handled`). The number is exact if this process
    sent the same messages to all its peers, or messages to this one only.
    """

    name: str
    failed: int
    unhandled: int | None = None


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


class NodeSuperseded(NamedTuple):
    """Peers accept only later incarnations of this process, and ignore this one."""

    name: str
    incarnation: int


class NodeUnread(NamedTuple):
    """The application has not read for `seconds`, although it had promised to (`read_within`).

    The peers of this process give it up; `NodeSuperseded` follows.
    """

    name: str
    seconds: float


class NodeCutOff(NamedTuple):
    """None of several peers answers: this process is probably cut off, and starts over.

    It gives all of them up, and tells nobody that they are gone, since they probably live.
    `seconds` is how long the first of them has not answered.
    """

    name: str
    seconds: float


class NodeRejoined(NamedTuple):
    """This process continues as a new incarnation; its earlier receipts have failed."""

    name: str
    incarnation: int


class NodeRenumbered(NamedTuple):
    """This process took a higher incarnation, since a peer knows of a higher one.

    The clock was probably set back since an earlier start.
    """

    name: str
    incarnation: int


class NameInUse(NamedTuple):
    """Another living process has the name of this one; `informant` knows both."""

    name: str
    informant: str


class TraceFailed(NamedTuple):
    """The trace could not be written, and ends here; messages are not affected."""

    reason: str


class VerificationFailed(NamedTuple):
    """Datagrams from an address did not verify: probably its cluster key differs."""

    address: Address
    datagrams: int


InOrder = PeerUp | PeerRestarted | PeerLeft | PeerForgotten
"""Events that may take their place between messages."""

PeerEvent: TypeAlias = (
    PeerUp
    | PeerSilent
    | PeerRestarted
    | PeerLeft
    | PeerMoved
    | PeerRefused
    | PeerForgotten
    | MessageBlocked
    | NameInUse
    | NodeCutOff
    | NodeRejoined
    | NodeRenumbered
    | NodeSuperseded
    | NodeUnread
    | TraceFailed
    | VerificationFailed
)
"""Events that an application may want to know."""

Event: TypeAlias = Delivered | Confirmed | Handled | MessageWithdrawn | Room | PeerEvent
"""Everything that `Transport.next_event` returns."""
