"""Why messages that have arrived are not delivered, as their receiver says it."""

from __future__ import annotations

import pytest

from causewire.core.endpoint import Blocked, Wait
from causewire.transport import MessageBlocked
from causewire.transport.missing import missing

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
    assert [tuple(one) for one in missing(blocked, True)] == [("b", 2, "a", "message 2 of a")]
