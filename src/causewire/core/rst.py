"""The matrix protocol of Raynal, Schiper and Toueg (RST).

**What it guarantees.** Causal delivery of unicasts and multicasts within a fixed group,
over a reliable network that may delay, reorder and duplicate. Nothing waits at the sender,
and nothing waits at the receiver longer than causality requires: it is latency-optimal. The
price is a matrix in every message (Almeida, section 3.1; Kshemkalyani and Singhal, section
1).

**How it works.** Every process keeps a matrix of what it knows to have been sent, and every
message carries its sender's matrix as it was just before. Message m from k may be delivered
at j when everything that is in its causal past and was sent to j has been delivered there:
that is, when column j of m's matrix has nothing that j lacks. Then j takes over what m's
sender knew, and counts m itself for *all* its destinations, so m carries those too (ERRATA
7.2). All this happens before the application sees m, because what it sends in answer must
depend on m (ERRATA 7.1).

**Message numbers, not counts.** The papers store in M[k][j] the number of messages from k
to j in the causal past. Here it is the `mid` of the last one, or 0 if there is no such
message. That is the same information: the messages from k to j are totally ordered by
causality and every causal past contains a prefix of them, so the last one determines how
many there are. But it names the message that is waited for, which makes `blocked` exact,
and it has two consequences:

*   *The vector of deliveries (DELIV) is column j of j's own matrix.* What is in j's causal
    past and was sent to j has been delivered there, because the protocol is causal, and
    what has been delivered is in the causal past.

*   *To merge two matrices, take the larger of each pair of rows, as a whole.* Row k is a
    function of how many of k's sends are in the causal past, which are a prefix, too. So
    all rows k in the system are ordered, entry by entry, and hence as tuples: `max` finds
    the later one. Rows are only rebuilt by their owner's sends and by the receivers of
    these; all matrices share them. If neither of two rows k covers the other, somebody lies.

    invariant   M[k][j] = the last message from k to j in my causal past, j != k;
                M[k][me] = the last message from k that was delivered here;
                M[k][k] = 0: a copy to oneself is delivered inside `send`, never
                travels, and nothing has to wait for it.

**Duplicates** are recognised, by M[k][me] or in the receive buffer, and dropped. Loss is
fatal, as in any protocol without acknowledgements.

**Forgetting a member.** Nothing waits for its messages any more. The matrix keeps its size.
It says for each living sender which messages must be delivered first, so nothing is lost.

Cost: n*n + 1 integers and the destinations per message; O(n) steps to send (the matrix
itself is shared, not copied), O(n*n) to receive, in n comparisons of rows.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from operator import gt
from typing import Any, Self, TypeAlias

from .endpoint import Blocked, Footprint, Packet, RemoteProtocolError, check_number
from .group import GroupEndpoint
from .held import HoldingBuffer

__all__ = ["Matrix", "Rst", "RstMessage"]

_new = tuple.__new__

Row: TypeAlias = tuple[int, ...]
Matrix: TypeAlias = tuple[Row, ...]
"""Rows are senders, columns destinations, both in the order of the group."""


class RstMessage(Packet):
    """Message `mid` to `dests`, with the matrix of its sender just before it."""

    __slots__ = ()
    kind = "msg"
    fields = ("mid", "dests", "matrix", "payload")

    def __new__(cls, mid: int, dests: tuple[str, ...], matrix: Matrix, payload: Any) -> Self:
        check_number("mid", mid, 1)
        if type(dests) is not tuple or not all(isinstance(d, str) and d for d in dests):
            raise RemoteProtocolError(f"destinations must be a tuple of names, not {dests!r}")
        if not dests or dests != tuple(sorted(set(dests))):
            raise RemoteProtocolError(f"destinations must be sorted, each once, not {dests!r}")
        if type(matrix) is not tuple or not all(
            type(row) is tuple and len(row) == len(matrix) for row in matrix
        ):
            raise RemoteProtocolError(f"a matrix must be a square of tuples, not {matrix!r}")
        for row in matrix:
            for n in row:
                check_number("an entry of a matrix", n, 0)
        return _new(cls, ("msg", mid, dests, matrix, payload))

    @property
    def integers(self) -> int:  # type: ignore[override]
        return 1 + len(self[3]) ** 2

    @property
    def identifiers(self) -> int:  # type: ignore[override]
        return len(self[2])


class Rst(GroupEndpoint):
    """Causal unicast and multicast with a matrix of message numbers."""

    __slots__ = ("_held", "_matrix", "_my_index")

    def __init__(self, me: str, group: Iterable[str] | None = None) -> None:
        super().__init__(me, group)
        n = len(self.group)
        self._my_index = self.index[me]
        self._matrix: Matrix = ((0,) * n,) * n
        self._held = HoldingBuffer()

    def send(self, to: str | Collection[str], payload: Any) -> int:
        names = self._members(to)
        mid = self._mid = self._mid + 1
        others = tuple(name for name in names if name != self.me)
        if others:
            message = _new(RstMessage, ("msg", mid, others, self._matrix, payload))
            self._packets.extend([(name, message) for name in others])
            self._matrix = self._counted(self._matrix, self._my_index, message)
        if len(others) < len(names):
            self._deliver(self.me, mid, payload)
        return mid

    def receive(self, source: str, packet: Packet) -> None:
        k = self._member(source)
        if self._forgotten and source in self._forgotten:
            return
        if packet.__class__ is not RstMessage:
            raise RemoteProtocolError(f"{source!r} sent {packet!r}, which is not a packet of rst")
        if self._known(source, k, packet):
            return
        self._held.hold(source, packet[1], packet, self._needs(packet))
        self._settle()

    def _settle(self) -> None:
        for name, message in self._held.take():
            merged = tuple(map(max, self._matrix, message[3]))
            self._matrix = self._counted(merged, self.index[name], message)
            self._held.delivered(name, message[1])
            self._deliver(name, message[1], message[4])

    def _counted(self, matrix: Matrix, k: int, message: Packet) -> Matrix:
        """Return the matrix after member k has sent `message`."""
        _, mid, dests, *_ = message
        row = list(matrix[k])
        for name in dests:
            row[self.index[name]] = mid
        return (*matrix[:k], tuple(row), *matrix[k + 1 :])

    def _needs(self, message: Packet) -> list[tuple[str, int]]:
        """Return what column `me` names and was not delivered (the delivery condition)."""
        me = self._my_index
        return [
            (name, theirs[me])
            for name, mine, theirs in zip(self.group, self._matrix, message[3], strict=True)
            if theirs[me] > mine[me] and name not in self._forgotten
        ]

    def _forget(self, peer: str) -> tuple[int, ...]:
        """Nothing waits for messages of `peer` any more; the matrix keeps its size."""
        super()._forget(peer)
        self._held.forget(peer)
        return ()

    def _known(self, source: str, k: int, message: Packet) -> bool:
        """Check that a correct peer can have sent this; return whether it is a duplicate."""
        _, mid, dests, matrix, _ = message
        if self.me not in dests or source in dests or not self.index.keys() >= set(dests):
            raise RemoteProtocolError(f"{source!r} sent here a message to {list(dests)}")
        if len(matrix) != len(self.group):
            raise RemoteProtocolError(f"{source!r} sent a matrix for {len(matrix)} members")
        if max(matrix[k]) >= mid:
            raise RemoteProtocolError(f"{source!r} sent message {mid} after {max(matrix[k])}")
        duplicate: bool = mid <= self._matrix[k][self._my_index]
        for i, (mine, theirs) in enumerate(zip(self._matrix, matrix, strict=True)):
            if mine == theirs:
                continue
            # Of k, a new message knows more than I do; of me, nobody does.
            older, newer = mine, theirs
            if i == self._my_index or (i == k and duplicate) or (i != k and theirs < mine):
                older, newer = theirs, mine
            if theirs[i] or any(map(gt, older, newer)):
                raise RemoteProtocolError(
                    f"{source!r} says {theirs} of what {self.group[i]!r} sent; "
                    f"here it is known to be {mine}"
                )
        held = self._held.get(source, mid)
        if held is not None and held != message:
            raise RemoteProtocolError(f"{source!r} sent two different messages {mid}")
        return duplicate or held is not None

    def blocked(self) -> list[Blocked]:
        return self._held.blocked(self.me)

    @property
    def held_back(self) -> int:
        return len(self._held)

    def footprint(self) -> Footprint:
        """Return the space; a message is counted as one to a single destination."""
        square = len(self.group) ** 2
        return Footprint(1 + square + self._held.footprint(), {"msg": 1 + square + 1})

    def _state(self) -> Hashable:
        return (self.group, self._matrix, self._held.state())

    def _copy_into(self, twin: Self) -> None:
        super()._copy_into(twin)
        twin._my_index = self._my_index
        twin._matrix = self._matrix
        twin._held = self._held.copy()
