"""Vectors modulo k decide as unbounded vectors do, if k is large enough."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

import pytest

from causewire.core.endpoint import (
    Packet,
)
from causewire.core.pak import Pak, PakCredit, PakNak

from .broadcasts import Group, play, verdict
from .pak_variants import VARIANTS, ticks, variants

UNBOUNDED = 2**60
"""A modulus that is never reached: plain vector time."""


def residues(packet: Packet, k: int) -> tuple[Any, ...]:
    """A packet as it would look with counters modulo k."""
    if packet.kind == "ack":
        return ("ack", packet[1] % k)
    return ("msg", tuple(count % k for count in packet[1]), packet[2])


@variants
def test_modulo_k_decides_as_unbounded_vectors_do(variant: str) -> None:
    """In lock-step: the same packets, deliveries and reasons to wait at every step."""
    make = VARIANTS[variant]
    k = make("p0", ["p0"]).k
    wrapped = 0
    for seed in range(30):
        n = 3 + seed % 2
        small = Group(make, n)
        large = Group(partial(make, k=UNBOUNDED), n)
        runs = [play(group, Random(seed), 20, ticks=ticks(variant)) for group in (small, large)]
        try:
            for me, same in zip(*runs, strict=True):
                assert me == same
                assert small.delivered[me] == large.delivered[me]
                assert small[me].blocked() == large[me].blocked()
                for link in small.channels:
                    assert len(small.channels[link]) == len(large.channels[link])
                    if link[0] == me and small.channels[link]:
                        ours, theirs = small.channels[link][-1], large.channels[link][-1]
                        assert tuple(ours) == residues(theirs, k)
            wrapped += max(max(endpoint._v) for endpoint in small.endpoints.values()) >= k
        except BaseException:
            print(f"{variant}, seed {seed}")
            raise
    assert wrapped > 3, "hardly a counter went round"


class SmallK(PakCredit):
    """Takes a k that is too small."""

    _least_k = 1


class SmallKPak(Pak):
    _least_k = 1


class SmallKNak(PakNak):
    _least_k = 1


@pytest.mark.parametrize(
    "make",
    [
        partial(SmallKPak, k=2),
        partial(SmallK, ct=2, k=4),
        partial(SmallK, ct=3, k=6),
        partial(SmallKNak, ct=2, k=4),
        partial(SmallKNak, ct=3, k=6),
    ],
)
def test_k_of_2ct_is_too_small(make: Any) -> None:
    """ERRATA 8.1: 2ct + 1 is tight."""
    assert "causal" in {verdict(make, seed) for seed in range(60)}
