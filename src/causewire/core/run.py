"""`MessageRun`: messages in a row, the unit in which drivers carry many at a time.

A driver that packs messages into datagrams takes runs from an endpoint (`take_runs`),
writes them, reads them at the other end and hands them to the peer's endpoint
(`receive_run`). The value is the same all the way, so nothing is repacked.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import lt
from typing import Any, NamedTuple

from .errors import RemoteProtocolError

__all__ = ["MessageRun"]


class MessageRun(NamedTuple):
    """Messages from one process to another, each the successor of the one before."""

    mids: Sequence[int]
    """The numbers of the messages, ascending."""
    pid: int
    """The number of the predecessor of the first message; 0 if it has no predecessor."""
    payloads: Sequence[Any]
    """The payloads, one for each number."""
    per: bool = False
    """Whether a permit will follow for these messages."""
    size: int = 0
    """Total bytes of the payloads, if the driver has measured them; the core does not."""

    def check(self, source: str) -> None:
        """Check that these can be messages in a row: a payload for each ascending number.

        Args:
            source: The process that sent them, for the message of the exception.

        Raises:
            RemoteProtocolError: They cannot.
        """
        mids, pid, payloads, per, _ = self
        try:
            if (
                len(mids) == len(payloads)
                and type(per) is bool
                and type(pid) is int
                and type(mids[0]) is int
                and 0 <= pid < mids[0]
                and (
                    len(mids) == 1
                    # A range ascends by itself, which is what most runs have.
                    or (type(mids) is range and mids.step > 0)
                    # A sum is not an int if there is a float among the numbers.
                    or (type(sum(mids)) is int and all(map(lt, mids, mids[1:])))
                )
            ):
                return
        except (IndexError, TypeError):  # no messages, or numbers that are not numbers
            pass
        raise RemoteProtocolError(
            f"{source!r} sent {len(payloads)} payloads as messages {mids!r:.80} after {pid!r}"
        )

    def split(self, count: int) -> tuple[MessageRun, MessageRun]:
        """Return a run of the first `count` messages, and a run of the others."""
        mids, pid, payloads, per, size = self
        first = sum(map(len, payloads[:count]))
        last = mids[count - 1] if count else pid
        return (
            MessageRun(mids[:count], pid, payloads[:count], per, first),
            MessageRun(mids[count:], last, payloads[count:], per, size - first),
        )
