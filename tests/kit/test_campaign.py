"""A share of the campaign on groups; `python -m campaigns.groups` runs 50,000.

Machines that are wrong on purpose have to be caught by the same judge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest

from campaigns.group_judge import Wrong
from campaigns.groups import play
from causewire.kit.entries import Alert, Collect, Member, Missed, Position, Welcome
from causewire.kit.machine import Machine


@pytest.mark.slow
def test_replicas_are_equal_whatever_happens() -> None:
    counts: Counter[str] = Counter()
    for seed in range(120):
        counts += play(seed).counts
    for kind in ("crashes", "given up", "left", "evicted", "state transfers"):
        assert counts[kind] > 10, f"too few: {kind}"
    assert counts["deliveries"] > 5_000


@pytest.mark.slow
def test_replicas_that_come_back_with_their_state_are_equal_too() -> None:
    counts: Counter[str] = Counter()
    for seed in range(60):
        counts += play(seed, returns=True).counts
    for kind in ("returns by messages", "returns by state", "messages missed"):
        assert counts[kind] > 10, f"too few: {kind}"


@pytest.mark.parametrize(
    "seed",
    [
        107_590,  # a coordinator whose `Add` was lost with a sponsor that was taken for dead
        109_343,  # a newcomer that knew only the dead, and evicted one of those it did not know
        118_605,  # a process whose last membership had left in another branch
        137_422,  # a member that ended while it lost patience with another
        145_857,  # a newcomer in the views of two branches
        149_243,  # a process that asked twice, and was let in under the former membership
        204_794,  # a coordinator that asked a newcomer of whose end it knew
        362_829,  # a member that left one of two branches, of which the other one went on
    ],
)
def test_branches_of_a_group_become_one(seed: int) -> None:
    play(seed)


class JoinsWithoutCut(Machine):
    """Members do not send what the newcomer's cut lacks."""

    def _pass_on(self, member: Member, authors: Iterable[Member]) -> None:
        pass


class IgnoresTheSponsorsCrash(Machine):
    """A newcomer whose `Add` was lost with its sponsor is not told so, and takes any state."""

    def _was_alerted(self, alert: Alert) -> None:
        if alert.sender in self.view:
            super()._was_alerted(alert)

    def _collected(self, collect: Collect) -> None:
        if collect.sender in self.view:
            super()._collected(collect)

    def _welcomed(self, welcome: Welcome) -> None:
        self.dead.discard(welcome.sponsor)
        super()._welcomed(welcome)


class LeavesWithoutWaiting(Machine):
    """A member is gone as soon as it has said so."""

    def leave(self) -> None:
        super().leave()
        self.over = "left"


@pytest.mark.parametrize(
    ("make", "seed"),
    [
        (JoinsWithoutCut, 100),
        (IgnoresTheSponsorsCrash, 141),
        (LeavesWithoutWaiting, 92),
    ],
)
def test_a_machine_that_is_wrong_is_caught(make: type[Machine], seed: int) -> None:
    with pytest.raises(Wrong):
        play(seed, make)
    play(seed)


class SendsWhatIsLeft(Machine):
    """Members send what they have of the messages that were missed, whether that is all or not."""

    def _missed(self, since: Position | None) -> tuple[Missed, ...] | None:
        self.history._floor.clear()
        return super()._missed(since)


class IgnoresWhatWasLost(Machine):
    """Members do not notice that a process has something that the group has lost."""

    def _missed(self, since: Position | None) -> tuple[Missed, ...] | None:
        return None if since is None else self.history.since(since.cut, since.cut)


class CountsWhatWaits(Machine):
    """Messages that the application has not taken are in the position."""

    def position(self, waiting: Iterable[tuple[Member, int]]) -> Position:
        return super().position(())


class SendsTooMuch(Machine):
    """Members send the last message before the position again."""

    def _missed(self, since: Position | None) -> tuple[Missed, ...] | None:
        if since is not None:
            lower = {author: max(0, number - 1) for author, number in since.cut.items()}
            since = since._replace(cut=lower)
        return super()._missed(since)


@pytest.mark.parametrize(
    ("make", "seed"),
    [
        (SendsWhatIsLeft, 79),
        (IgnoresWhatWasLost, 103),
        (CountsWhatWaits, 49),
        (SendsTooMuch, 249),
    ],
)
def test_a_machine_that_sends_the_wrong_messages_is_caught(make: type[Machine], seed: int) -> None:
    with pytest.raises(Wrong):
        play(seed, make, returns=True)
    play(seed, returns=True)
