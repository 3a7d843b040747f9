"""Defects that are known and not mended yet: each test passes as soon as its defect is gone."""

from __future__ import annotations

import pytest

from causewire.transport import TransportConfig
from causewire.transport.peers import LEFT

from .pair import B, Pair, payloads
from .three import Three

DAY = 86_400_000 << 20
"""As a difference of incarnations."""


@pytest.mark.parametrize(
    "days",
    [
        0.5,
        pytest.param(
            2, marks=pytest.mark.xfail(reason="numbers a day ahead are not believed", strict=True)
        ),
    ],
)
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


@pytest.mark.xfail(
    reason="obituaries of processes that were never met are not dropped", strict=True
)
def test_obituaries_of_strangers_do_not_crowd_out_those_of_peers() -> None:
    """ann hears of many that have left bob, and then that carol is given up."""
    group = Three(config=TransportConfig(peers=20, linger=1.0))
    ann, bob = group["ann"], group["bob"]
    for k in range(30):
        bob._peers.obituary(f"guest {k}", (1 << 20) + 1 | LEFT, "bob", group.now)
        group.run(2.0)
    group.isolate("carol")
    bob.forget("carol", group.now)
    group.run(1.0)
    assert "carol" not in ann._peers.live
