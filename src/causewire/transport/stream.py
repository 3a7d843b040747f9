"""The control packets of a protocol, as an ordered stream within a session.

Packets that are neither messages nor watermarks (`adaptive` has some) are records in a stream
of bytes. The stream is cut to fit into datagrams, and what was in a lost datagram is sent
again. The other end puts it together by offsets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from .budget import Budget
from .frames import CONTROL_HEAD, put_control
from .varint import MalformedError, get, put

__all__ = ["ControlStream"]

LONGEST = 1 << 20
"""The most bytes of a record, and of what waits for something before it."""

Chunk = tuple[int, bytes]
"""A part of the stream: its offset, and its bytes."""


class ControlStream:
    """Both directions of the stream."""

    __slots__ = ("_early", "_early_bytes", "_next", "_offset", "_read", "records", "resend")

    def __init__(self) -> None:
        self.records: deque[bytes] = deque()
        """What has not been sent yet."""
        self._offset = 0
        """The offset of the first of these."""
        self.resend: deque[Chunk] = deque()
        self._next = 0
        """The offset up to which everything has arrived."""
        self._early: dict[int, bytes] = {}
        self._early_bytes = 0
        self._read = b""
        """The beginning of a record of which the end has not arrived."""

    @property
    def pending(self) -> bool:
        """Whether there is anything to send."""
        return bool(self.records or self.resend)

    def add(self, record: bytes) -> None:
        """Queue a record."""
        self.records.append(put(len(record)) + record)

    def fill(self, budget: Budget, chunks: list[Chunk]) -> bool:
        """Put as much into a datagram as fits, and return whether that is anything.

        `chunks` gets what was put in.
        """
        before = len(chunks)
        while self.pending and (space := budget.left - CONTROL_HEAD) > 0:
            if self.resend:
                offset, data = self.resend.popleft()
                if len(data) > space:
                    self.resend.appendleft((offset + space, data[space:]))
                    data = data[:space]
            else:
                offset, data = self._offset, b"".join(self.records)
                self.records.clear()
                if len(data) > space:
                    self.records.append(data[space:])
                    data = data[:space]
                self._offset += len(data)
            budget.put(put_control(offset, data))
            chunks.append((offset, data))
        return len(chunks) > before

    def lost(self, chunks: Iterable[Chunk]) -> None:
        """Queue the chunks of a lost datagram to be sent again."""
        self.resend.extend(chunks)

    def acceptable(self, chunks: list[Chunk]) -> bool:
        """Return whether there is room for chunks that arrived."""
        if self._early_bytes + sum(len(data) for _, data in chunks) <= LONGEST:
            return True
        return any(offset <= self._next < offset + len(data) for offset, data in chunks)

    def receive(self, chunks: list[Chunk]) -> list[bytes]:
        """Accept chunks that arrived, and return the records that are complete now.

        Raises:
            MalformedError: A record is too long.
        """
        for offset, data in chunks:
            known = self._early.get(offset, b"")
            if offset + len(data) > self._next and len(data) > len(known):
                self._early[offset] = data
                self._early_bytes += len(data) - len(known)
        arrived = [self._read]
        while self._early:
            offset = min(self._early)
            if offset > self._next:
                break
            data = self._early.pop(offset)
            self._early_bytes -= len(data)
            if offset + len(data) > self._next:
                arrived.append(data[self._next - offset :])
                self._next = offset + len(data)
        return self._cut(b"".join(arrived))

    def _cut(self, data: bytes) -> list[bytes]:
        records = []
        at = 0
        while at < len(data):
            try:
                size, start = get(data, at)
            except MalformedError:
                break  # its end has not arrived
            if size > LONGEST:
                raise MalformedError("a control packet that is too long")
            if start + size > len(data):
                break
            records.append(data[start : start + size])
            at = start + size
        self._read = data[at:]
        return records
