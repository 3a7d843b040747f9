"""Two living processes of one name: both learn of it at once, without waiting for a ping."""

from __future__ import annotations

from typing import Any

from causewire.transport import NameInUse, NodeRenumbered, NodeSuperseded, Transport

from .pair import PLAIN_AND_SEALED, A, B, Pair, events

C = ("127.0.0.1", 3)
D = ("127.0.0.1", 4)


class Twins:
    """Ann, and two processes that are both called bob."""

    def __init__(self, key: bytes | None) -> None:
        pair = self.pair = Pair(key=key).meet()
        self.twin = pair.start("bob", 9001)
        self.places: dict[Any, Transport[Any]] = {A: pair.ann, B: pair.bob, C: self.twin}
        self.carried = 0
        self.twin.add_peer("ann", A, pair.now)
        self.twin.timer_fired(pair.now)

    def exchange(self) -> None:
        """Carry datagrams until there are none; no time passes."""
        now = self.pair.now
        while some := [
            (place, *sent)
            for place, one in self.places.items()
            for sent in one.datagrams_to_send(now)
        ]:
            self.carried += len(some)
            assert self.carried < 100
            for source, data, target in some:
                self.places[target].datagram_received(data, source, now)


@PLAIN_AND_SEALED
def test_both_learn_of_it_at_once(key: bytes | None) -> None:
    twins = Twins(key)
    twins.exchange()
    pair = twins.pair
    assert NodeSuperseded("bob", 9001) in events(pair.bob)
    assert NameInUse("bob", "ann") in events(pair.bob)
    assert NameInUse("bob", "ann") in events(twins.twin)


@PLAIN_AND_SEALED
def test_a_process_that_was_restarted_has_no_twin(key: bytes | None) -> None:
    twins = Twins(key)
    former = twins.places.pop(B)
    twins.places[B] = twins.pair.start("silent", 1)  # nobody of that name is there any more
    twins.exchange()
    assert not events(twins.twin)[1:]
    assert not [event for event in events(former) if isinstance(event, NameInUse)]


@PLAIN_AND_SEALED
def test_a_process_that_crashed_and_whose_clock_was_set_back_has_no_twin(
    key: bytes | None,
) -> None:
    """Its peer has not noticed yet that the former one has ended."""
    pair = Pair(key=key)
    seen: list[Any] = []
    for number in (1 << 60, (1 << 60) - (3_600_000 << 20)):
        pair.ann = pair.start("ann", number)
        pair.ann.add_peer("bob", B, pair.now)
        pair.ann.send("bob", b"x")
        for _ in range(3):
            pair.exchange()
            pair.later(0.2)
        seen = events(pair.ann)
    assert any(isinstance(event, NodeRenumbered) for event in seen)
    assert not any(isinstance(event, NameInUse) for event in seen)


@PLAIN_AND_SEALED
def test_a_twin_whose_clock_is_behind_is_noticed_by_both(key: bytes | None) -> None:
    twins = Twins(key)
    twins.exchange()
    pair = twins.pair
    late = twins.places[D] = pair.start("bob", 5000)
    late.add_peer("ann", A, pair.now)
    for _ in range(10):
        pair.now += 0.1
        late.timer_fired(pair.now)
        twins.exchange()
    assert NameInUse("bob", "ann") in events(late)
    assert events(twins.twin).count(NameInUse("bob", "ann")) >= 2
