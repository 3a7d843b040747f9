"""`adaptive` with processes whose name is not known yet."""

from __future__ import annotations

from copy import copy

import pytest

from causewire.core.adaptive import Adaptive, AdaptiveMessage, Got, News, Part, Seen
from causewire.core.adaptive_packets import UNMET
from causewire.core.endpoint import LocalProtocolError, RemoteProtocolError
from causewire.core.fifo import Ack
from causewire.core.saved_adaptive import save_adaptive

B = "b\0"
VOID = News(1, (("a", B, 1), ("a", UNMET, 1)))
"""Message 1 of a to B does not come, and no earlier one to any alias."""


def kinds(endpoint: Adaptive) -> list[tuple[str, str]]:
    return [(to, packet.kind) for to, packet in endpoint.take_packets()]


def started() -> Adaptive:
    """a has sent to a process that it calls B, then to c, which knows of that message."""
    a = Adaptive("a")
    a.expect(B)
    a.send(B, "x")
    assert kinds(a) == [(B, "msg")]
    a.send("c", "y")
    packets = dict(a.take_packets())
    assert packets["c"][5] == (("a", B, 1),)
    a.receive("c", Ack(2))
    assert kinds(a) == []
    return a


def test_messages_to_an_alias_are_reported_when_they_are_delivered() -> None:
    a = started()
    a.identify(B, "b")
    a.send("b", "z")
    (message,) = [packet for _, packet in a.take_packets()]
    assert message[5] == (), "a process lists no message to its destination, by any name"
    a.receive("b", Ack(1))
    assert a.take_packets() == [("c", News(1, (("a", B, 1),)))]
    assert list(a._past) == [("a", "b", 3)]


@pytest.mark.parametrize("identified", [True, False])
def test_messages_to_an_alias_are_void_when_the_process_is_given_up(identified: bool) -> None:
    a = started()
    if identified:
        a.identify(B, "b")
        assert a.forget("b") == (1,)
    else:
        assert a.abandon(B) == (1,)
    assert a.take_packets() == [("c", VOID)]
    assert not list(a._past)
    a.expect(B)
    assert a.send(B, "again") == 3


def test_what_waits_for_a_void_message_is_freed() -> None:
    b = Adaptive("b")
    b.receive("c", AdaptiveMessage(1, 0, "w", (), (("a", "b", 1),)))
    assert b.held_back == 1
    b.void("a", 1)
    assert [delivery.payload for delivery in b.take_deliveries()] == ["w"]
    b.receive("d", AdaptiveMessage(1, 0, "later", (), (("a", "b", 1),)))
    assert [delivery.payload for delivery in b.take_deliveries()] == ["later"]
    b.receive("d", AdaptiveMessage(2, 1, "next", (), (("a", "b", 2),)))
    assert b.held_back == 1


def test_what_is_void_is_reported_before_the_ack_of_the_message_that_listed_it() -> None:
    a = Adaptive("a")
    a.expect(B)
    a.send(B, "x")
    a.send("c", "y")
    a.take_packets()
    a.abandon(B)
    assert a.take_packets() == [("c", VOID)]


@pytest.mark.parametrize("identified", [True, False])
def test_a_later_incarnation_hears_from_the_origin_what_does_not_come(identified: bool) -> None:
    a = started()
    if identified:
        a.identify(B, "b")
        a.receive("b", Ack(1))
        a.forget("b")
    else:
        a.abandon(B)
    a.take_packets()
    a.expect(B)
    a.send(B, "again")
    a.identify(B, "b2")
    packets = a.take_packets()
    assert ("b2", News(1, (("a", B, 1),)) if identified else VOID) in packets
    assert [packet.kind for to, packet in packets if to != "b2"] == []


@pytest.mark.parametrize("identified", [True, False])
def test_everybody_hears_from_the_origin_what_does_not_come(identified: bool) -> None:
    """c has the entry, and may have passed it on to e and died; a never meets b again."""
    a = started()
    a.expect("d\0")
    a.identify("d\0", "d")
    if identified:
        a.identify(B, "b")
        a.forget("b")
    else:
        a.abandon(B)
    over = ("a", UNMET, 1)
    assert a.take_packets() == [("c", VOID), ("d", News(1, (over,)))]
    a.expect("e\0")
    a.identify("e\0", "e")
    assert a.take_packets() == [("e", News(1, (("a", "e\0", 1), over)))]
    assert copy(a) == a


