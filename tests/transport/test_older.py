"""Meeting a restarted process, while messages name an incarnation that was never met here."""

from __future__ import annotations

import pytest

from causewire.transport.listing import Listing

from .three import PLACES, Three, transport


class Strangers(Three):
    """Bob and carol do not know each other, and never meet."""

    def introduce(self, name: str) -> None:
        for other, place in PLACES.items():
            if other != name and {other, name} != {"bob", "carol"}:
                self.all[name].add_peer(other, place, self.now)


def restarted() -> Three:
    """Ann told bob of a message to carol, who has restarted since; bob meets her now."""
    three = Strangers(protocol="adaptive")
    three.isolate("carol")
    three["ann"].try_send("carol", b"lost")
    three["ann"].try_send("bob", b"lists it")
    three.run(1.0)
    three.cut = {("ann", "carol"), ("carol", "ann")}
    later = transport("carol", 9 << 20, protocol="adaptive")
    three.all["carol"] = later
    later.add_peer("bob", PLACES["bob"], three.now)
    three["bob"].add_peer("carol", PLACES["carol"], three.now)
    three.run(1.0)
    return three


def test_an_earlier_incarnation_that_only_entries_name_is_announced() -> None:
    three = restarted()
    assert three["bob"]._peers.floors == {"carol": 9 << 20}
    three.run(2.0)
    assert three["ann"]._peers.floors == {"carol": 9 << 20}


def test_without_that_nobody_hears_that_it_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Listing, "knows_older", lambda *_: False)
    three = restarted()
    three.run(2.0)
    assert three["bob"]._peers.floors == {}
    assert three["ann"]._peers.floors == {}


def listed_late() -> Three:
    """Bob meets carol, and only then hears of a message to a former incarnation of hers."""
    three = Strangers(protocol="adaptive")
    three.isolate("carol")
    three["ann"].try_send("carol", b"lost")
    three.cut = {("ann", "carol"), ("carol", "ann"), ("ann", "bob"), ("bob", "ann")}
    three["ann"].try_send("bob", b"lists it")
    later = transport("carol", 9 << 20, protocol="adaptive")
    three.all["carol"] = later
    later.add_peer("bob", PLACES["bob"], three.now)
    three["bob"].add_peer("carol", PLACES["carol"], three.now)
    three.run(1.0)
    three.cut = {("ann", "carol"), ("carol", "ann")}
    three.run(3.0)
    return three


def test_so_is_one_that_is_named_when_the_next_has_been_met() -> None:
    three = listed_late()
    assert three["bob"]._peers.floors == {"carol": 9 << 20}
    assert three["ann"]._peers.floors == {"carol": 9 << 20}


def test_without_that_it_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Listing, "take_older", lambda _: ())
    three = listed_late()
    assert three["bob"]._peers.floors == {}
