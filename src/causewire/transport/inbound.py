"""Messages of one peer that arrived and have not reached the protocol yet.

The messages of a peer form a chain: each names its predecessor. Datagrams arrive in any
order, so runs that arrive before their predecessor wait here (`early`), and parts of long
messages wait for the other parts (`pieces`). Messages whose turn it is wait for room in
the application's queue (`ready`); they are handed to the protocol, and so acknowledged,
when there is room. The protocol therefore sees every message once and in order, and memory
is bounded by what the peer may have unacknowledged.

Every message passes through here in amortised logarithmic time, whatever the order of
arrival: runs that wait are kept in a heap by predecessor, and each enters and leaves it
once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from heapq import heappop, heappush

from ..core.run import MessageRun
from .contents import Piece
from .varint import MalformedError, get
from .withdrawn import Withdrawn

__all__ = ["OVERHEAD", "Inbound"]

OVERHEAD = 128
"""Bytes charged for each waiting message in addition to its payload: about what Python
needs for its number, its entry in lists and the objects around it."""


class _Assembly:
    """The parts of a long message that have arrived.

    There is no dictionary for one part alone, so that a datagram with parts of many messages
    takes little memory.
    """

    __slots__ = ("first", "others", "size")

    def __init__(self, piece: Piece) -> None:
        self.first = piece
        """The part that arrived first."""
        self.others: dict[int, bytes | memoryview] | None = None
        """The data of the others."""
        self.size = len(piece.data)

    @property
    def parts(self) -> int:
        """How many parts have arrived."""
        return 1 if self.others is None else 1 + len(self.others)

    def new(self, piece: Piece) -> bool:
        """Return whether a part that is not the first to arrive is new.

        Raises:
            MalformedError: The part contradicts the first.
        """
        first = self.first
        if (piece.pid, piece.per, piece.parts, piece.withdrawn) != (
            first.pid,
            first.per,
            first.parts,
            first.withdrawn,
        ):
            raise MalformedError("parts of one message that do not fit together")
        return piece.part != first.part and (self.others is None or piece.part not in self.others)

    def add(self, piece: Piece) -> None:
        """Add a part that is new."""
        if self.others is None:
            self.others = {}
        self.others[piece.part] = piece.data
        self.size += len(piece.data)

    @property
    def start(self) -> bytes | memoryview | None:
        """The first bytes of the message, if they have arrived."""
        first = self.first
        return first.data if not first.part else (self.others or {}).get(0)

    def payload(self) -> bytes:
        """Return the message, as all parts have arrived."""
        first = self.first
        parts = {first.part: first.data, **(self.others or {})}
        payload = b"".join([parts[k] for k in range(first.parts)])
        return Withdrawn(payload) if first.withdrawn else payload


class Inbound:
    """Messages of one peer, on their way from datagrams to the protocol."""

    __slots__ = (
        "_early",
        "_early_pids",
        "_heads",
        "_longest",
        "_piece_mids",
        "_pieces",
        "bytes",
        "messages",
        "ready",
        "tail",
    )

    def __init__(self, longest: int, heads: int = 0) -> None:
        self._longest = longest
        self._heads = heads
        """The most bytes of the list in front of the payload of a flagged message."""
        self.tail = 0
        """The last message of the chain that has arrived without a gap before it."""
        self._early: dict[int, MessageRun] = {}
        """Runs whose predecessor is missing, by its number."""
        self._early_pids: list[int] = []
        """The keys of `_early`, as a heap."""
        self._pieces: dict[int, _Assembly] = {}
        self._piece_mids: list[int] = []
        """The keys of `_pieces`, as a heap; some may have been assembled since."""
        self.ready: deque[MessageRun] = deque()
        self.messages = 0
        """Messages that wait here, including those of which only parts have arrived."""
        self.bytes = 0
        """What they are charged: their payloads, and `OVERHEAD` for each."""

    def add(self, run: MessageRun) -> MessageRun | None:
        """Accept messages that arrived, and return those of them that are new.

        Raises:
            MalformedError: They contradict what arrived before.
        """
        mids, pid = run.mids, run.pid
        tail = self.tail
        if pid == tail:
            self.tail = mids[-1]
            self.ready.append(run)
            self._charge(run)
            if self._early_pids or self._piece_mids:
                self._join()
            return run
        if mids[-1] <= tail:
            return None
        if pid < tail:
            return self.add(_after(run, tail))
        return self._add_early(run)

    def _charge(self, run: MessageRun) -> None:
        count = len(run.mids)
        self.messages += count
        self.bytes += run.size + OVERHEAD * count

    def _discharge(self, run: MessageRun) -> None:
        count = len(run.mids)
        self.messages -= count
        self.bytes -= run.size + OVERHEAD * count

    def _add_early(self, run: MessageRun) -> MessageRun | None:
        """Keep a run whose predecessor is missing, without what is kept already."""
        early = self._early
        while (known := early.get(run.pid)) is not None:
            if known.mids[0] != run.mids[0]:
                raise MalformedError(f"message {run.pid} cannot have two successors")
            if run.mids[-1] <= known.mids[-1]:
                return None
            run = _after(run, known.mids[-1])
        early[run.pid] = run
        heappush(self._early_pids, run.pid)
        self._charge(run)
        return run

    def _join(self) -> None:
        """Move runs from `early` to `ready` as far as the chain is complete.

        Messages that the chain has passed are dropped: they arrived again in another run.
        """
        pids = self._early_pids
        while pids and pids[0] <= self.tail:
            run = self._early.pop(heappop(pids))
            self._discharge(run)
            if run.mids[-1] <= self.tail:
                continue
            try:
                run = run if run.pid == self.tail else _after(run, self.tail)
            except MalformedError:
                continue  # it contradicts the chain, which has been accepted
            self.tail = run.mids[-1]
            self.ready.append(run)
            self._charge(run)
        mids = self._piece_mids
        while mids and mids[0] <= self.tail:
            mid = heappop(mids)
            if mid in self._pieces:
                self._drop(mid)

    def add_piece(self, piece: Piece) -> MessageRun | None:
        """Accept a part of a message, and return the message if that completes it.

        Raises:
            MalformedError: The part contradicts what arrived before.
        """
        mid = piece.mid
        known = self._early.get(piece.pid)
        if mid <= self.tail or (known is not None and known.mids[0] == mid):
            return None
        assembly = self._pieces.get(mid)
        if assembly is None:
            self._check_length(piece, None)
            assembly = self._pieces[mid] = _Assembly(piece)
            heappush(self._piece_mids, mid)
            self.messages += 1
            self.bytes += OVERHEAD
        elif assembly.new(piece):
            self._check_length(piece, assembly)
            assembly.add(piece)
        else:
            return None
        self.bytes += len(piece.data) + OVERHEAD
        if assembly.parts < piece.parts:
            return None
        self._drop(mid)
        payload = assembly.payload()
        return self.add(MessageRun((mid,), piece.pid, (payload,), piece.per, len(payload)))

    def _check_length(self, piece: Piece, assembly: _Assembly | None) -> None:
        """Check that a message is not too long with a part that is to be added.

        The length of its list is in the first part; until that has arrived, it may be any.

        Raises:
            MalformedError: It is too long, or its list is.
        """
        longest = self._longest
        if piece.per and self._heads:
            start = assembly.start if assembly and piece.part else None
            if not piece.part:
                start = piece.data
            longest += self._heads if start is None else self._head(start)
        if len(piece.data) + (assembly.size if assembly else 0) > longest:
            raise MalformedError("a message that is longer than allowed")

    def _head(self, start: bytes | memoryview) -> int:
        """Return how many bytes of a message that begins like this are not its payload.

        Raises:
            MalformedError: The list is too long.
        """
        listed, at = get(bytes(start[:8]), 0)
        if listed > self._heads:
            raise MalformedError("a list that is longer than allowed")
        return at + listed

    def _drop(self, mid: int) -> None:
        """Forget the parts of a message. Its entry in the heap is skipped later."""
        assembly = self._pieces.pop(mid)
        self.messages -= 1
        self.bytes -= assembly.size + OVERHEAD * (1 + assembly.parts)

    def drop_parts(self) -> None:
        """Forget all parts of messages, as they will be sent again, perhaps cut up otherwise."""
        for mid in list(self._pieces):
            self._drop(mid)
        self._piece_mids.clear()

    def take(self, most: int) -> MessageRun:
        """Return the next messages that are ready, at most `most`."""
        run = self.ready.popleft()
        if len(run.mids) > most:
            run, rest = run.split(most)
            self.ready.appendleft(rest)
        self._discharge(run)
        return run

    def closes_gap(self, pid: int, last: int) -> bool:
        """Return whether messages after `pid`, up to `last`, contain the next in the chain."""
        return pid <= self.tail < last

    def gap(self) -> tuple[int, int] | None:
        """Return the first message that waits for a predecessor, and that predecessor."""
        found: tuple[int, int] | None = None
        if self._early_pids:
            pid = self._early_pids[0]
            found = self._early[pid].mids[0], pid
        mids = self._piece_mids
        while mids and mids[0] not in self._pieces:
            heappop(mids)
        if mids:
            pid = self._pieces[mids[0]].first.pid
            if pid > self.tail and (found is None or mids[0] < found[0]):
                found = mids[0], pid
        return found


def _after(run: MessageRun, mid: int) -> MessageRun:
    """Return the messages of a run after message `mid`, which must be one of them."""
    k = bisect_right(run.mids, mid)
    before = run.mids[k - 1] if k else run.pid
    if before != mid:
        raise MalformedError(f"message {run.mids[k]} cannot be the one after {before}")
    return run.split(k)[1]
