"""Hypothesis draws the same examples in every run, unless it is asked for others."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


def drawn() -> list[list[int]]:
    examples: list[list[int]] = []

    @given(st.lists(st.integers()))
    def keep(example: list[int]) -> None:
        examples.append(example)

    keep()
    return examples


@pytest.mark.parametrize(("profile", "same"), [("repeatable", True), ("random", False)])
def test_examples_repeat(profile: str, same: bool) -> None:
    chosen = settings.get_current_profile_name()
    settings.load_profile(profile)
    try:
        first, second = drawn(), drawn()
    finally:
        settings.load_profile(chosen)
    assert len(first) > 50
    assert (first == second) is same


def test_no_examples_are_stored() -> None:
    assert settings.get_profile("repeatable").database is None
