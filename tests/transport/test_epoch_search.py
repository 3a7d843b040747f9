"""All runs of the smallest groups that change: `campaigns.epochs`, as far as it is quick."""

from __future__ import annotations

import pytest

from campaigns.epochs.__main__ import main, programs
from campaigns.epochs.search import SCENARIOS, Program, Search

from .epoch_mistakes import MISTAKES
from .pair import interpreted

pytestmark = interpreted

TO_BOTH: Program = (((1, 2),), (), ())
TWICE: Program = (((1,), (1,)), (), ())
HELD: Program = (((1,),), (), ((0, 1),))
"""p0 writes to p1 after it got a message of p2 that p1 lacks."""
NOTHING: Program = ((), (), ())


@pytest.mark.parametrize(
    ("scenario", "protocol", "program", "states"),
    [
        ("forget", "ks", HELD, 3176),
        ("forget", "mf", TWICE, 1051),
        ("join", "bss", TO_BOTH, 6013),
        pytest.param("restart", "rst", NOTHING, 12226, marks=pytest.mark.slow),
    ],
)
def test_small_groups_go_on(scenario: str, protocol: str, program: Program, states: int) -> None:
    found = Search(SCENARIOS[scenario], protocol, program).run(100_000)
    assert not found.wrong, found.story
    assert found.complete
    assert found.states == states  # another number is no mistake, but should have a reason
    if program != NOTHING:
        assert found.seen["waited for an epoch"]
    if protocol == "ks":
        assert found.seen["released in the order of Lamport times"]


@pytest.mark.parametrize(
    ("mistake", "scenario", "protocol", "program", "wrong"),
    [
        ("entering without the others", "forget", "ks", TO_BOTH, "different cuts"),
        ("entering before all is delivered", "forget", "mf", TWICE, "different cuts"),
        ("nobody is pulled along", "restart", "bss", TO_BOTH, "lacks a message"),
        ("held back for ever", "forget", "ks", HELD, "does not enter the epoch"),
        ("views without numbers", "join and forget", "rst", TO_BOTH, "nobody can have entered"),
        pytest.param(
            *("a number of one's own", "restart", "bss", NOTHING, "does not enter the epoch"),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_mistakes_are_found(
    mistake: str, scenario: str, protocol: str, program: Program, wrong: str
) -> None:
    """Messages that are held back in the wrong order need two senders, and a third that dies."""
    with MISTAKES[mistake].made():
        found = Search(SCENARIOS[scenario], protocol, program).run(100_000)
    assert wrong in found.wrong
    assert found.story or mistake == "nobody is pulled along"


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(programs("ks", (1, 1, 0))) == 9
    assert len(programs("mf", (1, 1, 0))) == 4
    assert len(programs("bss", (1, 1, 0))) == 1
    assert main(["--protocol", "bss", "--scenario", "forget", "--batched"]) == 0
    assert (
        "| `bss` | `--scenario 'forget' --messages 1,0,0 --batched` | 1 |"
        in capsys.readouterr().out
    )
    assert main(["--protocol", "bss", "--scenario", "forget", "--states", "10"]) == 1
    assert "| incomplete |" in capsys.readouterr().out
