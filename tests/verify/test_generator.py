"""Generated programs: connected, none a renaming of another, and deep enough to matter."""

from __future__ import annotations

import pytest

from causewire.verify import ProgramError, SearchOptions, Setup, Unit, check_unit, parse, written
from causewire.verify.generator import all_relays, sampled
from causewire.verify.programs import orbit


def test_all_relays_are_different_up_to_renaming() -> None:
    programs = list(all_relays(4, 3))
    assert len(programs) == 30
    seen: set[object] = set()
    for program in programs:
        assert program not in seen
        seen |= orbit(program)
        assert sum(map(len, program)) == 3
        assert parse(written(program)) == program


def test_samples_repeat_and_differ_by_seed() -> None:
    first = list(sampled(4, 6, 20, seed=1))
    assert len(first) == 20
    assert first == list(sampled(4, 6, 20, seed=1))
    assert first != list(sampled(4, 6, 20, seed=2))
    for program in first:
        assert parse(written(program)) == program
        assert sum(map(len, program)) == 6


def test_samples_have_relays_crossings_and_multicasts() -> None:
    sends = [s for p in sampled(4, 6, 20, multicast=True) for part in p for s in part]
    assert any(send.needs for send in sends)
    assert any(not send.needs for send in sends)
    assert any(len(send.to) > 1 for send in sends)


def test_the_chain_that_fifo_gets_wrong_is_among_them() -> None:
    """p0 sends to p2 and then to p1, and p1, having got that, to p2."""
    program = parse("0>2,1; 1>@0:2 2; 2>; 3>")
    programs = set(all_relays(4, 3))
    assert orbit(program) & programs
    options = SearchOptions(engine="python", properties=("causal order",))
    bad = [each for each in programs if check_unit(Unit(Setup("fifo", 4), each, options)).violation]
    assert 0 < len(bad) < len(programs)


@pytest.mark.parametrize("program", ["0>2,1; 1>@0:2 2; 2>", "0>1; 1>@1&0:1 0"])
def test_conditions_are_kept(program: str) -> None:
    result = check_unit(Unit(Setup("csps", program.count(">")), parse(program)))
    assert result.complete
    assert result.violation is None
    assert written(parse(program)) == program


@pytest.mark.parametrize("program", ["0>1; 1>@0:2 0", "0>1; 1>@2:1 0", "0>1; 1>0,@1:1 0"])
def test_a_message_that_never_comes_cannot_be_waited_for(program: str) -> None:
    with pytest.raises(ProgramError, match="which it never gets"):
        parse(program)
