"""Mistakes in an implementation of PAK that the tests must catch."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

import pytest

from causewire.core.endpoint import (
    Blocked,
    RemoteProtocolError,
    Wait,
)
from causewire.core.pak import Pak, PakCredit, PakNak

from .broadcasts import Group, play, verdict


class Lenient(PakCredit):
    """Does not refuse what falls out of the causal window, which would give it away."""

    def _in_window(self, vt: Any) -> Any:
        return True


class AnonymousAcks(Lenient):
    """Line S4 literally: one ack satisfies every broadcast that waits (ERRATA 8.3)."""

    def _receive_ack(self, j: Any, ack: Any) -> None:
        last = self._v[self._i]
        if self._acked[j] < last:
            self._acknowledge(j, last)


class CountsModuloK(PakNak):
    """Chooses what is acked by V[me] modulo k, not by a plain counter (ERRATA 8.4)."""

    _in_window = Lenient._in_window

    def _asks(self, number: Any) -> Any:
        while number > 0 and (number - 1) % self.k % self.ct != self.ct - 1:
            number -= 1
        return number


class CountsAfterTheUpcall(Pak):
    """Delivers, then counts (ERRATA 7.1)."""

    def _deliver(self, source: Any, mid: int, payload: Any) -> None:
        j = self.index[source]
        if source != self.me:
            self._v[j] -= 1
        super()._deliver(source, mid, payload)
        if source != self.me:
            self._v[j] += 1


class AcksAtOnce(PakCredit):
    """An ack takes effect though a message before it is not delivered."""

    _take_ack = PakCredit._acknowledge


class LenientAcksAtOnce(Lenient, AcksAtOnce):
    pass


@pytest.mark.parametrize(
    ("make", "how", "runs"),
    [
        (AnonymousAcks, "stuck", 60),
        (partial(AnonymousAcks, k=9), "stuck", 60),
        (AnonymousAcks, "causal", 400),
        (CountsModuloK, "stuck", 60),
        (partial(CountsModuloK, k=7), "stuck", 120),
        (CountsAfterTheUpcall, "causal", 60),
    ],
)
def test_known_bads_are_caught(make: Any, how: str, runs: int) -> None:
    assert any(verdict(make, seed) == how for seed in range(runs))


@pytest.mark.parametrize("k", [6, 8])
def test_counting_modulo_k_is_right_if_ct_divides_k(k: int) -> None:
    """ERRATA 8.4: the mistake shows at the wrap only."""
    assert {verdict(partial(CountsModuloK, k=k), seed) for seed in range(60)} == {"good"}


def test_taking_acks_at_once_makes_no_difference_if_nothing_is_discarded() -> None:
    """ERRATA 8.2, and more: not even a packet leaves earlier."""
    late = 0
    for seed in range(40):
        groups = [Group(kind, 3 + seed % 2) for kind in (PakCredit, AcksAtOnce)]
        for me, _ in zip(*(play(group, Random(seed), 20) for group in groups), strict=True):
            late += len(groups[0][me]._late)
            assert groups[0].channels == groups[1].channels, f"seed {seed}"
            assert groups[0].delivered == groups[1].delivered, f"seed {seed}"
    assert late > 10, "no ack ever waited"


def test_taking_acks_at_once_is_fatal_if_messages_are_discarded() -> None:
    """The remark of section 5.1 needs the rule that acks wait."""
    outcomes = {
        kind: {verdict(partial(kind, ct=2, wr=1), seed, ticks=0.1) for seed in range(40)}
        for kind in (PakCredit, AcksAtOnce, LenientAcksAtOnce)
    }
    assert outcomes == {
        PakCredit: {"good"},
        AcksAtOnce: {"good", "refused"},
        LenientAcksAtOnce: {"good", "stuck"},
    }


def test_fifo_channels_are_needed() -> None:
    """An ack overtakes a message: the window is exceeded, and the message waits for ever."""
    group = Group(Pak, 3)
    group.send("p0")
    group.send("p1")
    group.hop("p0", "p1")
    group.hop("p0", "p2")
    assert [packet.kind for packet in group.channels["p1", "p0"]] == ["msg", "ack"]
    group.hop("p1", "p0", 1)
    group.hop("p2", "p0")
    group.send("p0")
    group.hop("p0", "p2")
    group.hop("p1", "p2")
    waits = (Wait("predecessor", "p0", 3),)
    assert group["p2"].blocked() == [Blocked("p1", 1, "p2", "receiver", waits)]
    with pytest.raises(RemoteProtocolError, match="outside the window"):
        group.hop("p1", "p0")
