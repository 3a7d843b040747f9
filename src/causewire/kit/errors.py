"""What can go wrong in the kit."""

from __future__ import annotations

from ..core.errors import CausewireError

__all__ = ["GroupClosed", "JoinFailed", "KitError", "PeerLost", "RequestFailed"]


class KitError(CausewireError):
    """The kit cannot do what it was asked to do."""


class RequestFailed(KitError):  # noqa: N818 - it names what happened, like DeliveryFailed
    """A request was answered by an error.

    Attributes:
        peer: The name of the process that was asked.
        kind: The class name of the error there; `"Busy"` if that process has too many
            requests, and `"NoSuchService"` if it does not serve such requests.
        message: The text of the error there.
    """

    def __init__(self, peer: str, kind: str, message: str) -> None:
        super().__init__(peer, kind, message)
        self.peer = peer
        self.kind = kind
        self.message = message

    def __str__(self) -> str:
        return f"{self.peer}: {self.kind}: {self.message}"


class PeerLost(RequestFailed):
    """The process that was asked has left, was given up or was restarted, and has not answered.

    Whether it has processed the request is not known.
    """

    def __str__(self) -> str:
        return f"{self.peer}: {self.message}"


class JoinFailed(KitError):  # noqa: N818
    """No seed has let this process into the group in time."""


class GroupClosed(KitError):  # noqa: N818
    """This process is not a member of the group any more.

    Attributes:
        reason: Why, in words, without what to do about it.
    """

    def __init__(self, reason: str, advice: str = "") -> None:
        super().__init__(f"{reason}; {advice}" if advice else reason)
        self.reason = reason
