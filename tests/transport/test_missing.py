"""Why messages that have arrived are not delivered, as their receiver says it."""

from __future__ import annotations

from itertools import count
from random import Random
from typing import Any

import pytest

from causewire import protocols
from causewire.core.adaptive import Checked
from causewire.core.endpoint import Blocked, Wait
from causewire.core.run import MessageRun
from causewire.transport import MessageBlocked, Reason
from causewire.transport.missing import missing

from ..steps import steps
from .pair import events
from .three import Three


def effect_without_cause(protocol: str) -> Three:
    """ann writes to bob and carol, and carol's copy is lost; bob answers carol."""
    three = Three(protocol=protocol)
    three.cut = {("ann", "carol"), ("carol", "ann")}
    three["ann"].send(["bob", "carol"], b"Has anybody seen my ring?")
    three.run(0.1)
    three["bob"].send(["carol"], b"I found it!")
    return three


@pytest.mark.parametrize(
    ("protocol", "what"),
    [
        ("adaptive", "message 1 of ann"),
        ("ks", "an earlier message of ann"),
        ("bss", "an earlier message of ann"),
        ("newtop", "word from ann"),
    ],
)
def test_the_receiver_says_whose_message_is_missing(protocol: str, what: str) -> None:
    three = effect_without_cause(protocol)
    three.run(2.5)
    (reason,) = [r for r in three["carol"].blocked(three.now) if r.where == "gap"]
    assert reason.peer == "bob"
    assert reason.messages == 1
    assert reason.why.startswith(f"1 message of bob is here, and waits for {what} (")
    assert 1.0 < reason.seconds <= 2.5
    blocked = [event for event in events(three["carol"]) if isinstance(event, MessageBlocked)]
    assert not blocked
    three.run(5.0)
    blocked = [event for event in events(three["carol"]) if isinstance(event, MessageBlocked)]
    (gap,) = [event.reason for event in blocked if event.reason.where == "gap"]  # once
    assert "nothing has come from ann for" in gap.why
    three.cut.clear()
    three.run(5.0)
    assert three["carol"].blocked(three.now) == []


def test_the_first_thing_that_is_not_here_is_the_reason() -> None:
    """Message 5 of b waits for 4 of b, which is here and waits for a; c waits for b alone."""
    blocked = [
        Blocked(
            "b", 4, "d", "receiver", (Wait("predecessor", "a", 2), Wait("predecessor", "e", 1))
        ),
        Blocked("b", 5, "d", "receiver", (Wait("predecessor", "b", 4),)),
        Blocked("c", 1, "d", "receiver", (Wait("predecessor", "b", 5),)),
        Blocked("d", 1, "a", "sender", (Wait("ack", "a", 3),)),
    ]
    assert [tuple(one) for one in missing(blocked, True)] == [("b", 2, "a", 2, "message 2 of a")]


def test_the_first_of_runs_that_wait() -> None:
    """The same, found without looking at each message: `adaptive` keeps them in runs."""
    endpoint: Any = protocols.create("adaptive", me="d")
    listed = Checked(b"", (), (("a", "d", 2), ("e", "d", 1)))
    endpoint.receive_run("b", MessageRun([4], 0, [listed], True, 0))
    endpoint.receive_run("b", MessageRun([5, 6], 4, [b"", b""], False, 0))
    endpoint.receive_run("c", MessageRun([1], 0, [Checked(b"", (), (("b", "d", 5),))], True, 0))
    assert endpoint.first_missing() == [("b", 3, Wait("predecessor", "a", 2))]
    assert [tuple(one) for one in missing(endpoint.blocked(), True)] == [
        ("b", 3, "a", 2, "message 2 of a")
    ]
    assert set(endpoint.awaited) >= {"a", "e"}


class Slow:
    """ann's messages take long to carol, or never come; bob answers them at once."""

    def __init__(self, protocol: str, delay: float | None, loss: float = 0.0) -> None:
        self.three = Three(protocol=protocol)
        self.delay, self.loss, self.random = delay, loss, Random(5)
        self._flying: list[tuple[float, int, str, str, bytes]] = []
        self._numbers = count()
        self.told: list[Reason] = []

    def run(self, seconds: float, ask: float | None, answer: float) -> None:
        """Let ann write to both every `ask` seconds (or not at all), and bob to carol."""
        three = self.three
        end, asks, answers = three.now + seconds, three.now, three.now
        while three.now < end:
            three.now += 0.002
            if ask is not None and three.now >= asks:
                three["ann"].try_send(["bob", "carol"], b"?")
                asks += ask
            if three.now >= answers:
                three["bob"].try_send("carol", b"!")
                answers += answer
            self._carry()
            for name in ("bob", "carol"):
                three[name].messages.clear()
        self.told = [
            event.reason
            for event in events(three["carol"])
            if isinstance(event, MessageBlocked) and event.reason.where == "gap"
        ]

    def _carry(self) -> None:
        three = self.three
        names = {place: name for name, place in three.places.items()}
        for item in sorted(self._flying):
            if item[0] <= three.now:
                self._flying.remove(item)
                three[item[3]].datagram_received(item[4], three.places[item[2]], three.now)
        for name in names.values():
            if (due := three[name].next_timer()) is not None and due <= three.now:
                three[name].timer_fired(three.now)
            for data, place in three[name].datagrams_to_send(three.now):
                link = (name, names[place])
                delay = self.delay if link == ("ann", "carol") else 0.005
                lost = link == ("bob", "carol") and self.random.random() < self.loss
                if delay is not None and not lost:
                    when = three.now + delay
                    self._flying.append((when, next(self._numbers), *link, data))


@pytest.mark.parametrize("protocol", ["adaptive", "ks", "bss"])
def test_a_wait_for_another_message_is_another_wait(protocol: str) -> None:
    """Something of ann is always awaited, and nothing for longer than 0.3 seconds."""
    slow = Slow(protocol, delay=0.3)
    slow.run(12.0, ask=0.1, answer=0.1)
    assert slow.told == []
    gaps = [r for r in slow.three["carol"].blocked(slow.three.now) if r.where == "gap"]
    assert all(reason.seconds < 2.6 for reason in gaps)


def test_one_wait_is_reported_once_although_others_come_and_go() -> None:
    """carol waits for ann, and now and then, for a moment, for what was lost of bob."""
    three = effect_without_cause("adaptive")
    slow = Slow("adaptive", delay=None, loss=0.25)
    slow.three = three
    three.cut.clear()
    slow.run(15.0, ask=None, answer=0.01)
    assert len(slow.told) == 1
    assert "message 1 of ann" in slow.told[0].why


def test_looking_takes_as_long_however_many_messages_of_a_run_wait() -> None:
    taken = []
    for messages in (100, 3000):
        endpoint: Any = protocols.create("adaptive", me="d")
        listed = Checked(b"", (), (("a", "d", 2),))
        endpoint.receive_run("b", MessageRun([1], 0, [listed], True, 0))
        mids = list(range(2, messages + 2))
        endpoint.receive_run("b", MessageRun(mids, 1, [b""] * messages, False, 0))
        assert endpoint.first_missing()[0][1] == messages + 1
        taken.append(steps(endpoint.first_missing))
    assert taken[0] == taken[1]
