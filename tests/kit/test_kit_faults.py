"""A share of the campaign with whole nodes; `python -m campaigns.kit_faults` runs more."""

from __future__ import annotations

import pytest

from campaigns.kit_faults import play


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "divide", "begun_again"),
    [
        (4, False, 0),  # one process is cut off, and comes back
        (4, True, 1),  # two parts give up each other: nobody is a member any more
    ],
)
def test_a_chat_is_whole_again_when_no_fault_is_left(
    seed: int, divide: bool, begun_again: int
) -> None:
    wrong, counts = play(seed, divide)
    assert not wrong
    assert counts["lines"] > 20
    assert counts["given up"] > 0
    assert counts["begun again"] == begun_again
