"""A quick share of the campaign for `adaptive`, and the programs that show its mistakes."""

from __future__ import annotations

import pytest

from campaigns.adaptive import KINDS, WRITTEN, find, work

from .adaptive_mutants import STUCK, UNSAFE, mutant


@pytest.mark.parametrize("cap", [0, 1, None])
def test_a_share_of_the_campaign(cap: int | None) -> None:
    seen = work(cap, 7, 0, 8 * len(KINDS))
    assert all(seen[kind.__name__] == 8 for kind in KINDS)
    assert seen["messages"] > 100


@pytest.mark.parametrize("name", [name for name in WRITTEN if name != "cover_any"])
def test_programs_that_show_a_mistake(name: str) -> None:
    endpoint, options = {**UNSAFE, **STUCK}[name]
    assert not find(mutant(endpoint, **options), name, 0.0).startswith("not found")
