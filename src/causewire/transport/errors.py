"""Why a transport cannot accept a message."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.errors import CausewireError, LocalProtocolError

__all__ = ["PeerGone", "Superseded", "UnknownPeer"]


class UnknownPeer(LocalProtocolError):  # noqa: N818 - it names a state, like asyncio.QueueEmpty
    """A message cannot be sent because the address of a destination is not known.

    Attributes:
        names: The destinations that are not known.
    """

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(
            f"no address is known for {', '.join(names)}: name it in peers=, "
            f"call add_peer(), or give the node a resolver="
        )
        self.names = tuple(names)


class PeerGone(CausewireError):  # noqa: N818
    """A message cannot be sent because a destination left, or was given up.

    The message is not kept for a later incarnation, unless it is sent with
    `wait_for_peer=True`.

    Attributes:
        names: The destinations that are gone.
    """

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(f"{', '.join(names)}: left, or given up")
        self.names = tuple(names)


class Superseded(CausewireError):  # noqa: N818
    """Peers have given this process up, or met a later incarnation of it, and ignore it.

    It can continue only as a new incarnation: see `Node.rejoin`.

    Attributes:
        name: The name of this process.
        incarnation: The lowest incarnation that peers accept.
    """

    def __init__(self, name: str, incarnation: int) -> None:
        super().__init__(
            f"{name} has been superseded: its peers accept only incarnation {incarnation} "
            f"and later ones; call rejoin() to continue as a new incarnation"
        )
        self.name = name
        self.incarnation = incarnation
