"""`Departure`: many messages that an endpoint keeps, and looks at, as one.

What a driver takes in one step leaves in one step, and is usually acked receiver by
receiver. So `csps` and `sps` keep many messages that left together, or that wait for the
same permits, as one element of their list of unacknowledged messages. It has the receivers
in the order of the messages, and the number of the last message to each receiver: it is
acknowledged as a whole when each receiver has acked the last message to it. Only what is
not acked as a whole is examined message by message.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .hybrid import HybridPeer

__all__ = ["GONE", "Departure", "messages", "replace_gone"]


class Departure:
    """Many messages in u that left together, to one process each; or one multicast."""

    __slots__ = ("end", "ends", "mid", "multicast", "peers")

    acked = -1
    """A sentinel below every message number; it forces the slow path in `_slide`."""

    def __init__(self, mid: int, peers: list[Any], multicast: bool, ends: dict[Any, int]) -> None:
        self.mid = mid
        """The number of the first message."""
        self.end = mid + (1 if multicast else len(peers))
        """The number behind the last."""
        self.peers = peers
        """The receivers, which are `HybridPeer`: of one message each, or of the multicast."""
        self.multicast = multicast
        self.ends = ends
        """For each receiver, the last message to it."""


def messages(
    mid: int, peers: Sequence[HybridPeer], multicast: bool
) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield the number of each message from `mid` on, and its receivers."""
    if multicast:
        yield mid, tuple([peer.name for peer in peers])
    else:
        for k, peer in enumerate(peers, mid):
            yield k, (peer.name,)


GONE = HybridPeer("")
"""Takes the place of a receiver that was forgotten, where places count as numbers of
messages. It has acked everything, and needs no permit."""
GONE.acked = GONE.granted = 1 << 63


def replace_gone(peers: list[HybridPeer], gone: HybridPeer, multicast: bool) -> None:
    """Remove a receiver from a multicast, or from unicasts of which each keeps its place."""
    if multicast:
        peers[:] = [peer for peer in peers if peer is not gone]
    else:
        peers[:] = [GONE if peer is gone else peer for peer in peers]
