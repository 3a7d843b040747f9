"""Numbers and obituaries that were too far off or too many."""

from __future__ import annotations

import pytest

from causewire.transport import TransportConfig
from causewire.transport.numbers import Numbers
from causewire.transport.obituaries import LEFT

from .pair import B, Pair, payloads
from .three import Three, transport

DAY = 86_400_000 << 20
"""As a difference of incarnations."""


@pytest.mark.parametrize("days", [0.5, 2, 10_000])
def test_a_clock_that_is_set_back_does_not_matter(days: float) -> None:
    pair = Pair()
    pair.bob = pair.start("bob", 1 << 60)
    for number in (1 << 60, (1 << 60) - int(days * DAY)):  # ann crashes, and is back
        pair.ann = pair.start("ann", number)
        pair.ann.add_peer("bob", B, pair.now)
        pair.ann.send("bob", b"x")
        for _ in range(5):
            pair.later(1.0)
            pair.exchange()
    assert payloads(pair.bob) == [b"x", b"x"]


@pytest.mark.parametrize("protocol", ["csps", "adaptive"])
@pytest.mark.parametrize("linger", [1.0, 1e6])
def test_obituaries_of_strangers_do_not_crowd_out_those_of_peers(
    linger: float, protocol: str
) -> None:
    """ann hears of many that have left bob, and then that carol is given up."""
    group = Three(config=TransportConfig(peers=20, linger=linger), protocol=protocol)
    ann, bob = group["ann"], group["bob"]
    for k in range(30):
        bob._peers.obituary(f"guest {k}", (1 << 20) + 1 | LEFT, "bob", group.now)
        group.run(2.0)
    group.isolate("carol")
    bob.forget("carol", group.now)
    group.run(1.0)
    assert "carol" not in ann._peers.live
    assert len(ann._peers.floors) <= (4 if linger == 1.0 else 31)


def test_a_liar_does_not_make_a_process_take_an_absurd_number() -> None:
    """carol lies about the number of ann, whose clock was set back; bob tells the truth."""
    group = Three()
    used = 30 * DAY
    group["bob"]._peers.floors["ann"] = used
    group["carol"]._peers.floors["ann"] = 1 << 62
    group.all["ann"] = transport("ann", 5 << 20)
    group.introduce("ann")
    group.run(10.0)
    ann = group["ann"]
    assert used < ann.me.incarnation < used + DAY
    assert ann._peers.live["bob"].established
    assert "carol" not in ann._peers.live or not ann._peers.live["carol"].established


def test_a_number_that_leaves_no_higher_ones_is_not_believed() -> None:
    pair = Pair()
    pair.bob._peers.floors["ann"] = (1 << 63) - 5
    pair.ann.add_peer("bob", B, pair.now)
    before = pair.ann.me.incarnation
    for _ in range(5):
        pair.later(1.0)
        pair.exchange()
    assert pair.ann.me.incarnation == before


def test_who_was_first_met_by_somebody_who_knows_nothing_learns_its_number_all_the_same() -> None:
    """carol comes back with a clock set back by years, and meets bob, who has just started."""
    group = Three()
    high = 1 << 60
    group.all["carol"] = transport("carol", high)
    group.introduce("carol")
    group.run(3.0)
    assert group["ann"]._peers.live["carol"].incarnation == high
    group.isolate("carol")
    group["ann"].forget("carol", group.now)
    group.cut |= {("ann", "bob"), ("bob", "ann")}
    group.run(1.0)
    for name, number in (("bob", high + (7 << 20)), ("carol", 500)):
        group.all[name] = transport(name, number)
        group.introduce(name)
    group.cut = {(x, y) for x, y in group.cut if "ann" in (x, y)}
    group.run(1.0)
    assert group["bob"]._peers.live["carol"].incarnation == 500
    group.cut = set()
    group.run(10.0)
    assert group["carol"].me.superseded > high


@pytest.mark.parametrize("informants", [1, 2])
def test_who_has_peers_believes_two_others(informants: int) -> None:
    numbers = Numbers()
    far = 1 << 60
    believed = {
        numbers.claimed(far + k, f"peer {k}", False, now)
        for now in (1.0, 3.0)
        for k in range(informants)
    }
    assert believed == ({0, far} if informants == 2 else {0})


def test_numbers_that_all_peers_but_one_would_choose_are_believed() -> None:
    numbers, far = Numbers(), 1 << 60
    assert not numbers.believable(far, 5, [], 1.0)
    assert numbers.believable(far, 5, [far], 1.0)
    assert not numbers.believable(far, 5, [far, 7], 1.0)
    assert numbers.believable(far, 5, [far, 7, far], 1.0)
