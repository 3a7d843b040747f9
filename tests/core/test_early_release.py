"""What csps copies when messages leave early (`replies_early`), counted on patterns made to hurt.

Messages that leave early are a first part of a run that is held, and the rest is moved. That
takes one step of Python, however long the rest is, so here its length is counted.
"""

from __future__ import annotations

from typing import Any

import pytest

from causewire.core.csps import BufferedRun, Csps
from causewire.core.fifo import Ack
from causewire.core.hybrid import HybridMessage, Permit


class Counting(Csps):
    """Counts the receivers that are moved, and the times that messages left early."""

    moved = early = 0

    def _release_early(self, held: BufferedRun) -> bool:
        before = held.mid
        result = super()._release_early(held)
        self.moved += len(held.peers)
        self.early += held.mid > before
        if held.mid == before:
            self.moved -= len(held.peers)
        return result


class Talk:
    """An endpoint under test, and the numbers that its peers have used."""

    def __init__(self) -> None:
        self.me = Counting("me", replies_early=True)
        self.last: dict[str, int] = {}

    def flagged(self, name: str) -> None:
        """Deliver a message whose permit is missing."""
        before = self.last.get(name, 0)
        self.last[name] = before + 1
        self.me.receive(name, HybridMessage(before + 1, before, "x", True))

    def permit(self, name: str) -> None:
        self.me.receive(name, Permit(self.last[name]))

    def send(self, names: list[str], count: int) -> None:
        for k in range(count):
            self.me.send(names[k % len(names)], "x")

    def leave(self) -> None:
        """Let all that may leave be delivered and acked."""
        for name, run in self.me.take_runs():
            self.me.receive(name, Ack(run.mids[-1]))


def permits_of_two_alternate(n: int) -> Talk:
    """Many messages to two processes in turn; whenever one permits, the other has spoken again."""
    talk = Talk()
    talk.flagged("a")
    talk.flagged("b")
    talk.send(["a", "b"], n)
    for _ in range(n // 8):
        talk.permit("b")
        talk.leave()
        talk.flagged("b")
        talk.send(["a", "b"], 4)
        talk.permit("a")
        talk.leave()
        talk.flagged("a")
        talk.send(["b", "a"], 4)
    return talk


def permits_of_many_come_in_turn(n: int) -> Talk:
    """Many messages to many processes in turn, all of which are waited for."""
    talk = Talk()
    names = [f"p{k}" for k in range(16)]
    for _ in range(4):
        for name in names:
            talk.flagged(name)
        talk.send(names[::-1], n // 4)
        for name in names:
            talk.permit(name)
            talk.leave()
            talk.flagged(name)
    return talk


def one_is_waited_for(n: int) -> Talk:
    """Messages to one process alone leave early, those behind a message to another do not."""
    talk = Talk()
    talk.flagged("a")
    talk.flagged("b")
    for _ in range(n // 8):
        talk.send(["a", "a", "a", "b"], 8)
        talk.permit("b")
        talk.leave()
        talk.flagged("b")
    talk.permit("a")
    return talk


def permits_of_a_third_come(n: int) -> Talk:
    """All that may leave early leaves at once, and not a message for each permit that comes."""
    talk = Talk()
    talk.flagged("a")
    talk.flagged("b")
    talk.send(["a"], n)
    talk.send(["b"], 1)
    talk.permit("b")
    for _ in range(n // 8):
        talk.flagged("c")
        talk.permit("c")
    return talk


PATTERNS = [
    permits_of_two_alternate,
    permits_of_many_come_in_turn,
    one_is_waited_for,
    permits_of_a_third_come,
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_receiver_is_moved_a_few_times_at_most(pattern: Any) -> None:
    n = 4000
    talk = pattern(n)
    assert talk.me.early  # the pattern reaches what it is about
    assert talk.me.moved <= 2 * n
