"""Who begins a group when nobody is a member: one process, and never two."""

from __future__ import annotations

from collections import defaultdict, deque
from random import Random

import pytest

from causewire.kit.entries import Absent, Poll, Standing
from causewire.kit.founding import Founding
from causewire.kit.frames import Reader
from causewire.kit.wire import get_frame, put_frame

NAMES = ["ann", "bob", "cy"]
OTHERS = frozenset(["bob", "cy"])
NEVER = Standing(7, 0, 0, 0, False)


def asked(*rounds: dict[str, Standing], me: str = "ann") -> Founding:
    """Return the questions of a process after rounds with these answers."""
    founding = Founding(me)
    for number, answers in enumerate(rounds, 1):
        founding.ask(number, frozenset(NAMES) - {me})
        for name, standing in answers.items():
            founding.answered(name, Absent(number, standing))
    return founding


def test_it_takes_two_rounds_in_which_all_say_the_same() -> None:
    both = {"bob": NEVER, "cy": NEVER}
    assert not asked(both).begins(NEVER, OTHERS)
    assert not asked(both, {"bob": NEVER}).begins(NEVER, OTHERS)
    assert not asked({"bob": NEVER}, both).begins(NEVER, OTHERS)
    assert not asked(both, both | {"cy": NEVER._replace(entered=1)}).begins(NEVER, OTHERS)
    assert not asked(both, both | {"cy": NEVER._replace(incarnation=8)}).begins(NEVER, OTHERS)
    assert asked(both, both).begins(NEVER, OTHERS) == 1


def test_an_answer_to_an_earlier_round_does_not_count() -> None:
    founding = asked({"bob": NEVER, "cy": NEVER}, {"bob": NEVER})
    founding.answered("cy", Absent(1, NEVER))
    assert not founding.complete
    founding.answered("cy", Absent(2, NEVER))
    assert founding.begins(NEVER, OTHERS) == 1


@pytest.mark.parametrize(
    ("mine", "theirs", "begins"),
    [
        (NEVER, NEVER, False),  # the lower name
        (Standing(7, 1, 1, 5, False), NEVER, True),
        (Standing(7, 1, 1, 5, False), Standing(7, 1, 1, 6, False), False),
        (Standing(7, 1, 2, 5, False), Standing(7, 1, 1, 6, False), True),
        (Standing(7, 1, 1, 5, False), Standing(7, 1, 1, 6, True), True),  # the other one left
        (Standing(7, 1, 1, 5, True), NEVER, False),
    ],
)
def test_the_one_that_knows_most_begins(mine: Standing, theirs: Standing, begins: bool) -> None:
    answers = {"ann": theirs, "cy": NEVER}
    generation = asked(answers, answers, me="bob").begins(mine, frozenset(["ann", "cy"]))
    assert bool(generation) is begins
    if begins:
        assert generation == 1 + max(mine.generation, theirs.generation)


def test_whoever_may_not_begin_has_to_answer_but_does_not_come_first() -> None:
    answers = {"bob": NEVER, "cy": Standing(7, 1, 3, 100, False)}
    assert not asked(answers, answers).begins(NEVER, OTHERS)
    assert asked(answers, answers).begins(NEVER, frozenset(["bob"])) == 4


def test_frames() -> None:
    for frame in (Poll(300), Absent(300, Standing(1 << 60, 2, 3, 400, True))):
        assert get_frame(Reader(put_frame(frame))) == frame


# -- at random ----------------------------------------------------------------------


class World:
    """Processes that lose their group at random, and ask each other; links are first in, first
    out, and a state reaches a process that joins at once."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.links: dict[tuple[str, str], deque[Poll | Absent]] = defaultdict(deque)
        self.standing = dict.fromkeys(NAMES, NEVER)
        self.group: dict[str, int] = {}
        self.founding = {name: Founding(name) for name in NAMES}
        self.rounds = dict.fromkeys(NAMES, 0)
        self.began = 0

    def enter(self, name: str, generation: int) -> None:
        _, entered, _, delivered, _ = self.standing[name]
        more = delivered + self.random.randrange(3)
        self.standing[name] = Standing(7, entered + 1, generation, more, False)
        self.group[name] = generation
        self.founding[name] = Founding(name)

    def step(self) -> None:
        name, other = self.random.sample(NAMES, 2)
        chance = self.random.random()
        link = self.links[name, other]
        if chance < 0.1 and name in self.group:
            del self.group[name]
        elif chance < 0.2 and name not in self.group and other in self.group:
            self.enter(name, self.group[other])
        elif chance < 0.3 and name not in self.group:
            if not self.founding[name].complete and self.random.random() < 0.9:
                return
            self.rounds[name] += 1
            self.founding[name].ask(self.rounds[name], frozenset(NAMES) - {name})
            for to in NAMES:
                if to != name:
                    self.links[name, to].append(Poll(self.rounds[name]))
        elif chance < 0.45 and name not in self.group:
            others = frozenset(NAMES) - {name}
            if generation := self.founding[name].begins(self.standing[name], others):
                assert not self.group, f"{name} begins, and {self.group} are members"
                self.began += 1
                self.enter(name, generation)
        elif link:
            frame = link.popleft()
            if isinstance(frame, Absent):
                self.founding[other].answered(name, frame)
            elif other not in self.group:
                self.links[other, name].append(Absent(frame.round, self.standing[other]))


def test_nobody_begins_while_another_one_is_a_member() -> None:
    began = 0
    for seed in range(60):
        world = World(seed)
        for _ in range(400):
            world.step()
        began += world.began
    assert began > 30  # otherwise nothing was shown
