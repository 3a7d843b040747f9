"""Payloads that a driver replaces after the send.

A protocol does not look at payloads, so a driver may put another in the place of one as long as
nobody else has seen it. The number of the message, its place in the order, and everything that
depends on it stay as they are.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

from .fifo import FifoEndpoint

__all__ = ["replace_payload"]


def replace_payload(endpoint: FifoEndpoint[Any], name: str, mid: int, payload: Any) -> Any:
    """Replace the payload of a message that is not acknowledged, and return the former one.

    What `take_runs` or `take_packets` has returned already is not changed.

    Args:
        endpoint: The sender.
        name: The destination; the copies of a multicast are replaced one by one.
        mid: The number of the message.
        payload: The new payload.

    Raises:
        LookupError: There is no such message.
    """
    peer = endpoint._peers[name]
    k = bisect_left(peer.mids, mid, peer.head)
    if peer.mids[k] != mid:
        raise LookupError(f"message {mid} was not sent to {name!r}, or is acknowledged")
    former = peer.payloads[k]
    peer.payloads[k] = payload
    return former
