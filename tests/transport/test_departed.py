"""Who has left is forgotten under `adaptive` too, whose lists name processes long afterwards."""

from __future__ import annotations

import pytest

from causewire.transport import TransportConfig, listing
from causewire.transport.listing import Listing

from .pair import payloads
from .three import Three, transport

CONFIG = TransportConfig(linger=2.0)


def acquainted() -> Three:
    """ann and bob, who did not name carol as a peer but were found by her."""
    three = Three(protocol="adaptive", config=CONFIG)
    for name in ("ann", "bob"):
        three[name]._peers.known["carol"].wanted = False
    return three


def left() -> Three:
    """ann, bob and carol, who has written to both and left."""
    three = acquainted()
    for name in ("ann", "bob"):
        three["carol"].send(name, b"hello")
        three.run(0.1)
        three[name].send("carol", b"welcome")
    three.run(0.5)
    three["carol"].close()
    three.run(0.5)
    three.isolate("carol")  # her process has ended
    for name in ("ann", "bob"):
        payloads(three[name])
        assert "carol" in three[name]._peers.floors
    return three


def carrier(three: Three, name: str) -> Listing:
    found = three[name]._carrier
    assert isinstance(found, Listing)
    return found


@pytest.mark.parametrize("many", [256, 0], ids=["old tables", "new tables"])
def test_a_name_that_comes_back_when_it_is_forgotten(
    many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its messages and those to it are kept in order, whatever tables still say of the name."""
    monkeypatch.setattr(listing, "_MANY", many)
    three = left()
    three.run(10.0)
    for name in ("ann", "bob"):
        identities = carrier(three, name)._identities
        assert "carol" not in identities.floors
        assert "carol" not in three[name]._peers.floors
        assert identities.retired == (set() if many == 0 else {"carol"})
    three.all["carol"] = carol = transport("carol", 9 << 20, protocol="adaptive", config=CONFIG)
    three.cut = set()
    three.introduce("carol")
    three.run(0.5)
    assert carrier(three, "ann").endpoint._peers.keys() == {
        "bob",
        "carol" if many == 0 else f"carol\0{9 << 20:x}",
    }
    three.cut = {("ann", "carol")}
    three["ann"].send(["bob", "carol"], b"cause")
    three.run(0.1)
    assert payloads(three["bob"]) == [b"cause"]
    three["bob"].send(["ann", "carol"], b"effect")
    three.run(0.5)
    assert payloads(carol) == []
    three.cut = set()
    three.run(3.0)
    assert payloads(carol) == [b"cause", b"effect"]
    carol.send(["ann", "bob"], b"I am back")
    three.run(0.5)
    assert payloads(three["ann"]) == [b"effect", b"I am back"]
    assert payloads(three["bob"]) == [b"I am back"]
    assert all(three[name].idle for name in three.all)


def test_an_obituary_is_kept_until_every_peer_has_it() -> None:
    """bob may list messages of carol until he knows that she has left."""
    three = acquainted()
    three.cut = {("ann", "bob"), ("bob", "ann"), ("carol", "bob"), ("bob", "carol")}
    three["carol"].close()
    three.run(20.0)
    assert "carol" in three["ann"]._peers.floors
    three.cut = set()
    three.run(20.0)
    assert "carol" not in three["ann"]._peers.floors
    assert "carol" not in three["bob"]._peers.floors
