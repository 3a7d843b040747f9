"""What a group sends to its members: at once while there is room, and otherwise in its turn."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from ..core.endpoint import LocalProtocolError
from ..node import Closed, Full, Node, PeerGone, Receipt, Superseded, UnknownPeer
from ..store import StoreFailed
from .entries import Frame
from .frames import MARK, Kind, put_text
from .parts import Lane, cut, part_size
from .tracing import Tracing
from .wire import put_frame

__all__ = ["Outbox"]


class Outbox:
    """Frames of a group, in the order in which they leave.

    Args:
        group: The name of the group.
        node: The node that sends.
        tracing: It learns under which number the node has accepted a frame.
        wake: Called when frames that had to wait have left.
        lost: Called with the name of a member whose address is not known.
    """

    def __init__(
        self,
        group: str,
        node: Node,
        tracing: Tracing,
        wake: Callable[[], object],
        lost: Callable[[str], object],
    ) -> None:
        self._group = group
        self._node = node
        self._tracing = tracing
        self._wake = wake
        self._lost = lost
        self._short = part_size(node)
        """Messages up to this length are never too long for the node."""
        self._waiting: deque[tuple[tuple[str, ...], bytes] | tuple[str, str]] = deque()
        self._there = asyncio.Event()
        self._over = False
        self.kept = 0
        """How many frames had to wait so far."""
        self.gone_on = 0
        """How many of these wait no longer."""
        self.receipt: Receipt | None = None
        """That of the last frame that the node took."""

    def __len__(self) -> int:
        return len(self._waiting)

    def introduce(self, name: str, address: str) -> None:
        """Have the node learn the address of a member, before anything is sent to it."""
        if address and name != self._node.name and name not in self._node.peers_up():
            self._keep((name, address))

    def post(self, to: tuple[str, ...], frame: Frame) -> None:
        """Send a frame, at once if possible, and in parts if it is too long."""
        if not to:
            return
        data = put_frame(frame)
        payload = MARK + bytes((Kind.GROUP,)) + put_text(self._group) + data
        if len(payload) <= self._node.longest_message:
            self._send_soon(to, payload)
            return
        for part in cut(self._group, Lane.LOG, data, self._short):
            self._send_soon(to, part)

    def end(self) -> None:
        """Stop when everything that waits has left."""
        self._over = True
        self._there.set()

    async def work(self) -> None:
        """Send what could not be sent at once."""
        while self._waiting or not self._over:
            while self._waiting:
                to, what = self._waiting[0]
                try:
                    if isinstance(to, str):
                        with suppress(OSError, ValueError):
                            await self._node.add_peer(to, str(what))
                    else:
                        await self._send(to, what)  # type: ignore[arg-type]
                except (Closed, StoreFailed, Superseded):
                    self._waiting.clear()
                    return
                self._waiting.popleft()
                self.gone_on += 1
            self._wake()
            if not self._over:
                self._there.clear()
                await self._there.wait()

    def _send_soon(self, to: tuple[str, ...], payload: bytes) -> None:
        if not self._waiting:
            try:
                self.receipt = self._node.send_nowait(to, payload)
            except (Full, PeerGone, UnknownPeer, Closed, Superseded):
                pass
            else:
                self._tracing.accepted(self.receipt.mid)
                return
        self._keep((to, payload))

    def _keep(self, what: tuple[tuple[str, ...], bytes] | tuple[str, str]) -> None:
        self._waiting.append(what)
        self.kept += 1
        self._there.set()

    async def _send(self, to: tuple[str, ...], payload: bytes) -> None:
        names = list(to)
        while names:
            try:
                # The member may be the next incarnation of one that the node knows as gone.
                # Not `node.send`, which waits for the store: one write takes all that have left.
                self.receipt = await Node.send(self._node, names, payload, wait_for_peer=True)
                return
            except LocalProtocolError:  # the address of a member is not known
                lost = [name for name in names if self._node.address_of(name) is None]
            names = [name for name in names if name not in lost]
            for name in lost:
                self._lost(name)
