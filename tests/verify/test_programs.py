"""Programs: all of them, those that differ, and how they are written down."""

from __future__ import annotations

import pytest

from causewire.verify import (
    PROGRAMS,
    ProgramError,
    broadcasts,
    multicasts,
    parse,
    unicasts,
    up_to_renaming,
    written,
)
from causewire.verify.programs import expected, orbit


@pytest.mark.parametrize(("messages", "every", "distinct"), [(1, 8, 2), (2, 64, 12), (3, 512, 88)])
def test_how_many_there_are_for_three_processes(messages: int, every: int, distinct: int) -> None:
    assert len(list(unicasts(3, messages))) == every
    assert len(list(up_to_renaming(unicasts(3, messages)))) == distinct


def test_renaming_loses_none() -> None:
    for all_of_them in (unicasts(3, 2), multicasts(3, 1), unicasts(3, (2, 1, 0))):
        every = set(all_of_them)
        chosen = list(up_to_renaming(sorted(every)))
        covered = set().union(*map(orbit, chosen))
        assert every <= covered
        assert all(not orbit(a) & {b} for a in chosen for b in chosen if a is not b)


def test_uneven_numbers() -> None:
    programs = list(unicasts(3, (5, 0, 1)))
    assert len(programs) == 2**6
    assert {tuple(map(len, program)) for program in programs} == {(5, 0, 1)}


def test_multicasts_go_to_every_set_of_others() -> None:
    (first,) = {tuple(sorted({p[0].to for (p, *_) in multicasts(3, 1)}))}
    assert first == ((1,), (1, 2), (2,))
    assert [written(w) for w in broadcasts(3, 1)] == ["0>1+2; 1>0+2; 2>0+1"]


def test_nobody_sends_to_itself() -> None:
    for program in [*unicasts(4, 1), *multicasts(3, 2)]:
        assert all(i not in send.to for i, sends in enumerate(program) for send in sends)


@pytest.mark.parametrize("text", ["0>1,2; 1>0+2; 2>@1 0", "0>; 1>0,0,0", "0>0,1; 1>"])
def test_writing_and_reading(text: str) -> None:
    assert written(parse(text)) == text
    assert sum(each.bit_count() for row in expected(parse(text)) for each in row) == text.count(
        ","
    ) + text.count("+") + sum(bool(part.partition(">")[2]) for part in text.split(";"))


def test_programs_by_name() -> None:
    assert parse("mf-first") == PROGRAMS["mf-first"] == parse("0>2,1; 1>@1 2; 2>")


@pytest.mark.parametrize("text", ["", "1>0", "0>1", "0>x; 1>", "0>1 1>", "0>@x 1; 1>", "0>-1; 1>"])
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(ProgramError):
        parse(text)


def test_as_many_numbers_as_processes() -> None:
    with pytest.raises(ProgramError):
        list(unicasts(3, (1, 2)))