def test_a_lane_and_news_follow_to_the_name() -> None:
    a = Adaptive("a", cap=0)
    a.expect(B)
    a.send("c", "x")
    a.take_runs()
    a.send(B, "y")
    a.take_runs()
    assert a.held_back == 1
    a.identify(B, "b")
    assert [(to, packet.kind) for to, packet in a.take_control()] == [("b", "part")]
    a.receive("c", Ack(1))
    assert not a.held_back
    assert kinds(a) == [("b", "msg")]


def test_a_multicast_to_an_alias_lists_each_member() -> None:
    a = Adaptive("a")
    a.expect(B)
    a.send([B, "c", "d"], "x")
    assert all(packet[4] == () for _, packet in a.take_packets())


def test_what_is_refused() -> None:
    a = Adaptive("a")
    a.send("b", "x")
    for wrong in ("b", "c"):
        with pytest.raises(LocalProtocolError):
            a.expect(wrong)
        with pytest.raises(LocalProtocolError):
            a.abandon(wrong)
        with pytest.raises(LocalProtocolError):
            a.identify(wrong, "d")
    a.expect(B)
    for wrong in ("a", "b"):
        with pytest.raises(LocalProtocolError):
            a.identify(B, wrong)
    b = Adaptive("b")
    b.receive("c", AdaptiveMessage(1, 0, "w", (), ()))
    with pytest.raises(RemoteProtocolError):
        b.receive("c", News(1, (("a", "b", 1),)))


def test_a_name_is_readmitted_when_nothing_mentions_it() -> None:
    b = Adaptive("b")
    b.receive("c", AdaptiveMessage(2, 0, "w", ("b", "c", "d"), (("x", "b", 1),)))
    b.forget("d")
    with pytest.raises(LocalProtocolError, match="refer"):
        b.readmit("d")
    b.forget("x")
    b.forget("c")
    b.readmit("x")
    assert b.forgotten == {"c", "d"}


def test_a_waiting_message_that_is_freed_lists_nothing_of_the_process_that_is_forgotten() -> None:
    a = Adaptive("a", cap=1)
    a.receive("e", AdaptiveMessage(1, 0, "w", (), (("f", "d", 1),)))
    a.send("d", "x")
    a.take_packets()
    a.send("c", "y")
    assert kinds(a) == [("c", "part")]
    a.forget("d")
    assert [(to, packet[5]) for to, packet in a.take_packets()] == [("c", ())]
    assert not list(a._past.owed())


def test_news_of_a_message_that_was_listed_to_an_alias_of_its_origin() -> None:
    """Before d was met, nobody could know that it needs no list of its own messages."""
    d = Adaptive("d")
    d.send(["b", "c"], "own")
    a = Adaptive("a")
    a.receive("b", AdaptiveMessage(1, 0, "w", (), (("d", "c", 1),)))
    a.expect("d\0")
    a.send("d\0", "x")
    message = dict(a.take_packets())["d\0"]
    assert message[5] == (("d", "c", 1),)
    a.identify("d\0", "d")
    d.receive("a", message)
    a.receive("d", Ack(1))
    a.receive("b", News(1, (("d", "c", 1),)))
    news = dict(a.take_packets())["d"]
    assert news == News(1, (("d", "c", 1),))
    d.take_packets()
    d.receive("a", news)
    assert d.take_packets() == [("a", Seen(1))]
    with pytest.raises(RemoteProtocolError, match="never sent"):
        d.receive("a", News(2, (("d", "c", 2),)))


def test_a_part_that_comes_again_may_lack_entries_of_the_dead() -> None:
    """Its receiver may have confirmed it, and its sender has not heard of that."""
    d = Adaptive("d")
    d.receive("a", Part(1, 1, (("x", "y", 1), ("b", "c", 1))))
    d.take_packets()
    d.forget("x")
    d.receive("a", Part(1, 1, (("b", "c", 1),)))
    assert d.take_packets() == [("a", Got(1, 1))]
    with pytest.raises(RemoteProtocolError, match="after 1 parts"):
        d.receive("a", Part(1, 1, (("b", "c", 2),)))


