"""Datagrams that do not verify: every address is reported, and a flood causes no flood."""

from __future__ import annotations

from causewire.transport import VerificationFailed
from causewire.transport.events import Event
from causewire.transport.suspects import MOST, Suspects

PLACES = [("10.0.0.1", port) for port in range(1, 5)]


def test_every_culprit_is_named() -> None:
    found: list[Event] = []
    suspects = Suspects(found.append)
    for now in (0.0, 1.1, 2.2, 3.3):
        for late, place in enumerate(PLACES):
            suspects.note(place, now + late / 10)
    assert [event.address for event in found if isinstance(event, VerificationFailed)] == PLACES
    assert found[2] == VerificationFailed(PLACES[2], 2)  # the count when it is reported


def test_at_each_power_of_ten() -> None:
    found: list[Event] = []
    suspects = Suspects(found.append)
    for now in range(0, 400, 2):
        suspects.note(PLACES[0], now)
    assert found == [VerificationFailed(PLACES[0], count) for count in (1, 10, 100)]


def test_a_flood_from_one_address_does_not_hide_another() -> None:
    found: list[Event] = []
    suspects = Suspects(found.append)
    for step in range(3000):
        suspects.note(PLACES[0], step / 1000)
        if step == 500:
            suspects.note(PLACES[1], 0.5)
    assert len(found) == 3
    assert VerificationFailed(PLACES[1], 1) in found


def test_a_flood_from_many_addresses_is_forgotten() -> None:
    found: list[Event] = []
    suspects = Suspects(found.append)
    for step in range(2000):
        suspects.note(("10.0.0.2", step), step / 1000)
    assert len(found) == 2
    assert len(suspects._counts) <= MOST
    assert suspects._waiting.keys() <= suspects._counts.keys()
