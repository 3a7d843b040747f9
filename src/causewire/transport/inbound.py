"""What came from one peer and has not reached the protocol yet.

Messages of a peer form a chain: each names its predecessor. Datagrams come in any
order, so what arrives before its predecessor waits here (`early`), and parts of
long messages wait for the others (`pieces`). What is next in the chain waits for
room in the application's queue (`ready`), and is handed to the protocol when there
is some; only then is it acknowledged. So the protocol sees every message once and
in order, and memory is bounded by what the peer may have unacknowledged.
"""

from __future__ import annotations

from collections import deque

from ..core.run import MessageRun
from .frames import Piece
from .varint import MalformedError

__all__ = ["Inbound"]


class _Assembly:
    """The parts of a long message that are here."""

    __slots__ = ("count", "parts", "per", "pid", "size")

    def __init__(self, piece: Piece) -> None:
        self.pid = piece.pid
        self.per = piece.per
        self.count = piece.parts
        self.parts: dict[int, bytes | memoryview] = {}
        self.size = 0


class Inbound:
    """Messages of one peer, on their way from datagrams to the protocol."""

    __slots__ = ("_early", "_longest", "_pieces", "bytes", "messages", "ready", "tail")

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self.tail = 0
        """The last message of the chain that is here, or was; all before it, too."""
        self._early: dict[int, MessageRun] = {}
        """Single messages whose predecessor is missing, by its number."""
        self._pieces: dict[int, _Assembly] = {}
        self.ready: deque[MessageRun] = deque()
        self.messages = 0
        """How many messages wait here, those of which only parts are here included."""
        self.bytes = 0

    def add(self, run: MessageRun) -> bool:
        """Messages arrived; returns whether any of them is new."""
        mids, pid = run.mids, run.pid
        if pid == self.tail:
            self.tail = mids[-1]
            self.ready.append(run)
            self.messages += len(mids)
            self.bytes += run.size
            if self._early or self._pieces:
                self._join()
            return True
        if mids[-1] <= self.tail:
            return False
        return self._add_each(run)

    def _add_each(self, run: MessageRun) -> bool:
        """A run with a gap in front of it, or one that was here in part."""
        mids, pid, payloads, per, _ = run
        early, new = self._early, False
        for mid, payload in zip(mids, payloads, strict=True):
            if mid > self.tail:
                if pid < self.tail:
                    raise MalformedError(f"message {mid} cannot be the one after {pid}")
                known = early.get(pid)
                if known is None:
                    early[pid] = MessageRun((mid,), pid, (payload,), per, len(payload))
                    self.messages += 1
                    self.bytes += len(payload)
                    new = True
                elif known.mids[0] != mid:
                    raise MalformedError(f"message {pid} cannot have two successors")
            pid = mid
        self._join()
        return new

    def _join(self) -> None:
        """Move what is next in the chain from the early ones to the ready ones.

        What the chain has passed is dropped: it came again in another datagram.
        """
        early = self._early
        while self.tail in early:
            run = early.pop(self.tail)
            self.tail = run.mids[0]
            self.ready.append(run)
        for pid in [pid for pid in early if pid < self.tail]:
            run = early.pop(pid)
            self.messages -= 1
            self.bytes -= run.size
        for mid in [mid for mid in self._pieces if mid <= self.tail]:
            self._drop(mid)

    def add_piece(self, piece: Piece) -> bool:
        """A part of a message arrived; returns whether it is new."""
        mid = piece.mid
        known = self._early.get(piece.pid)
        if mid <= self.tail or (known is not None and known.mids[0] == mid):
            return False
        assembly = self._pieces.get(mid)
        if assembly is None:
            assembly = self._pieces[mid] = _Assembly(piece)
            self.messages += 1
        elif piece[1:3] != (assembly.pid, assembly.per) or piece.parts != assembly.count:
            raise MalformedError("parts of one message that do not fit together")
        if piece.part in assembly.parts:
            return False
        if assembly.size + len(piece.data) > self._longest:
            raise MalformedError("a message that is longer than allowed")
        assembly.parts[piece.part] = piece.data
        assembly.size += len(piece.data)
        self.bytes += len(piece.data)
        if len(assembly.parts) == assembly.count:
            self._drop(mid)
            parts = assembly.parts
            payload = b"".join([parts[k] for k in range(assembly.count)])
            self.add(MessageRun((mid,), assembly.pid, (payload,), assembly.per, len(payload)))
        return True

    def _drop(self, mid: int) -> None:
        assembly = self._pieces.pop(mid)
        self.messages -= 1
        self.bytes -= assembly.size

    def take(self, most: int) -> MessageRun:
        """The next messages that are ready, `most` at the most."""
        run = self.ready.popleft()
        if len(run.mids) > most:
            run, rest = run.split(most)
            self.ready.appendleft(rest)
        self.messages -= len(run.mids)
        self.bytes -= run.size
        return run

    def gap(self) -> tuple[int, int] | None:
        """If something waits for a predecessor: the first such message, and that."""
        waiting = [(run.mids[0], pid) for pid, run in self._early.items()]
        waiting += [(mid, one.pid) for mid, one in self._pieces.items() if one.pid > self.tail]
        return min(waiting, default=None)