def size_after(count: int) -> tuple[int, int]:
    """The size of the state of a process that dialled so many names, and of its news to another.

    Every other one of them is met, and gone later.
    """
    a = Adaptive("a")
    for k in range(count):
        alias, name = f"{k:05}\0", f"{k:05}"
        a.expect(alias)
        mid = a.send(alias, "x")
        a.take_packets()
        if k % 2:
            a.identify(alias, name)
            if k % 4 == 1:
                a.receive(name, Ack(mid))
            a.forget(name)
            a.drop_unmentioned()
        else:
            a.abandon(alias)
    a.expect("z\0")
    a.identify("z\0", "z")
    ((_, news),) = a.take_packets()
    return len(repr(save_adaptive(a, id))), len(news[2])


def test_names_that_were_dialled_and_are_gone_take_no_room() -> None:
    assert size_after(1000) == (size_after(1001)[0], 2)
    assert size_after(1000)[0] <= size_after(10)[0] + 10  # numbers have more digits


def test_what_may_still_come_is_not_taken_for_over() -> None:
    """a waits for the ack of b, which it has met, while it gives d up, which it never met."""
    a = started()
    a.identify(B, "b")
    a.expect("d\0")
    a.send("d\0", "y")
    a.take_packets()
    a.abandon("d\0")
    news = dict(a.take_packets())
    assert news["c"] == News(1, (("a", "d\0", 3),))
    a.receive("c", Seen(1))
    a.receive("b", Ack(1))
    a.expect("e\0")
    a.identify("e\0", "e")
    assert dict(a.take_packets())["e"] == News(1, (("a", "e\0", 3), ("a", UNMET, 3)))
    assert copy(a) == a


def test_what_is_over_is_dropped_and_passed_on() -> None:
    """e has an entry, and listed it to f; nothing is left of whoever told e."""
    e = Adaptive("e", cap=1)
    e.receive("a", AdaptiveMessage(9, 0, "w", (), ()))
    entries = (("a", "b\0", 1), ("a", "d\0", 5), ("g", "b\0", 1))
    e.receive("c", AdaptiveMessage(1, 0, "w", (), entries))
    e.take_packets()
    e.send("f", "waits")
    e.take_packets()
    e.forget("c")
    e.receive("a", News(1, (("a", UNMET, 4),)))
    assert list(e._past) == [("a", "d\0", 5), ("g", "b\0", 1), ("e", "f", 1)]
    assert e.held_back == 1
    e.receive("a", News(2, (("a", UNMET, 5),)))
    packets = e.take_packets()
    assert [packet[5] for to, packet in packets if to == "f"] == [(("g", "b\0", 1),)]
    e.receive("h", AdaptiveMessage(1, 0, "w", (), (("a", "b\0", 1), ("a", "k\0", 6))))
    known = {entry for entry in e._past if entry[0] == "a"}
    assert known == {("a", "k\0", 6)}, "it is not learnt again from whoever has not heard"
    assert copy(e) == e
    with pytest.raises(RemoteProtocolError, match="cannot know"):
        e.receive("h", News(1, (("a", UNMET, 4),)))


def test_a_process_that_is_waited_for_hears_it_from_others() -> None:
    """b has not met a; it holds what e sent, which listed a message to an alias of b."""
    e = Adaptive("e")
    e.receive("a", AdaptiveMessage(9, 0, "w", (), ()))
    e.receive("c", AdaptiveMessage(1, 0, "w", (), (("a", "b\0", 1),)))
    e.send("b", "x")
    assert dict(e.take_packets())["b"][5] == (("a", "b\0", 1),)
    e.receive("a", News(1, (("a", UNMET, 1),)))
    assert dict(e.take_packets())["b"] == News(1, (("a", "b\0", 1),))


def test_what_is_over_says_nothing_of_messages_by_name() -> None:
    """a has met b, and has sent it message 2 by its name."""
    b = Adaptive("b")
    b.receive("a", AdaptiveMessage(1, 0, "w", (), ()))
    b.receive("a", News(1, (("a", UNMET, 2),)))
    b.receive("c", AdaptiveMessage(1, 0, "later", (), (("a", "b", 2),)))
    assert b.held_back == 1
