"""The variants of PAK that the tests run, and what they send."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from causewire.core.pak import Pak, PakCredit, PakNak

ABC = ["a", "b", "c"]
OTHERS = ["b", "c"]


VARIANTS: dict[str, Callable[..., PakCredit]] = {
    "pak": Pak,
    "pak k=4": partial(Pak, k=4),
    "credit 2": PakCredit,
    "credit 3": partial(PakCredit, ct=3),
    "nak 2": PakNak,
    "nak 3": partial(PakNak, ct=3, k=8),
    "receiver 2/1": partial(PakCredit, ct=2, wr=1),
    "receiver 3/2": partial(PakCredit, ct=3, wr=2),
    "receiver 4/1": partial(PakCredit, ct=4, wr=1),
}


def ticks(variant: str) -> float:
    """Discarded messages have to be sent again."""
    return 0.1 if variant.startswith("receiver") else 0.0


variants = pytest.mark.parametrize("variant", VARIANTS)


def released(endpoint: PakCredit) -> list[object]:
    """The payloads of what leaves for b."""
    return [p[2] for name, p in endpoint.take_packets() if name == "b" and p.kind == "msg"]
