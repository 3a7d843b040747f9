"""A share of the campaign with whole nodes; `python -m campaigns.kit_faults` runs more."""

from __future__ import annotations

import pytest

from campaigns.kit_faults import play

SEEDS = range(4, 34)
"""What happens under a seed changes with every change to times in the transport."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("divide", "begun_again"),
    [
        (False, 0),  # one process is cut off, and comes back
        (True, 1),  # two parts give up each other: nobody is a member any more
    ],
)
def test_a_chat_is_whole_again_when_no_fault_is_left(divide: bool, begun_again: int) -> None:
    seen = {}
    for seed in SEEDS:
        wrong, counts = play(seed, divide)
        option = " --divide" if divide else ""
        assert not wrong, f"python -m campaigns.kit_faults --seed {seed} --runs 1{option}: {wrong}"
        seen[seed] = dict(counts)
        happened = counts["given up"] > 0 and counts["begun again"] == begun_again
        if happened and counts["lines"] > 20:
            return
    pytest.fail(f"what was to be shown has happened under none of these seeds: {seen}")
