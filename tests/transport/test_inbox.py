"""What an inbox holds to be handled: everything before the message that was taken last."""

from __future__ import annotations

from causewire.transport.inbox import Inbox


def test_who_takes_the_next_has_handled_those_before() -> None:
    inbox = Inbox()
    inbox += ["a", "b", "c"]
    assert not inbox.ready
    inbox.stored(2)
    assert [inbox.ready.popleft(), inbox.handled] == ["a", 0]
    assert [inbox.ready.popleft(), inbox.handled] == ["b", 1]
    assert list(inbox.unhandled) == ["b", "c"]
    assert len(inbox) == 2
    inbox.done()
    assert inbox.handled == 2
    inbox.stored(1)
    assert [inbox.ready.popleft(), inbox.handled, len(inbox)] == ["c", 2, 1]


def test_what_was_handled_early_before_a_restart_is_not_counted_twice() -> None:
    """The application used to say what it had handled, and does not any more."""
    inbox = Inbox(["a", None, "b", None, "c"], 10)
    assert list(inbox.ready) == ["a", "b", "c"]
    taken = [inbox.ready.popleft(), inbox.ready.popleft()]
    assert taken == ["a", "b"]
    assert inbox.handled == 12
    assert list(inbox.unhandled) == ["b", None, "c"]
    inbox.done()
    assert inbox.handled == 14
    assert list(inbox.unhandled) == list(inbox.ready) == ["c"]
